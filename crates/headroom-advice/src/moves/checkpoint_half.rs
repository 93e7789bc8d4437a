//! Checkpoint every second layer.

use super::{Cost, Group, Move, with};
use headroom_scenario::{AdapterMethod, Checkpointing};

pub const MOVE: Move = Move {
    id: "checkpoint-half",
    title: "checkpoint every second layer",
    group: Group::Checkpointing,
    what: "Checkpoints one layer out of two.",
    needs: "No checkpointing yet, and the cache is off.",
    cost: Cost::Time,
    never_worse: false,
    speed: "About a sixth more arithmetic.",
    quality: "Identical: the random state is restored, so dropout drops the same elements.",
    source: "arXiv 1604.06174; torchtitan activation_checkpoint.selective_ac_option",
    caveat: "With a frozen base, re-entrant checkpointing stops all training where no input requires a gradient (transformers#26334): use `use_reentrant=False`.",
    code: "model.gradient_checkpointing_enable({\"use_reentrant\": False})",
    apply: |run| {
        let none = run.training.checkpointing == Checkpointing::None && !run.training.use_cache;
        let prefix = run.training.lora.as_ref().map(|lora| lora.method);
        (none && prefix != Some(AdapterMethod::Prefix)).then(|| {
            with(run, |changed| {
                changed.training.checkpointing = Checkpointing::Layers;
                changed.training.checkpoint_every = 2;
            })
        })
    },
};
