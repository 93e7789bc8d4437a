//! Gradients as views of DDP's buckets.

use super::{Cost, Group, Move, with};
use crate::scenario::Parallelism;

pub const MOVE: Move = Move {
    id: "bucket-view",
    title: "gradients as views of DDP's buckets",
    group: Group::Buckets,
    what: "DDP's gradients live in its communication buckets instead of beside them.",
    needs: "DDP on several GPUs, without the option.",
    cost: Cost::Free,
    never_worse: true,
    speed: "A little faster: nothing is copied into the buckets.",
    quality: "None.",
    source: "torch.nn.parallel.DistributedDataParallel, gradient_as_bucket_view; pytorch#41954: 8250 MB became 7183 MB for a model of 1 GB",
    caveat: "Gradients cannot be detached or replaced by other tensors.",
    code: "DistributedDataParallel(model, gradient_as_bucket_view=True)",
    apply: |s| {
        let possible = s.hardware.gpus > 1
            && s.parallel.strategy == Parallelism::Ddp
            && !s.parallel.bucket_view;
        possible.then(|| with(s, |it| it.parallel.bucket_view = true))
    },
};
