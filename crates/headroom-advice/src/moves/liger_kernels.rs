//! Liger's norms, rotary embeddings and gated layers.

use super::{Cost, Group, Move, Results, with};
use super::{has_liger, own_loss};
use headroom_scenario::Kernels;

pub const MOVE: Move = Move {
    id: "liger-kernels",
    title: "Liger's norms, rotary embeddings and gated layers",
    group: Group::Kernels,
    what: "Fused kernels that save fewer tensors for backward than the library's Python code.",
    needs: "A decoder supported by Liger, trained on its own loss; a GPU supported by Triton.",
    cost: Cost::Free,
    results: Results::Rounding,
    never_worse: true,
    speed: "Faster: fewer passes over memory.",
    quality: "Identical up to rounding.",
    source: "arXiv 2410.10989; Liger-Kernel ops/",
    caveat: "",
    code: "liger_kernel.transformers.apply_liger_kernel_to_llama(...)",
    apply: |run| {
        let possible = has_liger(run)
            // In post-training trainers the same flag enables another loss.
            && own_loss(run)
            && run.training.kernels != Kernels::Liger;
        possible.then(|| with(run, |changed| changed.training.kernels = Kernels::Liger))
    },
};
