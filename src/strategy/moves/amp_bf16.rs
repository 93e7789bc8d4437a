//! Bf16 autocast.

use super::has_bf16;
use super::{Cost, Group, Move, with};
use crate::scenario::Precision;

pub const MOVE: Move = Move {
    id: "amp-bf16",
    title: "bf16 autocast",
    group: Group::Precision,
    what: "Matrix products and what is kept for them in bf16, over fp32 weights.",
    needs: "fp32 training; a card with bf16.",
    cost: Cost::Results,
    never_worse: false,
    speed: "Much faster on tensor cores.",
    quality: "The usual recipe: no loss seen in practice.",
    source: "arXiv 1905.12322; torch.amp",
    caveat: "fp32 weights, gradients and states stay: only activations shrink, and copies of weights come on top.",
    code: "torch.autocast(\"cuda\", torch.bfloat16)",
    apply: |s| {
        let fp32 = s.training.precision == Precision::Fp32 && has_bf16(s);
        fp32.then(|| with(s, |it| it.training.precision = Precision::AmpBf16))
    },
};
