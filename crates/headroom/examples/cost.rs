//! What one prediction costs: `cargo run --profile fast --example cost -- MODEL TIMES [full, checkpointed, ppo, rank or stages]`.
//! Under `valgrind --tool=callgrind` it says where the instructions go.

use std::hint::black_box;
use std::time::Instant;

use headroom_core::estimate::{estimate, quick_peak, quick_peak_of_first};
use headroom_scenario::{Checkpointing, Objective, Parallelism, Precision, Scenario};

#[allow(clippy::print_stdout)]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().unwrap_or_else(|| "llama-3.1-8b".into());
    let times: u32 = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1000);
    let kind = arguments.next().unwrap_or_default();
    let mut scenario = Scenario::default();
    scenario.model.id = model;
    scenario.data.micro_batch = 1;
    scenario.data.sequence = 4096;
    scenario.training.precision = Precision::Bf16;
    if kind == "checkpointed" || kind == "ppo" {
        scenario.training.checkpointing = Checkpointing::Layers;
    }
    if kind == "ppo" {
        scenario.training.task.objective = Objective::Ppo;
    }
    if kind == "rank" || kind == "stages" {
        scenario.training.checkpointing = Checkpointing::Layers;
        scenario.training.accumulation = 8;
        (scenario.hardware.gpus, scenario.hardware.nodes) = (256, 32);
        scenario.parallel.strategy = Parallelism::Fsdp2;
        (scenario.parallel.tp, scenario.parallel.pp) = (8, 4);
        scenario.parallel.sequence_parallel = true;
    }
    // The least of many: whatever else the machine does only adds.
    let mut least = f64::INFINITY;
    for _ in 0..times.max(1) {
        let start = Instant::now();
        if kind == "full" {
            let _ = black_box(estimate(black_box(&scenario)));
        } else if kind == "rank" {
            let _ = black_box(quick_peak_of_first(black_box(&scenario)));
        } else {
            let _ = black_box(quick_peak(black_box(&scenario)));
        }
        least = least.min(start.elapsed().as_secs_f64());
    }
    println!("{:.1} µs", least * 1e6);
}
