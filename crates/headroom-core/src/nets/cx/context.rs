//! Context parallelism: each GPU of a group has a part of every sequence's tokens.

use super::Cx;
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;
use headroom_scenario::ContextParallel;

impl Cx {
    /// This GPU's tokens of a sequence.
    pub(in crate::nets) fn tokens_of(&self, sequence: u64) -> u64 {
        sequence.div_ceil(self.env.groups.context.group.max(1))
    }

    fn exchanges_heads(&self) -> bool {
        self.env.groups.context.group > 1
            && self.env.groups.context.attention == ContextParallel::Ulysses
    }

    /// `[B, S, H, D]` with all tokens of some heads, where heads are exchanged for tokens.
    pub(in crate::nets) fn tokens_gathered(&self, x: &Tensor) -> Tensor {
        if self.exchanges_heads() {
            x.all_to_all(self.env.groups.context.group, 2, 1)
        } else {
            x.clone()
        }
    }

    /// The same back again.
    pub(in crate::nets) fn heads_gathered(&self, x: Tensor) -> Tensor {
        if !self.exchanges_heads() {
            return x;
        }
        x.pipe(|x| x.all_to_all(self.env.groups.context.group, 1, 2))
    }

    /// The same for `[B, H, S, D]`.
    pub(in crate::nets) fn heads_exchanged(&self, x: &Tensor) -> Tensor {
        if self.exchanges_heads() {
            x.all_to_all(self.env.groups.context.group, 1, 2)
        } else {
            x.clone()
        }
    }

    /// The same back again.
    pub(in crate::nets) fn tokens_exchanged(&self, x: Tensor) -> Tensor {
        if !self.exchanges_heads() {
            return x;
        }
        x.pipe(|x| x.all_to_all(self.env.groups.context.group, 2, 1))
    }

    /// Causal attention over `[B, H, S, D]`, to the tokens of all GPUs of the group.
    pub(in crate::nets) fn causal_attention(&self, [q, k, v]: [&Tensor; 3]) -> Tensor {
        let context = self.env.groups.context;
        if context.group > 1 && context.attention == ContextParallel::Ring {
            q.ring_attention(k, v, context.group)
        } else {
            q.attention(k, v, &AttentionMask::Causal, 0.0)
        }
    }
}
