//! Bf16 autocast.

use super::{Cost, Group, Move, Results, autocasts, has_bf16, with};
use headroom_scenario::Precision;

pub const MOVE: Move = Move {
    id: "amp-bf16",
    title: "bf16 autocast",
    group: Group::Precision,
    what: "Runs matrix products in bf16 and saves their inputs in bf16, over fp32 weights.",
    needs: "fp32 training; a GPU with bf16.",
    cost: Cost::Results,
    results: Results::SameBatch,
    never_worse: false,
    speed: "Much faster on tensor cores.",
    quality: "The standard recipe: no loss of quality in practice.",
    source: "arXiv 1905.12322; torch.amp",
    caveat: "Weights, gradients and states stay in fp32: only activations shrink, and bf16 copies of the weights are added.",
    code: "torch.autocast(\"cuda\", torch.bfloat16)",
    apply: |run| {
        let fp32 = run.training.precision == Precision::Fp32 && has_bf16(run) && autocasts(run);
        fp32.then(|| {
            with(run, |changed| {
                changed.training.precision = Precision::AmpBf16;
            })
        })
    },
};
