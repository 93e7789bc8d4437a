//! Weights, gradients and states in bf16.

use super::has_bf16;
use super::{Cost, Group, Move, Results, with};
use headroom_scenario::Precision;

pub const MOVE: Move = Move {
    id: "bf16",
    title: "weights, gradients and states in bf16",
    group: Group::Precision,
    what: "Two bytes each for weights, gradients and states, and no fp32 copy of the weights.",
    needs: "Trained fp32 weights; a GPU with bf16.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: false,
    speed: "Faster: the optimizer moves half the bytes.",
    quality: "Updates smaller than 1/256 of a weight are lost: fine-tuning mostly tolerates that, long pre-training does not.",
    source: "arXiv 2010.06192 (stochastic rounding and Kahan summation compensate); torchtune recipes train so by default",
    caveat: "",
    code: "model.to(torch.bfloat16)",
    apply: |run| {
        let wider = matches!(run.training.precision, Precision::Fp32 | Precision::AmpBf16);
        (wider && run.training.lora.is_none() && has_bf16(run))
            .then(|| with(run, |changed| changed.training.precision = Precision::Bf16))
    },
};
