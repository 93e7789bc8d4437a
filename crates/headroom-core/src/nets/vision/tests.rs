//! Peaks of image models of the catalogue, next to those of the libraries over three steps.

use crate::nets::recorded::{Case, check, training};
use headroom_scenario::{Attention, Checkpointing, Optimizer, Precision, Training};

/// A model with some sizes changed, over three steps.
fn case(id: &str, changes: &[(&str, u64)], micro_batch: u64, training: &Training) -> Case {
    Case::of_catalog(id, changes)
        .batch(micro_batch, 0)
        .trained(training)
        .three_steps()
}

fn checkpointed() -> Training {
    Training {
        checkpointing: Checkpointing::Layers,
        ..training(Precision::AmpBf16, Optimizer::AdamW)
    }
}

#[test]
fn tiny_vit_skips_blocks_as_its_name_says() {
    let large = case("tiny-vit-11m", &[], 8, &checkpointed());
    check(&large, 393_812_480);
    let plain = training(Precision::Fp32, Optimizer::Sgd);
    let small = case("tiny-vit-5m", &[("img", 160)], 8, &plain);
    check(&small, 434_727_424);
}

#[test]
fn swin_sums_the_gradients_of_biases_by_their_index() {
    let frozen = Training {
        freeze: vec!["embeddings".into()],
        ..training(Precision::Fp32, Optimizer::AdamW)
    };
    check(&case("swin-tiny", &[], 8, &frozen), 1_195_941_376);
}

#[test]
fn segment_anything_has_windowed_and_global_attention() {
    let small = [("img", 512), ("layers", 4), ("global_layers", 1)];
    check(&case("sam-vit-b", &small, 2, &checkpointed()), 696_225_792);
    let eager = Training {
        attention: Attention::Eager,
        ..training(Precision::Fp32, Optimizer::Sgd)
    };
    let small = [("img", 512), ("layers", 4), ("global_layers", 2)];
    check(&case("sam-vit-b", &small, 2, &eager), 1_032_552_960);
}
