//! Predictions for a watch to time: `scripts/laps` compiles this for the machine and for WebAssembly, and runs both.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use headroom_catalog as catalog;
use headroom_core::estimate::{estimate, quick_peak};
use headroom_scenario::{Precision, Scenario};

/// The number of the prediction that `main` makes. A module without imports takes no arguments: who runs it looks for this
/// mark in its memory and writes the number over it.
static CASE: AtomicU64 = AtomicU64::new(u64::from_be_bytes(*b"HEADROOM"));

/// What is timed: a model, and whether the allocator replays its events. `scripts/laps.mjs` has the same order.
const TIMED: [(&str, bool); 4] = [
    ("llama-3.1-8b", false),
    ("llama-3.1-8b", true),
    ("llama-3.1-405b", false),
    ("llama-3.1-405b", true),
];

/// Predicts what is timed, and after it the models of the catalogue in their order.
fn predict(case: usize) {
    let mut scenario = Scenario::default();
    let timed = TIMED.get(case);
    if let Some((model, _)) = timed {
        scenario.model.id = (*model).into();
        scenario.data.micro_batch = 1;
        scenario.data.sequence = 4096;
        scenario.training.precision = Precision::Bf16;
    } else if let Some(model) = catalog::models().get(case - TIMED.len()) {
        scenario.model.id = model.id.into();
    } else {
        return;
    }
    if let Some((_, false)) = timed {
        let _ = black_box(quick_peak(black_box(&scenario)));
    } else {
        let _ = black_box(estimate(black_box(&scenario)));
    }
}

#[cfg(target_arch = "wasm32")]
fn main() {
    headroom_systems::install();
    // Nothing in here writes the number, so the compiler must not conclude that it stays what it is.
    let case = black_box(&CASE).load(Ordering::Relaxed);
    predict(usize::try_from(case).unwrap_or(usize::MAX));
}

#[cfg(not(target_arch = "wasm32"))]
#[allow(clippy::print_stdout)]
fn main() {
    headroom_systems::install();
    CASE.store(0, Ordering::Relaxed);
    for case in 0..TIMED.len() {
        // The least of many: whatever else the machine does only adds.
        let least = (0..500)
            .map(|_| {
                let start = std::time::Instant::now();
                predict(case);
                start.elapsed()
            })
            .min()
            .unwrap_or_default();
        println!("{:.1}", least.as_secs_f64() * 1e6);
    }
}
