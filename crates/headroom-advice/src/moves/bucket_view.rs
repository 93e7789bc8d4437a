//! Gradients as views of DDP's buckets.

use super::{Cost, Group, Move, Results, with};
use headroom_scenario::Parallelism;

pub const MOVE: Move = Move {
    id: "bucket-view",
    title: "gradients as views of DDP's buckets",
    group: Group::Buckets,
    what: "Gradients are stored in DDP's communication buckets instead of in addition to them.",
    needs: "DDP on several GPUs without `gradient_as_bucket_view`.",
    cost: Cost::Free,
    results: Results::Identical,
    never_worse: true,
    speed: "Slightly faster: no copies into the buckets.",
    quality: "Identical.",
    source: "torch.nn.parallel.DistributedDataParallel, gradient_as_bucket_view; pytorch#41954: 8250 MB became 7183 MB for a model of 1 GB",
    caveat: "Gradients cannot be detached in place or replaced by other tensors.",
    code: "DistributedDataParallel(model, gradient_as_bucket_view=True)",
    apply: |run| {
        let possible = run.hardware.gpus > 1
            && run.parallel.strategy == Parallelism::Ddp
            && !run.parallel.bucket_view;
        possible.then(|| with(run, |changed| changed.parallel.bucket_view = true))
    },
};
