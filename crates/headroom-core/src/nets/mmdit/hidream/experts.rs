//! `MOEFeedForwardSwiGLU` in training: every expert runs on the rows that chose it, of a copy for each choice; and a network for all
//! rows beside them.

use crate::nets::Cx;
use crate::nets::vision::index_name;
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
pub(super) struct Experts {
    /// None where the feed-forward is a single one.
    pub(super) count: u64,
    pub(super) active: u64,
}

/// `HiDreamImageFeedForwardSwiGLU.forward`: two thirds of `inner`, as a multiple of 256.
pub(super) fn gated(cx: &Cx, x: &Tensor, inner: u64) -> Tensor {
    let inner = (inner.saturating_mul(2) / 3).next_multiple_of(256);
    let product = {
        let gate = cx.linear("w1", x, inner, false).pipe(Tensor::silu);
        let up = cx.linear("w3", x, inner, false);
        gate.mul(&up)
    };
    cx.linear("w2", &product, x.size(-1), false)
}

impl Experts {
    pub(super) fn run(self, cx: &Cx, x: &Tensor) -> Tensor {
        let width = x.size(-1);
        if self.count == 0 {
            return gated(cx, x, 4 * width);
        }
        let rows = x.numel() / width.max(1);
        let flat = x.reshape(&[rows, width]);
        let (weights, places, _auxiliary) = cx.module("gate", |cx| self.chosen(cx, &flat));
        let all = rows.saturating_mul(self.active);
        let each = all.div_ceil(self.count);
        let copies = flat
            .unsqueeze(1)
            .expand(&[rows, self.active, width])
            .cloned_dense()
            .reshape(&[all, width]);
        let mut out = copies.constant("empty_like", &[all, width], x.dtype());
        for i in 0..self.count as usize {
            if cx.tape.is_over_budget() {
                break;
            }
            let own = places.constant("eq", &[all], DType::Bool);
            let taken = copies.constant("eq", &[all], DType::Bool);
            let given = copies.rows_where(&taken, each);
            let made = cx.module("experts", |cx| {
                cx.module(index_name(i), |cx| gated(cx, &given, 4 * width))
            });
            drop((given, taken));
            let made = made.to(x.dtype());
            out = out.put_where(&own, &made);
        }
        let weighted = out
            .view(&[rows, self.active, width])
            .mul(&weights.unsqueeze(-1));
        out = weighted.sum(&[1]).squeeze(1);
        drop(weighted);
        out = out.view(x.shape()).to(x.dtype());
        let shared = cx.module("shared_experts", |cx| gated(cx, x, 2 * width));
        out.add(&shared)
    }

    /// `MoEGate.forward`: weights and places of the chosen experts, and a loss of balance that nobody adds.
    fn chosen(self, cx: &Cx, flat: &Tensor) -> (Tensor, Tensor, Tensor) {
        let weight = cx.param("weight", [self.count, flat.size(-1)]).tensor();
        let logits = flat.linear(&weight, None);
        let scores = logits.softmax(None);
        let (weights, places) = scores.topk(self.active);
        let all = flat.size(0).saturating_mul(self.active);
        let chosen = flat.constant("one_hot", &[all, self.count], DType::I64);
        drop(chosen.constant("float", &[all, self.count], DType::F32));
        let share = scores.mean(&[0]);
        let loss = share.mul_scalar().sum(&[0, 1]);
        drop((chosen, logits));
        (weights, places, loss)
    }
}
