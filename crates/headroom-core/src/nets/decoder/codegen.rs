//! CodeGen's attention (transformers/models/codegen/modeling_codegen.py): GPT-J's with one product for queries, values and keys,
//! and one table of places that is read by index.

use super::super::Cx;
use super::gptj::attend_in_fp32;
use super::{Decoder, LayerInputs, cached};
use crate::tape::{DType, Tensor};

impl Decoder {
    /// `CodeGenAttention.forward`, whose names live to its end.
    pub(super) fn codegen_attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        inputs: &LayerInputs,
    ) -> [Tensor; 2] {
        let (b, s, d, h) = (x.size(0), x.size(1), self.head_dim, self.heads);
        let names = self.family.names;
        let qkv = cx.linear(names.qkv_proj, x, 3 * h * d, false);
        // Parts of four blocks, of which each is joined to heads by a copy.
        let part = || qkv.narrow(-1, h * d).contiguous().view(&[b, s, h, d]);
        let (mut query, mut key) = (part(), part());
        let value = part().permute(&[0, 2, 1, 3]);
        let width = self.rotary_dim;
        let table = cx.buffer("embed_positions", [self.max_positions, width], DType::F32);
        let read = table.constant("index", &[1, s, width], DType::F32);
        let tables = [0; 2].map(|_| read.narrow(-1, width / 2).unsqueeze(2));
        [query, key] = self.rotated_by_neighbours([query, key], &tables);
        key = key.permute(&[0, 2, 1, 3]);
        query = query.permute(&[0, 2, 1, 3]);
        let mut value = value;
        if inputs.cache.is_some() {
            key = key.to(x.dtype());
        }
        (key, value) = cached(&inputs.cache, key, value);
        let (mut out, weights) = attend_in_fp32([&query, &key, &value], &inputs.attention_mask);
        out = out.permute(&[0, 2, 1, 3]).contiguous().view(&[b, s, h * d]);
        out = cx.linear(names.o_proj, &out, self.hidden, false);
        drop((qkv, read));
        [out, weights]
    }
}
