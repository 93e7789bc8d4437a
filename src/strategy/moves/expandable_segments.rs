//! Expandable segments.

use super::{Cost, Group, Move, with};
use crate::catalog::Os;

pub const MOVE: Move = Move {
    id: "expandable-segments",
    title: "expandable segments",
    group: Group::Allocator,
    what: "The allocator grows one segment instead of holding many of fixed sizes: what is reserved stays close to what is allocated.",
    needs: "Linux; the option is off.",
    cost: Cost::Free,
    never_worse: false,
    speed: "None to speak of.",
    quality: "None.",
    source: "https://docs.pytorch.org/docs/stable/notes/cuda.html; torch 2.9.1 ignores it under the new name of the variable (pytorch#183387)",
    caveat: "Tensors cannot be shared with other processes through CUDA IPC.",
    code: "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True PYTORCH_ALLOC_CONF=expandable_segments:True",
    apply: |s| {
        let possible = !s.runtime.expandable_segments && s.hardware.os == Os::Linux;
        possible.then(|| with(s, |it| it.runtime.expandable_segments = true))
    },
};
