//! What a decoder computes before its first layer: position ids, attention masks, rotary tables.

use super::super::{Cx, inputs};
use super::family::{EmbeddingScale, Placement, Positions, Rope};
use super::{Decoder, rope};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

impl Decoder {
    /// Position ids, and the attention mask that OPT takes their running sum of.
    pub(super) fn position_ids(
        &self,
        ids: &Tensor,
        padding: Option<&Tensor>,
    ) -> (Tensor, Option<Tensor>) {
        match self.family.embeddings.positions {
            Positions::LearnedByMask => {}
            // There are none; the ids are here whether or not they are named.
            Positions::Alibi(_) => return (ids.clone(), None),
            Positions::Rotary(_) if self.family.attention.position_kinds => {
                let places = inputs::positions(ids).unsqueeze(0);
                return (places.expand(&[3, ids.size(0), ids.size(1)]), None);
            }
            Positions::Rotary(_) | Positions::Learned | Positions::Nowhere => {
                return (inputs::positions(ids), None);
            }
        }
        let ones = padding
            .cloned()
            .unwrap_or_else(|| ids.constant("ones", ids.shape(), DType::F32));
        let wide = if ones.dtype() == DType::I64 {
            DType::I64
        } else {
            DType::F32
        };
        let sums = ids.constant("cumsum", ids.shape(), wide);
        inputs::scan_scratch(ids);
        let product = ids.constant("mul", ids.shape(), wide);
        let positions = ids.constant("sub", ids.shape(), wide);
        drop(product);
        let position_ids = if wide == DType::I64 {
            positions
        } else {
            ids.constant("to", ids.shape(), DType::I64)
        };
        drop(sums);
        (position_ids, Some(ones))
    }

    /// The masks of layers with full attention and of those with a sliding window.
    pub(super) fn attention_masks(
        &self,
        cx: &Cx,
        ids: &Tensor,
        padding: Option<&Tensor>,
        dtype: DType,
    ) -> [AttentionMask; 2] {
        let rules = self.family.attention.mask;
        let make = |window| inputs::mask(cx, ids, padding, dtype, window, rules);
        match self.full_attention_interval {
            1 if self.family.attention.unused_window_mask => {
                let full = make(None);
                [full, make(Some(0))]
            }
            1 if self.family.norms.placement == Placement::Mpt => {
                // `create_causal_mask(..).to(torch.bool)`.
                let mask = match make(None) {
                    AttentionMask::Given(bias) => {
                        AttentionMask::Given(bias.constant("to", bias.shape(), DType::Bool))
                    }
                    other => other,
                };
                [mask, AttentionMask::None]
            }
            // Layers with a mixer have no mask of pairs.
            _ if self.family.mixer.is_some() => [make(None), AttentionMask::None],
            1 => [make(None), AttentionMask::None],
            0 => [AttentionMask::None, make(Some(self.sliding_window))],
            _ => {
                let full = make(None);
                [full, make(Some(self.sliding_window))]
            }
        }
    }

    /// The first layer's input, and what the model's own variables keep alive.
    pub(super) fn first_hidden_states(
        &self,
        cx: &Cx,
        embeddings: Tensor,
        positions: &Tensor,
    ) -> (Tensor, Vec<Tensor>) {
        let names = self.family.names;
        match self.family.embeddings.positions {
            Positions::Rotary(_)
                if self.family.embeddings.scale == EmbeddingScale::NumberBeside =>
            {
                (embeddings.mul_scalar(), vec![embeddings])
            }
            Positions::Rotary(_) if self.family.dropout.embeddings => {
                let hidden = self.dropout(cx, &embeddings);
                (hidden, vec![embeddings])
            }
            Positions::Rotary(_) | Positions::Nowhere => (embeddings, Vec::new()),
            Positions::Alibi(_) => {
                let hidden = match self.family.embeddings.norm {
                    Some(name) => self.norm(cx, name, &embeddings),
                    None => embeddings.clone(),
                };
                (hidden, vec![embeddings])
            }
            Positions::Learned => {
                if self.family.attention.unused_causal_buffer {
                    cx.buffer(
                        "bias",
                        [self.max_positions, self.max_positions],
                        DType::Bool,
                    );
                }
                let position_embeddings = cx.embedding(
                    names.embed_positions,
                    positions,
                    self.max_positions,
                    self.hidden,
                );
                let mut hidden = embeddings.add(&position_embeddings);
                if self.family.dropout.embeddings {
                    hidden = self.dropout(cx, &hidden);
                }
                (hidden, vec![embeddings, position_embeddings])
            }
            Positions::LearnedByMask => {
                // The table's first two rows are unused.
                let offset = positions.add_scalar();
                let position_embeddings = cx.embedding(
                    names.embed_positions,
                    &offset,
                    self.max_positions + 2,
                    self.hidden,
                );
                drop(offset);
                let embeddings = if self.embedding_dim == self.hidden {
                    embeddings
                } else {
                    cx.linear("project_in", &embeddings, self.hidden, false)
                };
                let hidden = embeddings.add(&position_embeddings);
                (hidden, vec![embeddings, position_embeddings])
            }
        }
    }

    /// Tables of cosines and sines: Gemma 3 has others for sliding windows.
    pub(super) fn rotary_tables(
        &self,
        cx: &Cx,
        positions: &Tensor,
        dtype: DType,
    ) -> Vec<[Tensor; 2]> {
        let Positions::Rotary(rope) = self.family.embeddings.positions else {
            return Vec::new();
        };
        if rope == Rope::InBlock {
            return Vec::new();
        }
        let mut buffers = vec![["inv_freq", "original_inv_freq"]];
        if self.family.attention.window_rope {
            buffers.push(["sliding_inv_freq", "sliding_original_inv_freq"]);
        }
        let make = |buffers| rope::tables(cx, positions, self.rotary_dim, dtype, rope, buffers);
        buffers.into_iter().map(make).collect()
    }
}
