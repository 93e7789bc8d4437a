//! Sizes that make no sense get an answer or a refusal, never a panic, on a stack no larger than a browser's.

use std::collections::BTreeSet;

use headroom::catalog;
use headroom::estimate::quick_peak;
use headroom::scenario::{Scenario, settings};

/// One entry of each architecture.
fn one_of_each() -> Vec<&'static catalog::ModelEntry> {
    let mut seen = BTreeSet::new();
    let listed = catalog::models().iter();
    listed.filter(|it| seen.insert(it.arch)).collect()
}

/// WebAssembly's stack.
const STACK: usize = 1 << 20;

#[test]
fn any_size_of_any_model_is_answered_or_refused() {
    let run = || {
        for entry in one_of_each() {
            for (name, values) in entry.sizes() {
                let fewer = values.first().map_or(1, |it| it / 2);
                for value in [0, 1, fewer, 3 * fewer + 1, settings::LARGEST_SIZE] {
                    let mut scenario = Scenario::default();
                    scenario.model.id = entry.id.into();
                    scenario.model.dims = [(name.to_string(), value)].into();
                    scenario.data.micro_batch = 1;
                    scenario.data.sequence = 16;
                    eprintln!("{} {name}={value}", entry.id);
                    // Either is an answer.
                    let _ = quick_peak(&scenario);
                }
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run);
    assert!(thread.unwrap().join().is_ok());
}
