//! Pack short samples into full sequences.

use super::{Cost, Group, Move, reads_sequences, with};
use crate::scenario::Distribution;

pub const MOVE: Move = Move {
    id: "packing",
    title: "pack short samples into full sequences",
    group: Group::Padding,
    what: "Short samples are joined until they fill the sequence: nothing is padded, and no mask takes attention off its flash kernel.",
    needs: "Padded sequences of text.",
    cost: Cost::Results,
    never_worse: true,
    speed: "A step computes no padding, so an epoch takes fewer of them.",
    quality: "A sequence holds several samples, so an optimizer step sees more of them; unless positions and attention are kept apart, samples see those before them.",
    source: "arXiv 2107.02027 (packing without cross-contamination); trl SFTConfig.packing",
    caveat: "Samples to an optimizer step rise by the padding that was there: see the learning rate.",
    code: "SFTConfig(packing=True)",
    apply: |s| {
        let padded = s.data.padding_mask || s.data.distribution == Distribution::PaddedToMax;
        (padded && !s.data.packing && reads_sequences(s)).then(|| {
            with(s, |it| {
                it.data.packing = true;
                it.data.padding_mask = false;
            })
        })
    },
};
