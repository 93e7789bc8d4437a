//! Selective checkpointing: keep attention.

use super::{Cost, Group, Move, with};
use headroom_scenario::Checkpointing;

pub const MOVE: Move = Move {
    id: "keep-attention",
    title: "selective checkpointing: keep attention",
    group: Group::Checkpointing,
    what: "Recomputes everything in a layer except attention.",
    needs: "No checkpointing yet, and the cache is off.",
    cost: Cost::Time,
    never_worse: false,
    speed: "Slightly faster than checkpointing whole layers, most for long sequences.",
    quality: "Identical: the random state is restored, so dropout drops the same elements.",
    source: "torch.utils.checkpoint.create_selective_checkpoint_contexts",
    caveat: "With a frozen base, re-entrant checkpointing stops all training where no input requires a gradient (transformers#26334): use `use_reentrant=False`.",
    code: "model.gradient_checkpointing_enable({\"use_reentrant\": False})",
    apply: |run| {
        let none = run.training.checkpointing == Checkpointing::None && !run.training.use_cache;
        (none && !run.parallel.splits_backward()).then(|| {
            with(run, |changed| {
                changed.training.checkpointing = Checkpointing::KeepAttention;
                changed.training.checkpoint_every = 1;
            })
        })
    },
};
