//! What one prediction costs, for work on the engine: `cargo run --profile fast --example cost -- llama-3.1-8b 1000 [full|checkpointed]`.
//! Under `valgrind --tool=callgrind` it says where the instructions go.

use std::hint::black_box;
use std::time::Instant;

use headroom::estimate::{estimate, quick_peak};
use headroom::scenario::{Checkpointing, Precision, Scenario};

#[allow(clippy::print_stdout)]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().unwrap_or_else(|| "llama-3.1-8b".into());
    let times: u32 = arguments
        .next()
        .and_then(|it| it.parse().ok())
        .unwrap_or(1000);
    let kind = arguments.next().unwrap_or_default();
    let mut scenario = Scenario::default();
    scenario.model.id = model;
    scenario.data.micro_batch = 1;
    scenario.data.sequence = 4096;
    scenario.training.precision = Precision::Bf16;
    if kind == "checkpointed" {
        scenario.training.checkpointing = Checkpointing::Layers;
    }
    let start = Instant::now();
    for _ in 0..times {
        if kind == "full" {
            let _ = black_box(estimate(black_box(&scenario)));
        } else {
            let _ = black_box(quick_peak(black_box(&scenario)));
        }
    }
    println!(
        "{:.1} µs each",
        start.elapsed().as_secs_f64() * 1e6 / f64::from(times.max(1))
    );
}
