//! Checkpoint every layer.

use super::{Cost, Group, Move, with};
use crate::scenario::Checkpointing;

pub const MOVE: Move = Move {
    id: "checkpointing",
    title: "checkpoint every layer",
    group: Group::Checkpointing,
    what: "Keeps each layer's input only and runs the layer again in backward.",
    needs: "Nothing is checkpointed yet, and the cache is off.",
    cost: Cost::Time,
    never_worse: false,
    speed: "Each layer's forward runs twice: about a third more arithmetic.",
    quality: "Equal: the random state is kept, so dropout drops the same.",
    source: "arXiv 1604.06174; torch.utils.checkpoint",
    caveat: "With a frozen base, the re-entrant kind stops all training where no input asks for a gradient (transformers#26334): use `use_reentrant=False`.",
    code: "model.gradient_checkpointing_enable({\"use_reentrant\": False})",
    apply: |s| {
        let none = s.training.checkpointing == Checkpointing::None && !s.training.use_cache;
        none.then(|| {
            with(s, |it| {
                it.training.checkpointing = Checkpointing::Layers;
                it.training.checkpoint_every = 1;
            })
        })
    },
};
