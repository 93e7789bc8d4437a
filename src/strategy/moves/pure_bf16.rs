//! Weights, gradients and states in bf16.

use super::has_bf16;
use super::{Cost, Group, Move, with};
use crate::scenario::Precision;

pub const MOVE: Move = Move {
    id: "bf16",
    title: "weights, gradients and states in bf16",
    group: Group::Precision,
    what: "Everything in two bytes: no fp32 copy of the weights.",
    needs: "fp32 weights that are trained; a card with bf16.",
    cost: Cost::Results,
    never_worse: false,
    speed: "Faster: half the traffic of the optimizer.",
    quality: "Updates smaller than 1/256 of a weight are lost: fine-tuning mostly bears it, long pre-training does not.",
    source: "arXiv 2010.06192 (stochastic rounding and Kahan sums mend it); torchtune recipes train so by default",
    caveat: "",
    code: "model.to(torch.bfloat16)",
    apply: |s| {
        let wider = matches!(s.training.precision, Precision::Fp32 | Precision::AmpBf16);
        (wider && s.training.lora.is_none() && has_bf16(s))
            .then(|| with(s, |it| it.training.precision = Precision::Bf16))
    },
};
