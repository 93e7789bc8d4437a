//! Selective checkpointing: keep matrix products and attention.

use super::{Cost, Group, Move, with};
use headroom_scenario::Checkpointing;

pub const MOVE: Move = Move {
    id: "keep-matmuls",
    title: "selective checkpointing: keep matrix products and attention",
    group: Group::Checkpointing,
    what: "Recomputes only what is cheap: norms, activations, element-wise kernels.",
    needs: "No checkpointing yet, and the cache is off.",
    cost: Cost::Time,
    never_worse: false,
    speed: "Only memory-bound kernels run twice.",
    quality: "Identical: the random state is restored, so dropout drops the same elements.",
    source: "https://pytorch.org/blog/activation-checkpointing-techniques/; torch.utils.checkpoint.create_selective_checkpoint_contexts",
    caveat: "With a frozen base, re-entrant checkpointing stops all training where no input requires a gradient (transformers#26334): use `use_reentrant=False`.",
    code: "model.gradient_checkpointing_enable({\"use_reentrant\": False})",
    apply: |run| {
        let none = run.training.checkpointing == Checkpointing::None && !run.training.use_cache;
        (none && !run.parallel.splits_backward()).then(|| {
            with(run, |changed| {
                changed.training.checkpointing = Checkpointing::KeepMatmuls;
                changed.training.checkpoint_every = 1;
            })
        })
    },
};
