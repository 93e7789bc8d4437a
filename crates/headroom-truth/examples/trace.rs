//! Prints every allocation event of a recorded case's predicted run, to be held against a real allocator's:
//! `cargo run --example trace -- FILE.jsonl CASE-ID [STEP] [RECORDED.json]`. For work on the engine.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use headroom_core::estimate::Expansion;
use headroom_core::graph;
use headroom_core::network::rounded;
use headroom_truth as truth;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, file, id, rest @ ..] = &args[..] else {
        println!("usage: trace FILE.jsonl CASE-ID [STEP] [RECORDED.json]");
        return;
    };
    let step: u32 = rest.first().and_then(|text| text.parse().ok()).unwrap_or(1);
    let text = std::fs::read_to_string(file).unwrap();
    let line = text
        .lines()
        .find(|line| line.contains(&format!("\"id\":\"{id}\"")))
        .unwrap_or(&text);
    let record: serde_json::Value = serde_json::from_str(line).unwrap();
    let run = match rest.get(1) {
        Some(model) => {
            let text = std::fs::read_to_string(model).unwrap();
            truth::run_recorded(&record, graph::read(&text).unwrap().into()).unwrap()
        }
        None => truth::run_record(&record).unwrap(),
    };
    let trace = &run.trace;
    let expansion = Expansion::new(trace);
    let mut live: u64 = 0;
    expansion.setup(|event| live += rounded(event.bytes));
    println!(
        "parameters {} trainable {} set up {live}",
        run.parameters, run.trainable
    );
    for (i, mark) in trace.phase_starts.iter().enumerate() {
        if mark.step == step {
            println!("== {:?} {live}", mark.phase);
        }
        let until = trace
            .phase_starts
            .get(i + 1)
            .map_or(trace.events.len(), |next| next.at);
        expansion.events(mark.at, until, |event| {
            let bytes = rounded(event.bytes);
            live = if event.is_free {
                live - bytes
            } else {
                live + bytes
            };
            if let Some(storage) = trace.storages.get(event.storage as usize)
                && mark.step == step
            {
                let sign = if event.is_free { '-' } else { '+' };
                println!(
                    "{sign}{bytes:<14} now {live:<14} {:<24} {}",
                    trace.source(storage).op,
                    trace.path(trace.source(storage).scope)
                );
            }
        });
    }
}
