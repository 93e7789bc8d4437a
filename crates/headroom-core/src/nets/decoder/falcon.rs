//! Falcon's attention and block (transformers/models/falcon/modeling_falcon.py).

use super::super::Cx;
use super::family::Rope;
use super::{Decoder, LayerInputs, cached, rope};
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;
use headroom_scenario::Attention;

impl Decoder {
    /// `FalconAttention.forward`: always with a mask, and without repeating keys and values.
    pub(super) fn falcon_attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        inputs: &LayerInputs,
    ) -> (Tensor, Option<Tensor>) {
        let (b, s, d, h) = (x.size(0), x.size(1), self.head_dim, self.heads);
        let fused = self.fused_qkv(cx, x);
        let [mut q, mut k, mut v] = self.falcon_heads(&fused, [b, s, d]);
        if let Some(tables) = &inputs.rotary {
            (q, k, _) = rope::apply(&q, &k, tables, Rope::Full);
        }
        (k, v) = cached(&inputs.cache, k, v);
        let (mut out, weights) = match cx.env.training.attention {
            Attention::Sdpa | Attention::Flash2 => {
                (q.attention(&k, &v, &inputs.attention_mask, 0.0), None)
            }
            Attention::Eager => {
                let mut scores = q.matmul(&k.transpose(-1, -2)).pipe(Tensor::div_scalar_);
                if let AttentionMask::Given(bias) = &inputs.attention_mask {
                    let sum = scores.add(bias);
                    scores = sum.softmax(Some(x.dtype()));
                }
                (scores.matmul(&v), Some(scores))
            }
        };
        out = out.permute(&[0, 2, 1, 3]);
        out = out.reshape(&[b, s, h * d]);
        out = cx.linear(self.family.names.o_proj, &out, self.hidden, false);
        drop(fused);
        (out, weights)
    }

    /// The projection, split into heads: in the newer models into groups, each with its key and value.
    fn fused_qkv(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let (b, s, d) = (x.size(0), x.size(1), self.head_dim);
        let width = (self.heads + 2 * self.key_value_heads) * d;
        let fused = cx.linear(self.family.names.qkv_proj, x, width, false);
        if self.new_block {
            let group = self.heads / self.key_value_heads + 2;
            fused.view(&[b, s, self.key_value_heads, group, d])
        } else {
            fused.view(&[b, s, self.heads + 2, d])
        }
    }

    fn falcon_heads(&self, fused: &Tensor, [b, s, d]: [u64; 3]) -> [Tensor; 3] {
        let query_heads = fused.size(-2).saturating_sub(2);
        let mut query = fused.narrow(-2, query_heads);
        let [mut key, mut value] = [0; 2].map(|_| fused.one_of(-2));
        let mut count = self.key_value_heads;
        if self.new_block {
            let flat = |x: &Tensor| x.reshape(&[b, s, self.heads, d]);
            let wide = *query.shape();
            let [wide_key, wide_value] = [&key, &value].map(|x| x.expand(&wide));
            // Python builds the tuple of all three before it binds the variables anew.
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

    /// `FalconDecoderLayer.forward`: attention and MLP in parallel, after one norm or one each.
    pub(super) fn falcon_block(&self, cx: &Cx, input: &Tensor, inputs: &LayerInputs) -> Tensor {
        let names = self.family.names;
        let normed = if self.new_block {
            [
                cx.layer_norm("ln_attn", input),
                cx.layer_norm("ln_mlp", input),
            ]
        } else {
            let one = cx.layer_norm(names.input_norm, input);
            [one.clone(), one]
        };
        let (attended, weights) = cx.module(names.attention, |cx| {
            self.falcon_attention(cx, &normed[0], inputs)
        });
        let mut mlp_out = self.mlp(cx, &normed[1]);
        mlp_out = mlp_out.add_(&attended);
        let out = input.add(&mlp_out);
        drop((attended, weights, normed));
        out
    }
}
