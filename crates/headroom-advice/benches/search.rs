//! How long plans take: `cargo bench --bench search`.
//!
//! Budget, native on one core: 50 ms for a run on one GPU, one second for 512 of them, dense or of experts.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use headroom_advice::{Locks, plan};
use headroom_scenario::{Scenario, settings};

/// Runs that do not fit as they are.
const RUNS: [(&str, &str); 4] = [
    ("gpt2 on one GPU", "model=gpt2 gpu=rtx-3070-8gb mb=32"),
    (
        "llama-3.1-8b on one GPU",
        "model=llama-3.1-8b gpu=rtx-4090 mb=8 seq=4096 lora=on precision=amp-bf16-on-bf16",
    ),
    (
        "llama-3.1-405b on 512",
        "model=llama-3.1-405b gpu=h100-sxm5-80gb gpus=512 nodes=64 mb=1 seq=8192 precision=amp-bf16",
    ),
    (
        "deepseek-v3 on 512",
        "model=deepseek-v3 gpu=h100-sxm5-80gb gpus=512 nodes=64 mb=1 seq=4096 precision=amp-bf16",
    ),
];

fn run(settings: &str) -> Scenario {
    let mut scenario = Scenario::default();
    for word in settings.split(' ') {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        // A name that does not exist would time another run.
        let problems = settings::set(&mut scenario, name, value);
        assert!(problems.is_ok(), "{name}: {problems:?}");
    }
    scenario
}

fn plans(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("plan");
    group.sample_size(10);
    for (name, settings) in RUNS {
        let run = run(settings);
        group.bench_function(name, |b| {
            b.iter(|| plan(black_box(&run), Locks::default()).map(|plans| plans.work));
        });
    }
    group.finish();
}

criterion_group!(benches, plans);
criterion_main!(benches);
