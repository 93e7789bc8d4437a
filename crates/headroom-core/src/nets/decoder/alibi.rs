//! ALiBi: biases on the scores that grow with the distance of two tokens (transformers/models/{bloom,mpt}/modeling_*.py).

use super::Decoder;
use super::family::{Alibi, Positions};
use crate::tape::{DType, Tensor};

impl Decoder {
    /// The bias that every layer adds to its scores, where the family has one.
    pub(super) fn position_bias(
        &self,
        ids: &Tensor,
        padding: Option<&Tensor>,
        dtype: DType,
    ) -> Option<Tensor> {
        let Positions::Alibi(alibi) = self.family.embeddings.positions else {
            return None;
        };
        Some(match alibi {
            Alibi::ForSamples => self.alibi_for_samples(ids, padding, dtype),
            Alibi::ForAllPlaces => self.alibi_for_all_places(ids),
        })
    }

    /// `build_alibi_tensor`, and what the model does by itself without a mask: `[B * H, 1, S]`.
    fn alibi_for_samples(&self, ids: &Tensor, padding: Option<&Tensor>, dtype: DType) -> Tensor {
        let (b, s, h) = (ids.size(0), ids.size(1), self.heads);
        let slopes = ids.constant("pow", &[h], DType::F32);
        let rows = b.saturating_mul(h);
        let wide = match padding {
            Some(_) => {
                let distances = ids.constant("mul", &[b, 1, s], DType::I64);
                let alibi = ids.constant("mul", &[b, h, s], DType::F32);
                drop(distances);
                alibi.view(&[rows, 1, s])
            }
            None => {
                let places = ids.constant("arange", &[s], DType::I64);
                let alibi = ids.constant("mul", &[h, 1, s], DType::F32);
                drop(places);
                let repeated = ids.constant("repeat", &[rows, 1, s], DType::F32);
                drop(alibi);
                repeated
            }
        };
        drop(slopes);
        wide.to(dtype)
    }

    /// `build_mpt_alibi_tensor`: `[H, 1, S]` for the longest sequence.
    fn alibi_for_all_places(&self, ids: &Tensor) -> Tensor {
        let (h, s) = (self.heads, self.max_positions);
        let places = ids.constant("arange", &[1, 1, 1, s], DType::I32);
        let slopes = ids.constant("reciprocal", &[1, h.next_power_of_two(), 1, 1], DType::F32);
        let alibi = ids.constant("mul", &[1, h, 1, s], DType::F32);
        drop((places, slopes));
        alibi.view(&[h, 1, s])
    }
}
