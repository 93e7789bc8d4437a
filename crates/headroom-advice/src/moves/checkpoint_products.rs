//! Selective checkpointing: keep every second matrix product.

use super::{Cost, Group, Move, with};
use headroom_scenario::Checkpointing;

pub const MOVE: Move = Move {
    id: "keep-half",
    title: "selective checkpointing: keep every second matrix product",
    group: Group::Checkpointing,
    what: "Keeps attention and every second matrix product, as torchtitan does.",
    needs: "No checkpointing yet, and the cache is off.",
    cost: Cost::Time,
    never_worse: false,
    speed: "Half of the matrix products and all memory-bound kernels run twice.",
    quality: "Identical: the random state is restored, so dropout drops the same elements.",
    source: "torchtitan distributed/activation_checkpoint.py",
    caveat: "With a frozen base, re-entrant checkpointing stops all training where no input requires a gradient (transformers#26334): use `use_reentrant=False`.",
    code: "model.gradient_checkpointing_enable({\"use_reentrant\": False})",
    apply: |run| {
        let none = run.training.checkpointing == Checkpointing::None && !run.training.use_cache;
        (none && !run.parallel.splits_backward()).then(|| {
            with(run, |changed| {
                changed.training.checkpointing = Checkpointing::KeepHalf;
                changed.training.checkpoint_every = 1;
            })
        })
    },
};
