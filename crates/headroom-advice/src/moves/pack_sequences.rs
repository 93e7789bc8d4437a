//! Pack short samples into full sequences.

use super::{Cost, Group, Move, Results, own_loss, reads_sequences, with};
use headroom_scenario::{Distribution, Objective};

pub const MOVE: Move = Move {
    id: "packing",
    title: "pack short samples into full sequences",
    group: Group::Padding,
    what: "Short samples are concatenated until they fill a sequence: no padding, and no mask that rules out the flash kernel.",
    needs: "Padded text sequences.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: true,
    speed: "No computation on padding, so an epoch takes fewer steps.",
    quality: "A sequence holds several samples, so an optimizer step sees more of them; unless positions and attention are reset per sample, samples attend to those before them.",
    source: "arXiv 2107.02027 (packing without cross-contamination); trl SFTConfig.packing",
    caveat: "Each optimizer step sees more samples: check the learning rate.",
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
