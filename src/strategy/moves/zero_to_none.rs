//! Zero gradients to None.

use super::{Cost, Group, Move, with};

pub const MOVE: Move = Move {
    id: "zero-to-none",
    title: "zero gradients to None",
    group: Group::Zeroing,
    what: "Gradients are let go after the step instead of being filled with zeros, so the next forward pass runs without them.",
    needs: "`zero_grad(set_to_none=False)` is used.",
    cost: Cost::Free,
    never_worse: true,
    speed: "A little faster: nothing is filled.",
    quality: "None.",
    source: "torch.optim.Optimizer.zero_grad: https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html",
    caveat: "Code that reads `.grad` after zeroing finds None.",
    code: "optimizer.zero_grad(set_to_none=True)",
    apply: |s| (!s.training.zero_to_none).then(|| with(s, |it| it.training.zero_to_none = true)),
};
