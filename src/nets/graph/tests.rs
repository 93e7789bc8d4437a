use std::rc::Rc;

use super::{Graph, net, read};
use crate::allocator::Settings;
use crate::estimate::Peaks;
use crate::scenario::{Checkpointing, Data, Optimizer, Precision, Training};
use crate::step::{RunPlan, run};
use crate::tape::Machine;

const FIXTURE: &str = include_str!("fixtures/conv_vae.json");

fn peak(graph: Graph, batch: u64, length: u64, precision: Precision) -> Option<u64> {
    let data = Data {
        micro_batch: batch,
        sequence: length,
        ..Data::default()
    };
    let training = Training {
        precision,
        optimizer: Optimizer::AdamW,
        checkpointing: Checkpointing::None,
        ..Training::default()
    };
    let net = net(Rc::new(graph));
    net.supports(&data, &training).ok()?;
    let run = run(
        &*net,
        &data,
        &training,
        Machine::default(),
        RunPlan::first_steps(3),
    );
    Some(
        Peaks::replayed(&run.trace, &Settings::default())
            .highest()?
            .bytes,
    )
}

/// Peaks of PyTorch 2.15 on a bookkeeping GPU, at batches that were not recorded.
#[track_caller]
fn check(batch: u64, precision: Precision, expected: u64) {
    let graph = read(FIXTURE).unwrap();
    assert_eq!(peak(graph, batch, 64, precision), Some(expected));
}

#[test]
fn a_recorded_model_takes_what_the_real_one_takes() {
    check(16, Precision::Fp32, 167_518_720);
    check(64, Precision::AmpBf16, 272_072_192);
    check(256, Precision::Bf16, 732_227_584);
}

#[test]
fn what_was_not_recorded_is_refused() {
    let graph = || read(FIXTURE).unwrap();
    assert_eq!(peak(graph(), 16, 64, Precision::Fp64), None);
    assert!(read("{}").is_err());
    assert!(read(&FIXTURE.replace("\"headroom\":1", "\"headroom\":2")).is_err());
}

/// Files that someone altered: refused, or run in bounded time; never a panic.
#[test]
fn altered_files_do_no_harm() {
    let mut random: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below.max(1) as u64) as usize
    };
    let pieces = [
        "9",
        "0",
        "-1",
        "]",
        "[",
        "99999999999",
        ",",
        "\"",
        "[1,1]",
        "null",
        "4294967295",
    ];
    let mut ran = 0;
    for _ in 0..400 {
        let mut text = FIXTURE.to_string();
        for _ in 0..=next(3) {
            let at = next(text.len());
            let end = (at + next(3)).min(text.len());
            if text.is_char_boundary(at) && text.is_char_boundary(end) {
                text.replace_range(at..end, pieces[next(pieces.len())]);
            }
        }
        if let Ok(graph) = read(&text) {
            ran += usize::from(peak(graph, 4, 64, Precision::Fp32).is_some());
        }
    }
    assert!(ran > 10, "{ran}");
}
