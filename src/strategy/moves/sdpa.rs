//! Fused attention (SDPA).

use super::{Cost, Group, Move, with};
use crate::scenario::Attention;

pub const MOVE: Move = Move {
    id: "sdpa",
    title: "fused attention (SDPA)",
    group: Group::Attention,
    what: "Attention in one kernel that keeps no matrix of scores.",
    needs: "Eager attention.",
    cost: Cost::Free,
    never_worse: false,
    speed: "Faster.",
    quality: "Equal up to rounding.",
    source: "arXiv 2307.08691; transformers attn_implementation",
    caveat: "A real padding mask takes SDPA off the flash kernel; attention weights cannot be returned.",
    code: "AutoModel.from_pretrained(..., attn_implementation='sdpa')",
    apply: |s| {
        let eager = s.training.attention == Attention::Eager;
        eager.then(|| with(s, |it| it.training.attention = Attention::Sdpa))
    },
};
