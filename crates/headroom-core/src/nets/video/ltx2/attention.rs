//! `LTX2AudioVideoAttnProcessor`.

use super::block::Stream;
use super::positions::turned;
use crate::nets::Cx;
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;

/// What queries are turned by, and keys.
pub(super) type Tables<'a> = [&'a [Tensor; 2]; 2];

impl Stream {
    /// Attention of `x` to itself or to `context`, back to the width of `x`.
    pub(super) fn attention(
        self,
        cx: &Cx,
        x: &Tensor,
        context: &Tensor,
        tables: Option<Tables>,
        mask: Option<&Tensor>,
    ) -> Tensor {
        let width = self.width();
        let mask = mask.map_or(AttentionMask::None, |mask| {
            let shape = [mask.size(0), self.heads, 1, mask.size(-1)];
            AttentionMask::Given(mask.constant("repeat_interleave", &shape, mask.dtype()))
        });
        let rows = |x: &Tensor| x.view(&[x.size(0), x.size(1), self.heads, self.head_dim]);
        let mut query = cx.linear("to_q", x, width, true);
        let mut key = cx.linear("to_k", context, width, true);
        let mut value = cx.linear("to_v", context, width, true);
        query = cx.fused_rms_norm("norm_q", &query);
        key = cx.fused_rms_norm("norm_k", &key);
        if let Some([of_query, of_key]) = tables {
            query = turned(&query, of_query);
            key = turned(&key, of_key);
        }
        query = rows(&query);
        key = rows(&key);
        value = rows(&value);
        let mut hidden = {
            let [query, key, value] = [&query, &key, &value].map(|x| x.transpose(1, 2));
            query.attention(&key, &value, &mask, 0.0).transpose(1, 2)
        };
        hidden = hidden.reshape(&[hidden.size(0), hidden.size(1), width]);
        hidden = hidden.to(query.dtype());
        let out = x.size(-1);
        cx.module("to_out", |cx| cx.linear("0", &hidden, out, true))
    }
}
