//! Fused linear cross-entropy (Liger).

use super::language_model;
use super::{Cost, Group, Move, with};
use crate::scenario::LossKernel;

pub const MOVE: Move = Move {
    id: "liger-loss",
    title: "fused linear cross-entropy (Liger)",
    group: Group::Loss,
    what: "Logits never exist as a whole; the gradients of the head are made in forward, chunk by chunk.",
    needs: "A language model whose loss makes all logits at once.",
    cost: Cost::Free,
    never_worse: false,
    speed: "About as fast: the same products, in smaller pieces.",
    quality: "Equal up to rounding.",
    source: "arXiv 2410.10989; Liger-Kernel ops/fused_linear_cross_entropy.py",
    caveat: "The output has no logits, so metrics computed from them need a pass of their own.",
    code: "liger_kernel.transformers.AutoLigerKernelForCausalLM",
    apply: |s| {
        let possible = language_model(s) && s.training.loss == LossKernel::Library;
        possible.then(|| with(s, |it| it.training.loss = LossKernel::LigerLinear))
    },
};
