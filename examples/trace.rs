//! Prints every allocation event of a recorded case's predicted run, to be held against a real allocator's:
//! `cargo run --example trace -- FILE.jsonl CASE-ID [STEP]`. For work on the engine.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use headroom::truth;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, file, id, rest @ ..] = &args[..] else {
        println!("usage: trace FILE.jsonl CASE-ID [STEP]");
        return;
    };
    let step: u32 = rest.first().and_then(|it| it.parse().ok()).unwrap_or(1);
    let text = std::fs::read_to_string(file).unwrap();
    let line = text
        .lines()
        .find(|line| line.contains(&format!("\"id\":\"{id}\"")))
        .unwrap_or(&text);
    let record: serde_json::Value = serde_json::from_str(line).unwrap();
    let run = truth::run_record(&record).unwrap();
    let trace = &run.trace;
    let mut live: u64 = trace
        .setup
        .iter()
        .map(|event| trace.blocks[event.block() as usize].rounded())
        .sum();
    println!(
        "parameters {} trainable {} set up {live}",
        run.parameters, run.trainable
    );
    let mut marks = trace.marks.iter().peekable();
    let mut now = 0;
    for (at, event) in trace.events.iter().enumerate() {
        while let Some(mark) = marks.next_if(|mark| mark.at <= at) {
            now = mark.step;
            if now == step {
                println!("== {:?} {live}", mark.phase);
            }
        }
        let block = &trace.blocks[event.block() as usize];
        let bytes = block.rounded();
        live = if event.is_free() {
            live - bytes
        } else {
            live + bytes
        };
        if now == step {
            let sign = if event.is_free() { '-' } else { '+' };
            println!(
                "{sign}{bytes:<14} now {live:<14} {:<24} {}",
                block.op,
                trace.path(block.scope)
            );
        }
    }
}
