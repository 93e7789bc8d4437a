//! How long an estimate takes: `cargo bench --bench estimate`.
//!
//! Budgets, native on one core: the peak alone 50 µs for Llama-3.1-8B, 200 µs for the 405B and 500 µs
//! for the 8B's PPO with a policy, a value model, a reference and a reward model; the full estimate, with the allocator's replay,
//! 1 ms for the 8B; of Llama-3.1-70B under tensor parallelism over 8, a pipeline of 4 and FSDP 2, 150 µs for one rank and 600 µs for
//! all stages; 250 ms for whatever is admitted, of which three that take long are timed. What an estimate adds to a browser's
//! memory, 8 MiB for any model of the catalogue,
//! `scripts/memory.mjs` holds.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use headroom_core::estimate::{Prediction, estimate, quick_peak, quick_peak_of_first_rank};
use headroom_scenario::{Checkpointing, Objective, Parallelism, Precision, Scenario, settings};

fn scenario(model: &str) -> Scenario {
    let mut scenario = Scenario::default();
    scenario.model.id = model.into();
    scenario.data.micro_batch = 1;
    scenario.data.sequence = 4096;
    scenario.training.precision = Precision::Bf16;
    scenario
}

fn estimates(bench: &mut Criterion) {
    for model in ["gpt2", "llama-3.1-8b", "llama-3.1-405b"] {
        let plain = scenario(model);
        let mut checkpointed = plain.clone();
        checkpointed.training.checkpointing = Checkpointing::Layers;
        bench.bench_function(&format!("{model}, peak alone"), |b| {
            b.iter(|| quick_peak(black_box(&plain)));
        });
        bench.bench_function(&format!("{model}, checkpointed, peak alone"), |b| {
            b.iter(|| quick_peak(black_box(&checkpointed)));
        });
        bench.bench_function(&format!("{model}, with the allocator"), |b| {
            b.iter(|| estimate(black_box(&plain)));
        });
    }
    let mut job = scenario("llama-3.1-70b");
    job.hardware.gpus = 256;
    job.hardware.nodes = 32;
    job.parallel.strategy = Parallelism::Fsdp2;
    (job.parallel.tp, job.parallel.pp) = (8, 4);
    job.parallel.sequence_parallel = true;
    job.training.accumulation = 8;
    job.training.checkpointing = Checkpointing::Layers;
    bench.bench_function("llama-3.1-70b of 256 GPUs, one rank, peak alone", |b| {
        b.iter(|| quick_peak_of_first_rank(black_box(&job)));
    });
    bench.bench_function("llama-3.1-70b of 256 GPUs, all stages, peak alone", |b| {
        b.iter(|| quick_peak(black_box(&job)));
    });
    let mut four_models = scenario("llama-3.1-8b");
    four_models.training.checkpointing = Checkpointing::Layers;
    four_models.training.task.objective = Objective::Ppo;
    bench.bench_function("llama-3.1-8b, PPO, peak alone", |b| {
        b.iter(|| quick_peak(black_box(&four_models)));
    });
    bench.bench_function("llama-3.1-8b, PPO, with the allocator", |b| {
        b.iter(|| estimate(black_box(&four_models)));
    });
}

/// All that `headroom estimate` says of runs that are admitted and take long.
fn longest(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("whole answer");
    group.sample_size(10);
    for (name, changes) in [
        (
            "sdxl-unet, 8 micro-batches",
            &[("model", "sdxl-unet"), ("accum", "8")][..],
        ),
        (
            "llama-3.1-405b, 16 stages",
            &[
                ("model", "llama-3.1-405b"),
                ("gpus", "16"),
                ("pp", "16"),
                ("accum", "64"),
                ("ckpt", "layers"),
            ],
        ),
        (
            "llama-3.1-405b, ZeRO-3, 8 micro-batches",
            &[
                ("model", "llama-3.1-405b"),
                ("gpus", "8"),
                ("par", "zero3"),
                ("accum", "8"),
            ],
        ),
    ] {
        let mut scenario = Scenario::default();
        for (field, value) in changes {
            let _ = settings::set(&mut scenario, field, value);
        }
        group.bench_function(name, |b| {
            b.iter(|| {
                let prediction = Prediction::new(black_box(scenario.clone()));
                let answers = (
                    prediction.estimate().is_ok(),
                    prediction.smallest_card().is_ok(),
                    prediction.ranks().is_ok(),
                );
                black_box(answers)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, estimates, longest);
criterion_main!(benches);
