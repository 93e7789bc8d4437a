//! Fused linear cross-entropy (Liger).

use super::{Cost, Group, Move, Results, with};
use super::{own_loss, writes_text};
use headroom_scenario::LossKernel;

pub const MOVE: Move = Move {
    id: "liger-loss",
    title: "fused linear cross-entropy (Liger)",
    group: Group::Loss,
    what: "The full logits never exist; gradients of the output projection are computed chunk by chunk in the forward pass.",
    needs: "A language model whose loss computes all logits at once.",
    cost: Cost::Free,
    results: Results::Rounding,
    never_worse: false,
    speed: "About as fast: the same products in smaller pieces.",
    quality: "Identical up to rounding.",
    source: "arXiv 2410.10989; Liger-Kernel ops/fused_linear_cross_entropy.py",
    caveat: "The model returns no logits, so metrics based on them need a separate pass.",
    code: "liger_kernel.transformers.AutoLigerKernelForCausalLM",
    apply: |run| {
        let possible =
            writes_text(run) && own_loss(run) && run.training.loss == LossKernel::Library;
        possible.then(|| {
            with(run, |changed| {
                changed.training.loss = LossKernel::LigerLinear;
            })
        })
    },
};
