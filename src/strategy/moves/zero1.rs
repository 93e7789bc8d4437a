//! ZeRO-1: states divided over the GPUs.

use super::{Cost, Group, Move, with};
use crate::scenario::Parallelism;

pub const MOVE: Move = Move {
    id: "zero1",
    title: "ZeRO-1: states divided over the GPUs",
    group: Group::Sharding,
    what: "Each GPU keeps its share of the optimizer's states and gathers what it stepped.",
    needs: "Several GPUs, each with the whole model.",
    cost: Cost::Time,
    speed: "As fast as DDP.",
    quality: "Equal up to the order of sums.",
    source: "arXiv 1910.02054",
    caveat: "",
    code: "deepspeed.initialize(...)",
    switches: &[
        ("deepspeed", "`\"zero_optimization\": {\"stage\": 1}`"),
        ("plain", "`torch.distributed.optim.ZeroRedundancyOptimizer`"),
    ],
    apply: |s| {
        let whole = s.hardware.gpus > 1 && s.parallel.strategy == Parallelism::Ddp;
        whole.then(|| with(s, |it| it.parallel.strategy = Parallelism::Zero1))
    },
};
