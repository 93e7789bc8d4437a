//! Offload activations to the host.

use super::{Cost, Group, Move, copies, with};
use headroom_scenario::Checkpointing;

pub const MOVE: Move = Move {
    id: "offload-activations",
    title: "offload activations to the host",
    group: Group::Checkpointing,
    what: "Every tensor saved for backward is copied to host memory and back.",
    needs: "No checkpointing yet, and the cache is off.",
    cost: Cost::Time,
    never_worse: false,
    speed: "Limited by the link to the host; slow where activations are large relative to the arithmetic.",
    quality: "Identical.",
    source: "torch.autograd.graph.save_on_cpu; torchtune enable_activation_offloading",
    caveat: "Host memory has to hold what leaves the GPU.",
    code: "torch.autograd.graph.save_on_cpu(pin_memory=True)",
    apply: |run| {
        let none = run.training.checkpointing == Checkpointing::None
            && !run.training.use_cache
            && !copies(run);
        none.then(|| {
            with(run, |changed| {
                changed.training.checkpointing = Checkpointing::Offload;
            })
        })
    },
};
