//! FSDP 2: weights divided too.

use super::{Cost, Group, Move, with};
use crate::scenario::Parallelism;

pub const MOVE: Move = Move {
    id: "fsdp2",
    title: "FSDP 2: weights divided too",
    group: Group::Sharding,
    what: "Each GPU keeps its share of weights, gradients and states, and gathers one layer at a time.",
    needs: "Several GPUs, each with the whole model.",
    cost: Cost::Time,
    speed: "Weights go over the links twice for each pass: slow between machines.",
    quality: "Equal up to the order of sums.",
    source: "arXiv 2304.11277; torch.distributed.fsdp.fully_shard",
    caveat: "",
    code: "fully_shard(model)",
    switches: &[
        (
            "plain",
            "`fully_shard(layer)` for each layer, then for the model",
        ),
        ("accelerate", "`fsdp_config: {fsdp_version: 2}`"),
        ("hf", "`fsdp: full_shard`"),
        (
            "torchtitan",
            "`--parallelism.data_parallel_shard_degree -1`",
        ),
    ],
    apply: |s| {
        let whole = s.hardware.gpus > 1 && s.parallel.strategy == Parallelism::Ddp;
        let changed = whole.then(|| with(s, |it| it.parallel.strategy = Parallelism::Fsdp2));
        // Some optimizers and quantised weights cannot be sharded: the checks know which.
        changed.filter(|it| it.check().len() <= s.check().len())
    },
};
