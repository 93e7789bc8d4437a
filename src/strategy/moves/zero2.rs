//! ZeRO-2: gradients divided too.

use super::{Cost, Group, Move, with};
use crate::scenario::Parallelism;

pub const MOVE: Move = Move {
    id: "zero2",
    title: "ZeRO-2: gradients divided too",
    group: Group::Sharding,
    what: "Each GPU keeps its share of states and gradients.",
    needs: "Several GPUs, each with the whole model.",
    cost: Cost::Time,
    speed: "About as fast as DDP.",
    quality: "Equal up to the order of sums.",
    source: "arXiv 1910.02054",
    caveat: "",
    code: "deepspeed.initialize(...)",
    switches: &[
        ("deepspeed", "`\"zero_optimization\": {\"stage\": 2}`"),
        ("accelerate", "`deepspeed_config: {zero_stage: 2}`"),
    ],
    apply: |s| {
        let whole = s.hardware.gpus > 1 && s.parallel.strategy == Parallelism::Ddp;
        whole.then(|| with(s, |it| it.parallel.strategy = Parallelism::Zero2))
    },
};
