//! BLOOM's attention, MLP and block (transformers/models/bloom/modeling_bloom.py).

use super::super::Cx;
use super::{Decoder, LayerInputs, cached};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

impl Decoder {
    /// `BloomBlock.forward`: the residual is added inside attention and inside the MLP.
    pub(super) fn bloom_block(&self, cx: &Cx, input: &Tensor, inputs: &LayerInputs) -> [Tensor; 2] {
        let names = self.family.names;
        let mut normed = self.norm(cx, names.input_norm, input);
        let [attended, weights] = cx.module(names.attention, |cx| {
            self.bloom_attention(cx, &normed, input, inputs)
        });
        normed = self.norm(cx, names.mlp_norm, &attended);
        let out = cx.module("mlp", |cx| {
            let mut hidden = cx.linear(names.up_proj, &normed, self.intermediate, true);
            hidden = hidden.gelu_tanh_saving_input();
            let out = cx.linear(names.down_proj, &hidden, self.hidden, true);
            attended.add(&out)
        });
        [out, weights]
    }

    fn bloom_attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        residual: &Tensor,
        inputs: &LayerInputs,
    ) -> [Tensor; 2] {
        let (b, s, d, h) = (x.size(0), x.size(1), self.head_dim, self.heads);
        let names = self.family.names;
        let fused = cx
            .linear(names.qkv_proj, x, 3 * h * d, true)
            .view(&[b, s, h, 3, d]);
        let [mut query, mut key, mut value] = [0; 3].map(|_| fused.select(3).transpose(1, 2));
        (key, value) = cached(&inputs.cache, key, value);
        let keys = key.size(2);
        query = query.reshape(&[b * h, s, d]);
        key = key.reshape(&[b * h, keys, d]).transpose(-1, -2);
        value = value.reshape(&[b * h, keys, d]);
        let scores = match &inputs.position_bias {
            Some(alibi) => query.baddbmm(&key, alibi),
            None => query.bmm(&key),
        };
        let mut weights = scores.view(&[b, h, s, keys]);
        if let AttentionMask::Given(bias) = &inputs.attention_mask {
            weights = weights.add(bias);
        }
        let shares = weights
            .softmax(Some(DType::F32))
            .pipe(|shares| shares.to(query.dtype()));
        let context = shares.view(&[b * h, s, keys]).bmm(&value);
        let merged = context
            .view(&[b, h, s, d])
            .permute(&[0, 2, 1, 3])
            .reshape(&[b, s, h * d]);
        drop(context);
        let mut out = cx.linear(names.o_proj, &merged, self.hidden, true);
        out = residual.add(&out);
        drop((fused, scores, weights, merged));
        [out, shares]
    }
}
