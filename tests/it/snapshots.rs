//! Memory snapshots of real runs, compared with their plans. They were taken by `torch.cuda.memory._dump_snapshot` (PyTorch 2.15,
//! transformers 5.23) of a GPT-2 of two layers, on the unmodified CUDA build over a device whose memory is only bookkept: the
//! allocations and their stacks are the real ones.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use headroom_base::units::Bytes;
use headroom_core::estimate::Prediction;
use headroom_io::import::snapshot::{Comparison, Snapshot};
use headroom_scenario::{Scenario, settings};

fn compared(name: &str) -> Comparison {
    let bytes = headroom_testing::unpacked(&format!("tests/data/snapshots/{name}.pickle.gz"));
    let mut scenario = Scenario::default();
    for (key, value) in [
        ("model", "gpt2"),
        (
            "dims",
            "layers=2,hidden=96,heads=2,vocab=1000,ffn=384,ctx=64",
        ),
        ("mb", "2"),
        ("seq", "64"),
        ("precision", "fp32"),
    ] {
        settings::set(&mut scenario, key, value).unwrap();
    }
    let snapshot = Snapshot::read(&bytes).unwrap();
    Comparison::of(&snapshot.devices[0], &Prediction::new(scenario)).unwrap()
}

#[test]
fn a_run_as_planned_differs_in_nothing() {
    let found = compared("equal");
    assert!(found.is_equal(), "{found:?}");
    assert_eq!((found.planned, found.held), (found.matched, found.matched));
}

#[test]
fn what_a_loop_keeps_is_told_with_the_lines_that_made_it() {
    // Four steps, of which each keeps its logits: 2 × 64 × 1000 floats.
    let found = compared("hoard");
    assert_eq!((&found.absent, &found.resized), (&vec![], &vec![]));
    let [kept] = &found.unplanned[..] else {
        panic!("{:?}", found.unplanned);
    };
    assert_eq!((kept.count, kept.each), (4, Bytes::new(2 * 64 * 1000 * 4)));
    assert!(
        kept.stack[0].starts_with("gpt2/modeling_gpt2.py:"),
        "{:?}",
        kept.stack
    );
    assert!(
        kept.stack
            .iter()
            .any(|line| line.starts_with("me/train.py:")),
        "{:?}",
        kept.stack
    );
}

#[test]
fn a_larger_batch_is_told_by_its_ratio() {
    let found = compared("batch");
    assert_eq!(found.scale, Some(2.0));
    let [largest, ..] = &found.resized[..] else {
        panic!("{found:?}");
    };
    assert_eq!(largest.each, largest.planned.each * 2);
    // But for what is too small to grow, nothing else differs.
    let rest = found.unplanned.iter().map(|rest| rest.each * rest.count);
    let rest: Bytes = rest
        .chain(found.absent.iter().map(|rest| rest.each * rest.count))
        .sum();
    assert!(rest < Bytes::new(32 << 10), "{rest} of {found:?}");
}
