//! Selective checkpointing: keep matrix products and attention.

use super::{Cost, Group, Move, with};
use crate::scenario::Checkpointing;

pub const MOVE: Move = Move {
    id: "keep-matmuls",
    title: "selective checkpointing: keep matrix products and attention",
    group: Group::Checkpointing,
    what: "Runs again only what is cheap to run: norms, activations, element-wise kernels.",
    needs: "Nothing is checkpointed yet, and the cache is off.",
    cost: Cost::Time,
    never_worse: false,
    speed: "Only memory-bound kernels run twice.",
    quality: "Equal: the random state is kept, so dropout drops the same.",
    source: "https://pytorch.org/blog/activation-checkpointing-techniques/; torch.utils.checkpoint.create_selective_checkpoint_contexts",
    caveat: "With a frozen base, the re-entrant kind stops all training where no input asks for a gradient (transformers#26334): use `use_reentrant=False`.",
    code: "model.gradient_checkpointing_enable({\"use_reentrant\": False})",
    apply: |s| {
        let none = s.training.checkpointing == Checkpointing::None && !s.training.use_cache;
        none.then(|| {
            with(s, |it| {
                it.training.checkpointing = Checkpointing::KeepMatmuls;
                it.training.checkpoint_every = 1;
            })
        })
    },
};
