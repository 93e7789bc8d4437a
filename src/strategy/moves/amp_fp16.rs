//! Fp16 autocast with a scaler.

use super::has_bf16;
use super::{Cost, Group, Move, with};
use crate::scenario::Precision;

pub const MOVE: Move = Move {
    id: "amp-fp16",
    title: "fp16 autocast with a scaler",
    group: Group::Precision,
    what: "Matrix products and what is kept for them in fp16, over fp32 weights, with scaled losses.",
    needs: "fp32 training on a card without bf16.",
    cost: Cost::Results,
    never_worse: false,
    speed: "Much faster on tensor cores.",
    quality: "Overflows skip steps; some models (T5, some ViTs) overflow for good.",
    source: "arXiv 1710.03740; torch.amp.GradScaler",
    caveat: "",
    code: "torch.amp.GradScaler(\"cuda\")",
    apply: |s| {
        let fp32 = s.training.precision == Precision::Fp32 && !has_bf16(s);
        fp32.then(|| with(s, |it| it.training.precision = Precision::AmpFp16))
    },
};
