//! Selective checkpointing: keep every second matrix product.

use super::{Cost, Group, Move, with};
use crate::scenario::Checkpointing;

pub const MOVE: Move = Move {
    id: "keep-half",
    title: "selective checkpointing: keep every second matrix product",
    group: Group::Checkpointing,
    what: "As torchtitan does it: attention and every second matrix product are kept.",
    needs: "Nothing is checkpointed yet, and the cache is off.",
    cost: Cost::Time,
    never_worse: false,
    speed: "Half of the products and all memory-bound kernels run twice.",
    quality: "Equal: the random state is kept, so dropout drops the same.",
    source: "torchtitan distributed/activation_checkpoint.py",
    caveat: "With a frozen base, the re-entrant kind stops all training where no input asks for a gradient (transformers#26334): use `use_reentrant=False`.",
    code: "model.gradient_checkpointing_enable({\"use_reentrant\": False})",
    apply: |s| {
        let none = s.training.checkpointing == Checkpointing::None && !s.training.use_cache;
        none.then(|| {
            with(s, |it| {
                it.training.checkpointing = Checkpointing::KeepHalf;
                it.training.checkpoint_every = 1;
            })
        })
    },
};
