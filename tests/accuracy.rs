//! Predictions stay as near to recorded runs as they have come.

#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::io::Read;

use headroom::truth::{Metric, score};

/// Scores a compressed file of records (inputs and true peaks only) and compares with the most that each figure may be, in percent.
#[track_caller]
fn check(file: &str, metric: Metric, unsupported: usize, median: f64, p90: f64) {
    let packed = std::fs::read(format!("tests/data/{file}.jsonl.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_string(&mut text)
        .unwrap();
    let all = score(&text, metric).all;
    assert!(
        all.cases > 40 && all.unsupported <= unsupported && all.median <= median && all.p90 <= p90,
        "{all}"
    );
}

#[test]
fn training_steps() {
    check("truth_simulated", Metric::Allocated, 13, 0.1, 0.5);
    check("truth_simulated", Metric::Reserved, 13, 1.0, 5.0);
}

#[test]
fn further_methods() {
    check("truth_extra", Metric::Allocated, 9, 0.5, 2.0);
}
