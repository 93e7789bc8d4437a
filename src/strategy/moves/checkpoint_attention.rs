//! Selective checkpointing: keep attention.

use super::{Cost, Group, Move, with};
use crate::scenario::Checkpointing;

pub const MOVE: Move = Move {
    id: "keep-attention",
    title: "selective checkpointing: keep attention",
    group: Group::Checkpointing,
    what: "Everything of a layer is run again but its attention.",
    needs: "Nothing is checkpointed yet, and the cache is off.",
    cost: Cost::Time,
    never_worse: false,
    speed: "A little less than checkpointing whole layers, most for long sequences.",
    quality: "Equal: the random state is kept, so dropout drops the same.",
    source: "torch.utils.checkpoint.create_selective_checkpoint_contexts",
    caveat: "With a frozen base, the re-entrant kind stops all training where no input asks for a gradient (transformers#26334): use `use_reentrant=False`.",
    code: "model.gradient_checkpointing_enable({\"use_reentrant\": False})",
    apply: |s| {
        let none = s.training.checkpointing == Checkpointing::None && !s.training.use_cache;
        none.then(|| {
            with(s, |it| {
                it.training.checkpointing = Checkpointing::KeepAttention;
                it.training.checkpoint_every = 1;
            })
        })
    },
};
