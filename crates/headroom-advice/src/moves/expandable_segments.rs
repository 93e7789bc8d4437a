//! Expandable segments.

use super::{Cost, Group, Move, Results, with};
use headroom_catalog::Os;

pub const MOVE: Move = Move {
    id: "expandable-segments",
    title: "expandable segments",
    group: Group::Allocator,
    what: "The allocator grows one segment instead of holding many of fixed size, so reserved memory stays close to allocated.",
    needs: "Linux; the option is off.",
    cost: Cost::Free,
    results: Results::Identical,
    never_worse: false,
    speed: "Practically no change.",
    quality: "Identical.",
    source: "https://docs.pytorch.org/docs/stable/notes/cuda.html; torch 2.9.1 ignores the option under the variable's new name (pytorch#183387)",
    caveat: "Tensors cannot be shared with other processes through CUDA IPC.",
    code: "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True PYTORCH_ALLOC_CONF=expandable_segments:True",
    apply: |run| {
        let possible = !run.runtime.expandable_segments && run.hardware.os == Os::Linux;
        possible.then(|| with(run, |changed| changed.runtime.expandable_segments = true))
    },
};
