//! Fused attention (SDPA).

use super::{Cost, Group, Move, Results, with};
use headroom_scenario::Attention;

pub const MOVE: Move = Move {
    id: "sdpa",
    title: "fused attention (SDPA)",
    group: Group::Attention,
    what: "Computes attention in one kernel that does not store the score matrix.",
    needs: "Eager attention.",
    cost: Cost::Free,
    results: Results::Rounding,
    never_worse: false,
    speed: "Faster.",
    quality: "Identical up to rounding.",
    source: "arXiv 2307.08691; transformers attn_implementation",
    caveat: "A padding mask rules out the flash kernel; attention weights cannot be returned.",
    code: "AutoModel.from_pretrained(..., attn_implementation='sdpa')",
    apply: |run| {
        let eager = run.training.attention == Attention::Eager;
        eager.then(|| with(run, |changed| changed.training.attention = Attention::Sdpa))
    },
};
