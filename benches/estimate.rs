//! How long an estimate takes: `cargo bench --bench estimate`.
//!
//! Budgets, native on one core: the peak alone 50 µs for Llama-3.1-8B, 200 µs for the 405B and 500 µs
//! for the 8B's PPO with a policy, a value model, a reference and a reward model; the whole estimate, with the allocator's replay,
//! 1 ms for the 8B. What an estimate adds to a browser's memory, 8 MiB for any model of the catalogue,
//! `scripts/memory.mjs` holds.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use headroom::estimate::{estimate, quick_peak};
use headroom::scenario::{Checkpointing, Objective, Precision, Scenario};

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

criterion_group!(benches, estimates);
criterion_main!(benches);
