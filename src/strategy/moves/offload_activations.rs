//! Keep activations on the host.

use super::{Cost, Group, Move, with};
use crate::scenario::Checkpointing;

pub const MOVE: Move = Move {
    id: "offload-activations",
    title: "keep activations on the host",
    group: Group::Checkpointing,
    what: "Every tensor kept for backward is copied to host memory and back.",
    needs: "Nothing is checkpointed yet, and the cache is off.",
    cost: Cost::Time,
    never_worse: false,
    speed: "Bound by the link to the host; slow where activations are large against the arithmetic.",
    quality: "Equal.",
    source: "torch.autograd.graph.save_on_cpu; torchtune enable_activation_offloading",
    caveat: "Host memory must hold what the card does not.",
    code: "torch.autograd.graph.save_on_cpu(pin_memory=True)",
    apply: |s| {
        let none = s.training.checkpointing == Checkpointing::None && !s.training.use_cache;
        none.then(|| {
            with(s, |it| {
                it.training.checkpointing = Checkpointing::Offload;
            })
        })
    },
};
