//! GPT-J's attention and block (transformers/models/gptj/modeling_gptj.py).

use super::super::Cx;
use super::family::Projection;
use super::rope::{repeated, rotate_interleaved, rotated};
use super::{Decoder, LayerInputs, cached};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

impl Decoder {
    /// `GPTJBlock.forward`: attention and MLP in parallel, after one norm.
    pub(super) fn gptj_block(&self, cx: &Cx, input: &Tensor, inputs: &LayerInputs) -> [Tensor; 2] {
        let names = self.family.names;
        let normed = self.norm(cx, names.input_norm, input);
        let [attended, weights] = cx.module(names.attention, |cx| {
            match self.family.attention.projection {
                Projection::Fused => self.codegen_attention(cx, &normed, inputs),
                _ => self.gptj_attention(cx, &normed, inputs),
            }
        });
        let mlp_out = self.mlp(cx, &normed);
        let out = attended.add(&mlp_out).pipe(|sum| sum.add(input));
        drop((normed, attended, mlp_out));
        [out, weights]
    }

    fn gptj_attention(&self, cx: &Cx, x: &Tensor, inputs: &LayerInputs) -> [Tensor; 2] {
        let (b, s, d, h) = (x.size(0), x.size(1), self.head_dim, self.heads);
        let [mut query, mut key, mut value] = ["q_proj", "k_proj", "v_proj"]
            .map(|name| cx.linear(name, x, h * d, false).view(&[b, s, h, d]));
        value = value.permute(&[0, 2, 1, 3]);
        let mut held = Vec::new();
        if let Some(position_ids) = &inputs.position_ids {
            let (tables, read) = self.sines_at(cx, position_ids, key.dtype());
            held = read;
            [query, key] = self.rotated_by_neighbours([query, key], &tables);
        }
        key = key.permute(&[0, 2, 1, 3]);
        query = query.permute(&[0, 2, 1, 3]);
        (key, value) = cached(&inputs.cache, key, value);
        let (mut out, weights) = attend_in_fp32([&query, &key, &value], &inputs.attention_mask);
        out = out.permute(&[0, 2, 1, 3]).contiguous().view(&[b, s, h * d]);
        out = cx.linear(self.family.names.o_proj, &out, self.hidden, false);
        drop(held);
        [out, weights]
    }

    /// Sines and cosines at the tokens' places `[1, S, 1, D / 2]`, and what the attention's variables keep of their making.
    fn sines_at(&self, cx: &Cx, position_ids: &Tensor, dtype: DType) -> ([Tensor; 2], Vec<Tensor>) {
        let (places, s, width) = (self.max_positions, position_ids.size(1), self.rotary_dim);
        let table = cx.buffer("embed_positions", [places, width], DType::F32);
        let embed_positions = table.constant("repeat", &[1, places, width], DType::F32);
        let repeated_ids = table.constant("repeat", &[1, s, width], DType::I64);
        let both = table
            .constant("gather", &[1, s, width], DType::F32)
            .pipe(|both| both.to(dtype));
        let [sines, cosines] = [0; 2].map(|_| both.narrow(-1, width / 2).unsqueeze(2));
        ([cosines, sines], vec![embed_positions, repeated_ids, both])
    }

    /// `apply_rotary_pos_emb` for keys and then queries `[B, S, H, D]`, both before either is joined with what is not turned.
    pub(super) fn rotated_by_neighbours(
        &self,
        [query, key]: [Tensor; 2],
        tables: &[Tensor; 2],
    ) -> [Tensor; 2] {
        let width = self.rotary_dim;
        let parts = |x: &Tensor| [width, x.size(-1).saturating_sub(width)].map(|n| x.narrow(-1, n));
        let turned = |x: &Tensor| {
            let [cosines, sines] = tables;
            let sines = repeated(sines);
            let tables = [repeated(cosines), sines];
            rotated(x, &tables, rotate_interleaved)
        };
        let ([k_turning, k_rest], [q_turning, q_rest]) = (parts(&key), parts(&query));
        let k_turned = turned(&k_turning);
        let q_turned = turned(&q_turning);
        let new_key = Tensor::cat(&k_turned, &[&k_rest], -1);
        drop(key);
        let new_query = Tensor::cat(&q_turned, &[&q_rest], -1);
        [new_query, new_key]
    }
}

/// `_attn`: products of queries and keys in fp32.
pub(super) fn attend_in_fp32(
    [query, key, value]: [&Tensor; 3],
    mask: &AttentionMask,
) -> (Tensor, Tensor) {
    let (query, key) = (query.to(DType::F32), key.to(DType::F32));
    let mut weights = query.matmul(&key.transpose(-1, -2));
    weights = weights.mul_scalar();
    if let AttentionMask::Given(bias) = mask {
        weights = weights.add(bias);
    }
    weights = weights.softmax(None);
    weights = weights.to(value.dtype());
    (weights.matmul(value), weights)
}
