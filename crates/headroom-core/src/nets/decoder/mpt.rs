//! MPT's attention and block (transformers/models/mpt/modeling_mpt.py).

use super::super::Cx;
use super::{Decoder, LayerInputs, cached};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

impl Decoder {
    /// `MptBlock.forward`.
    pub(super) fn mpt_block(&self, cx: &Cx, input: &Tensor, inputs: &LayerInputs) -> [Tensor; 2] {
        let names = self.family.names;
        let mut normed = self.norm(cx, names.input_norm, input);
        let [attended, weights] = cx.module(names.attention, |cx| {
            self.mpt_attention(cx, &normed, inputs)
        });
        let hidden = attended.add(input);
        normed = self.norm(cx, names.mlp_norm, &hidden);
        let out = self.mlp(cx, &normed).pipe(|out| out.add(&hidden));
        drop((normed, attended));
        [out, weights]
    }

    fn mpt_attention(&self, cx: &Cx, x: &Tensor, inputs: &LayerInputs) -> [Tensor; 2] {
        let (b, s, d, h) = (x.size(0), x.size(1), self.head_dim, self.heads);
        let names = self.family.names;
        let mixed = cx.linear(names.qkv_proj, x, 3 * h * d, false);
        let [query, mut key, mut value] = [0; 3].map(|_| {
            let part = mixed.narrow(2, h * d);
            part.reshape(&[b, s, h, d]).transpose(1, 2)
        });
        (key, value) = cached(&inputs.cache, key, value);
        let mut scores = query
            .matmul(&key.transpose(-1, -2))
            .pipe(Tensor::mul_scalar);
        if let Some(bias) = &inputs.position_bias {
            let bias = bias.narrow(2, key.size(-2));
            scores = scores.add(&bias);
        }
        if let AttentionMask::Given(masked) = &inputs.attention_mask {
            scores = scores.masked_fill(masked);
        }
        let weights = scores
            .to(DType::F32)
            .pipe(|scores| scores.softmax(None))
            .pipe(|weights| weights.to(value.dtype()));
        let mut context = weights.matmul(&value);
        context = context
            .permute(&[0, 2, 1, 3])
            .contiguous()
            .view(&[b, s, h * d]);
        let out = cx.linear(names.o_proj, &context, self.hidden, false);
        drop((mixed, query, key, value, scores, context));
        [out, weights]
    }
}
