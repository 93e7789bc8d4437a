//! How long a search takes: `cargo bench --bench search`.
//!
//! Budget, native on one core: 100,000 combinations of moves and micro-batches in half a second; all layouts of
//! Llama-3.1-405B on 512 H100 in two.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use headroom_advice::{Cost, Goal, Search, layouts};
use headroom_scenario::{Precision, Scenario};

fn scenario(model: &str) -> Scenario {
    let mut scenario = Scenario::default();
    scenario.model.id = model.into();
    scenario.hardware.gpu = "a100-sxm4-80gb".into();
    scenario.data.micro_batch = 64;
    scenario
}

fn searches(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("search");
    group.sample_size(10);
    for model in ["gpt2", "llama-3.2-1b"] {
        for most in [Cost::Time, Cost::Results] {
            let run = scenario(model);
            let space = Search::new(&run, Goal::default(), most)
                .and_then(|mut search| search.step(1))
                .map_or(0, |tally| tally.space);
            let name = format!("{model}, {}, {space} combinations", most.id());
            group.bench_function(&name, |b| {
                b.iter(|| {
                    let mut search = Search::new(black_box(&run), Goal::default(), most)?;
                    while !search.step(1_000)?.done {}
                    Ok::<_, headroom_core::estimate::Unsupported>(search.front().len())
                });
            });
        }
    }
    let mut job = scenario("llama-3.1-405b");
    job.hardware.gpu = "h100-sxm5-80gb".into();
    job.data.micro_batch = 1;
    job.data.sequence = 8192;
    job.training.precision = Precision::AmpBf16;
    group.bench_function("llama-3.1-405b, layouts of 512 GPUs", |b| {
        b.iter(|| layouts(black_box(&job), 512, Goal::default()).map(|found| found.tried));
    });
    group.finish();
}

criterion_group!(benches, searches);
criterion_main!(benches);
