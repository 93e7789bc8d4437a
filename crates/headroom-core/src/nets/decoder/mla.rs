//! MLA, multi-head latent attention (transformers/models/deepseek_{v2,v3,v32}/modeling_*.py).

use super::super::Cx;
use super::family::Positions;
use super::{Decoder, LayerInputs, Mla, attention, cached, indexer, rope};
use crate::tape::Tensor;

impl Decoder {
    pub(super) fn latent_attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        inputs: &LayerInputs,
        mla: Mla,
    ) -> (Tensor, Option<Tensor>) {
        let (b, s, h) = (x.size(0), x.size(1), self.heads);
        let head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
        let mut compressed_queries = None;
        let mut q_states = if mla.q_lora_rank == 0 {
            cx.linear("q_proj", x, h * head_dim, false)
        } else {
            let compressed = cx.linear("q_a_proj", x, mla.q_lora_rank, false);
            let normed = compressed.pipe(|compressed| self.norm(cx, "q_a_layernorm", compressed));
            let queries = cx.linear("q_b_proj", &normed, h * head_dim, false);
            // A variable of DeepSeek V3.2's function.
            compressed_queries = self.family.attention.indexer.map(|_| normed);
            queries
        };
        q_states = q_states.view(&[b, s, h, head_dim]).transpose(1, 2);
        // Kimi Linear's layers turn nothing.
        let mut turned = inputs
            .rotary
            .as_ref()
            .map(|_| split_in_two(&q_states, mla.qk_nope_head_dim, mla.qk_rope_head_dim));
        let compressed = cx.linear(
            "kv_a_proj_with_mqa",
            x,
            mla.kv_lora_rank + mla.qk_rope_head_dim,
            false,
        );
        let [mut k_pass, mut k_rot] =
            split_in_two(&compressed, mla.kv_lora_rank, mla.qk_rope_head_dim);
        k_pass = self.norm(cx, "kv_a_layernorm", &k_pass);
        k_pass = k_pass.view(&[b, 1, s, mla.kv_lora_rank]);
        k_rot = k_rot.view(&[b, 1, s, mla.qk_rope_head_dim]);
        let mut query = q_states.clone();
        if let (Some(tables), Some([_, q_rot]), Positions::Rotary(rope)) = (
            &inputs.rotary,
            &mut turned,
            self.family.embeddings.positions,
        ) {
            (*q_rot, k_rot, _) = rope::apply(q_rot, &k_rot, tables, rope);
        }
        (k_pass, k_rot) = cached(&inputs.cache, k_pass, k_rot);
        if let Some([q_pass, q_rot]) = &turned {
            query = Tensor::cat(q_pass, &[q_rot], -1);
        }
        if self.family.attention.queries_by_position {
            let scale = query.constant("to", &[1, 1, s, 1], query.dtype());
            query = query.mul(&scale);
        }
        let [key, value] = self.expand_kv(cx, &k_pass, &k_rot, mla);
        let (mask, held) = match (self.family.attention.indexer, &compressed_queries) {
            (Some(rotation), Some(queries)) => {
                indexer::indexed_mask(cx, x, queries, inputs, (mla, rotation))
            }
            _ => (inputs.attention_mask.clone(), Vec::new()),
        };
        let (mut out, weights) =
            attention::attention_function(cx, [&query, &key, &value], &mask, 1, false, 0.0);
        out = out.reshape(&[b, s, h * mla.v_head_dim]).contiguous();
        out = cx.linear("o_proj", &out, self.hidden, false);
        drop((q_states, compressed, key, value, query));
        drop((mask, held, compressed_queries));
        (out, weights)
    }

    /// `expand_kv`: keys are written piece by piece into memory of their own.
    fn expand_kv(&self, cx: &Cx, k_pass: &Tensor, k_rot: &Tensor, mla: Mla) -> [Tensor; 2] {
        let (b, s, h) = (k_pass.size(0), k_pass.size(2), self.heads);
        let width = mla.qk_nope_head_dim + mla.v_head_dim;
        let key_values = cx
            .linear("kv_b_proj", k_pass, h * width, false)
            .view(&[b, s, h, width])
            .transpose(1, 2);
        let [k_nope, value] = split_in_two(&key_values, mla.qk_nope_head_dim, mla.v_head_dim);
        let k_rot = k_rot.expand(&[b, h, s, mla.qk_rope_head_dim]);
        let shape = [b, h, s, mla.qk_nope_head_dim + mla.qk_rope_head_dim];
        let mut key = key_values.constant("new_empty", &shape, key_values.dtype());
        key = key.copy_into_slice_(&k_nope);
        key = key.copy_into_slice_(&k_rot);
        [key, value]
    }
}

/// `torch.split` along the last dimension in two.
fn split_in_two(x: &Tensor, first: u64, second: u64) -> [Tensor; 2] {
    let parts = x.split(&[first, second], -1);
    parts.try_into().unwrap_or_else(|_| [x.clone(), x.clone()])
}
