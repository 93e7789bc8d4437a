//! Pack short samples into full sequences.

use super::{Cost, Group, Move, own_loss, reads_sequences, with};
use headroom_scenario::{Distribution, Objective};

pub const MOVE: Move = Move {
    id: "packing",
    title: "pack short samples into full sequences",
    group: Group::Padding,
    what: "Short samples are concatenated until they fill a sequence: no padding, and no mask that keeps attention off its flash kernel.",
    needs: "Padded sequences of text.",
    cost: Cost::Results,
    never_worse: true,
    speed: "No padding is computed, so an epoch takes fewer steps.",
    quality: "A sequence holds several samples, so an optimizer step sees more of them; unless positions and attention are kept apart, samples attend to those before them.",
    source: "arXiv 2107.02027 (packing without cross-contamination); trl SFTConfig.packing",
    caveat: "Each optimizer step sees more samples, by the padding that is gone: check the learning rate.",
    code: "SFTConfig(packing=True)",
    apply: |run| {
        let padded = run.data.padding_mask || run.data.distribution == Distribution::PaddedToMax;
        let packs = own_loss(run) || run.training.task.objective == Objective::Sft;
        (padded && packs && !run.data.packing && reads_sequences(run)).then(|| {
            with(run, |changed| {
                changed.data.packing = true;
                changed.data.padding_mask = false;
            })
        })
    },
};
