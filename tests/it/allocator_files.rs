//! Recorded runs of the real allocator, replayed: every counter after every step must be equal to the byte.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use headroom_core::allocator::file::replay;

/// Steps with counters; calls to the driver, where the recording has them, and failures.
#[track_caller]
fn check(name: &str, steps: usize, driver_calls: usize) {
    let path = headroom_testing::root()
        .join("tests/data/allocator")
        .join(name);
    let report = replay(&path).unwrap();
    assert_eq!((report.steps, report.wrong_steps), (steps, 0), "{report}");
    let calls = (report.driver_calls, report.wrong_driver_calls);
    assert_eq!(calls, (driver_calls, 0), "{report}");
}

#[test]
fn training_steps() {
    check("llama-ln-cap-tight.jsonl.gz", 2, 26);
    check("llama-ln-exp.jsonl.gz", 24, 27);
    check("llama-ln-split32-cap.jsonl.gz", 24, 205);
    check("llama-side-stream.jsonl.gz", 24, 30);
}

#[test]
fn random_requests() {
    check("random-gc-cap.jsonl.gz", 500, 0);
    check("random-exp-cap.jsonl.gz", 504, 4);
    check("random-split-cap.jsonl.gz", 512, 12);
}
