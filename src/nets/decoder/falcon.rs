//! Falcon's attention and block (transformers/models/falcon/modeling_falcon.py).

use super::super::Cx;
use super::traits::Turn;
use super::{Decoder, Shared, cached, rope};
use crate::scenario::Attention;
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;

impl Decoder {
    /// `FalconAttention.forward`: always with a mask, keys and values as they come.
    pub(super) fn falcon_attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        shared: &Shared,
    ) -> (Tensor, Option<Tensor>) {
        let (b, s, d, h) = (x.size(0), x.size(1), self.head_dim, self.heads);
        let joint = self.falcon_joint(cx, x);
        let [mut q, mut k, mut v] = self.falcon_heads(&joint, [b, s, d]);
        if let Some(tables) = &shared.rope {
            let turned = rope::apply(&q, &k, tables, Turn::Whole);
            (q, k) = (turned.0, turned.1);
        }
        (k, v) = cached(&shared.cache, k, v);
        let (mut out, weights) = match cx.env.training.attention {
            Attention::Sdpa | Attention::Flash2 => (q.attention(&k, &v, &shared.mask, 0.0), None),
            Attention::Eager => {
                let mut scores = q.matmul(&k.transpose(-1, -2)).then(Tensor::scale_);
                if let AttentionMask::Given(bias) = &shared.mask {
                    let sum = scores.add(bias);
                    scores = sum.softmax(Some(x.dtype()));
                }
                (scores.matmul(&v), Some(scores))
            }
        };
        out = out.permute(&[0, 2, 1, 3]);
        out = out.reshape(&[b, s, h * d]);
        out = cx.linear(self.traits.names.out, &out, self.hidden, false);
        drop(joint);
        (out, weights)
    }

    /// The projection with heads told apart: in groups, each with its key and value, in the newer models.
    fn falcon_joint(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let (b, s, d) = (x.size(0), x.size(1), self.head_dim);
        let width = (self.heads + 2 * self.kv_heads) * d;
        let joint = cx.linear(self.traits.names.joint, x, width, false);
        if self.new_block {
            let group = self.heads / self.kv_heads + 2;
            joint.view(&[b, s, self.kv_heads, group, d])
        } else {
            joint.view(&[b, s, self.heads + 2, d])
        }
    }

    fn falcon_heads(&self, joint: &Tensor, [b, s, d]: [u64; 3]) -> [Tensor; 3] {
        let own = joint.size(-2).saturating_sub(2);
        let mut query = joint.narrow(-2, own);
        let [mut key, mut value] = [0; 2].map(|_| joint.one_of(-2));
        let mut count = self.kv_heads;
        if self.new_block {
            let flat = |x: &Tensor| x.reshape(&[b, s, self.heads, d]);
            let wide = *query.shape();
            let [wide_key, wide_value] = [&key, &value].map(|x| x.expand(&wide));
            // A list is made of all three before the names are given anew.
            let all = [&query, &wide_key, &wide_value].map(flat);
            drop((wide_key, wide_value));
            [query, key, value] = all;
            count = self.heads;
        }
        [
            query.transpose(1, 2).reshape(&[b, self.heads, s, d]),
            key.transpose(1, 2).reshape(&[b, count, s, d]),
            value.transpose(1, 2).reshape(&[b, count, s, d]),
        ]
    }

    /// `FalconDecoderLayer.forward`: attention and feed-forward side by side, of one norm or of one each.
    pub(super) fn falcon_block(&self, cx: &Cx, input: &Tensor, shared: &Shared) -> Tensor {
        let names = self.traits.names;
        let normed = if self.new_block {
            [
                cx.layer_norm("ln_attn", input),
                cx.layer_norm("ln_mlp", input),
            ]
        } else {
            let one = cx.layer_norm(names.first_norm, input);
            [one.clone(), one]
        };
        let (attended, weights) = cx.within(names.attention, |cx| {
            self.falcon_attention(cx, &normed[0], shared)
        });
        let mut fed = self.feed(cx, &normed[1]);
        fed = fed.add_(&attended);
        let out = input.add(&fed);
        drop((attended, weights, normed));
        out
    }
}
