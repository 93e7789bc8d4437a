//! What a decoder makes before its first layer: positions, masks, tables.

use super::super::{Cx, inputs};
use super::traits::{HeadNorms, Placement, Positions, Scores};
use super::{Decoder, rope};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

impl Decoder {
    /// The places of tokens, and what OPT counts them by.
    pub(super) fn positions(
        &self,
        ids: &Tensor,
        padding: Option<&Tensor>,
    ) -> (Tensor, Option<Tensor>) {
        if self.traits.positions != Positions::Counted {
            return (inputs::positions(ids), None);
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
        let places = ids.constant("sub", ids.shape(), wide);
        drop(product);
        let whole = if wide == DType::I64 {
            places
        } else {
            ids.constant("to", ids.shape(), DType::I64)
        };
        drop(sums);
        (whole, Some(ones))
    }

    /// The mask of layers that see everything, and that of those that see a window.
    pub(super) fn masks(
        &self,
        cx: &Cx,
        ids: &Tensor,
        padding: Option<&Tensor>,
        dtype: DType,
    ) -> [AttentionMask; 2] {
        let falcon = self.traits.placement == Placement::Falcon;
        let rules = inputs::MaskRules {
            probed: self.traits.positions != Positions::Counted
                && !falcon
                && self.traits.scores != Scores::Sinks,
            always: falcon,
        };
        let make = |window| inputs::mask(cx, ids, padding, dtype, window, rules);
        match self.full_every {
            1 if self.traits.idle_mask => {
                let whole = make(None);
                [whole, make(Some(0))]
            }
            1 => [make(None), AttentionMask::None],
            0 => [AttentionMask::None, make(Some(self.window))],
            _ => {
                let whole = make(None);
                [whole, make(Some(self.window))]
            }
        }
    }

    /// The first layer's input, and what the model's own names keep alive.
    pub(super) fn started(
        &self,
        cx: &Cx,
        embeddings: Tensor,
        positions: &Tensor,
    ) -> (Tensor, Vec<Tensor>) {
        let names = self.traits.names;
        match self.traits.positions {
            Positions::Rotary(_) if self.traits.dropout.embeddings => {
                let hidden = self.dropped(cx, &embeddings);
                (hidden, vec![embeddings])
            }
            Positions::Rotary(_) => (embeddings, Vec::new()),
            Positions::Learned => {
                if self.traits.scores == Scores::Library {
                    // A triangle that no attention reads any more.
                    cx.buffer("bias", [self.places, self.places], DType::Bool);
                }
                let places = cx.embedding(names.positions, positions, self.places, self.hidden);
                let mut hidden = embeddings.add(&places);
                if self.traits.dropout.embeddings {
                    hidden = self.dropped(cx, &hidden);
                }
                (hidden, vec![embeddings, places])
            }
            Positions::Counted => {
                // Two rows are left free at the table's head.
                let moved = positions.shift();
                let places = cx.embedding(names.positions, &moved, self.places + 2, self.hidden);
                drop(moved);
                let embeddings = if self.table_width == self.hidden {
                    embeddings
                } else {
                    cx.linear("project_in", &embeddings, self.hidden, false)
                };
                let hidden = embeddings.add(&places);
                (hidden, vec![embeddings, places])
            }
        }
    }

    /// Tables of cosines and sines: Gemma 3 has others for windows.
    pub(super) fn ropes(&self, cx: &Cx, positions: &Tensor, dtype: DType) -> Vec<[Tensor; 2]> {
        let Positions::Rotary(turn) = self.traits.positions else {
            return Vec::new();
        };
        let mut kinds = vec![["inv_freq", "original_inv_freq"]];
        if self.traits.head_norms == HeadNorms::EachMoved {
            kinds.push(["sliding_inv_freq", "sliding_original_inv_freq"]);
        }
        let make = |names| rope::tables(cx, positions, self.rotary, dtype, turn, names);
        kinds.into_iter().map(make).collect()
    }
}
