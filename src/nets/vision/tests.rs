//! Peaks of whole runs of the catalogue's image models, in rounded bytes, beside those that the real libraries reached
//! (PyTorch 2.15, transformers 5.23, timm 1.0, diffusers 0.39 on a bookkeeping GPU, the peak over three steps).

use crate::allocator::Settings;
use crate::catalog::model;
use crate::estimate::Peaks;
use crate::nets::{Sizes, build};
use crate::scenario::{Attention, Checkpointing, Data, Optimizer, Precision, Training};
use crate::step::{Course, run};
use crate::tape::Machine;

/// A model with some sizes of its own, over three steps of AdamW.
#[track_caller]
fn check(
    id: &str,
    sizes: &[(&str, u64)],
    micro_batch: u64,
    change: impl FnOnce(&mut Training),
    expected: u64,
) {
    let entry = model(id).unwrap();
    let mut all = Sizes::from_entry(entry);
    for (name, value) in sizes {
        all.set(name, *value);
    }
    let mut training = Training {
        optimizer: Optimizer::AdamW,
        precision: Precision::Fp32,
        ..Training::default()
    };
    change(&mut training);
    let data = Data {
        micro_batch,
        padding_mask: false,
        ..Data::default()
    };
    let net = build(entry.arch, &all).unwrap();
    let course = Course::from_the_start(3);
    let run = run(&*net, &data, &training, Machine::default(), course);
    let peak = Peaks::replayed(&run.trace, &Settings::expandable())
        .highest()
        .map_or(0, |peak| peak.bytes);
    // Scalars that only decide a branch are not all made.
    let off = peak.abs_diff(expected);
    assert!(off <= 4096, "{id}: {peak} instead of {expected}");
}

fn checkpointed(training: &mut Training) {
    training.checkpointing = Checkpointing::Layers;
    training.precision = Precision::AmpBf16;
}

#[test]
fn tiny_vit_skips_blocks_where_its_name_says_so() {
    check("tiny-vit-11m", &[], 8, checkpointed, 393_812_480);
    let plain = |training: &mut Training| training.optimizer = Optimizer::Sgd;
    check("tiny-vit-5m", &[("img", 160)], 8, plain, 434_727_424);
}

#[test]
fn swin_sums_the_gradients_of_biases_by_their_index() {
    let frozen = |training: &mut Training| training.freeze.push("embeddings".into());
    check("swin-tiny", &[], 8, frozen, 1_195_941_376);
}

#[test]
fn segment_anything_looks_through_windows_and_at_the_whole() {
    let small = [("img", 512), ("layers", 4), ("global_layers", 1)];
    check("sam-vit-b", &small, 2, checkpointed, 696_225_792);
    let eager = |training: &mut Training| {
        training.optimizer = Optimizer::Sgd;
        training.attention = Attention::Eager;
    };
    let small = [("img", 512), ("layers", 4), ("global_layers", 2)];
    check("sam-vit-b", &small, 2, eager, 1_032_552_960);
}
