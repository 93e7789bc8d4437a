//! Attention between heads as transformers' shared interface runs it (`ALL_ATTENTION_FUNCTIONS`).

use super::Cx;
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Attention;

/// How a model's own `eager_attention_forward` treats its scores.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Eager {
    /// `softmax(.., dtype=float32).to(query.dtype)` rather than a plain softmax.
    pub in_fp32: bool,
}

/// `x.view(b, s, -1, d).transpose(1, 2)`.
pub(crate) fn heads(x: &Tensor, heads: u64) -> Tensor {
    let (b, s, width) = (x.size(0), x.size(1), x.size(2));
    let d = width / heads.max(1);
    x.view(&[b, s, heads, d]).transpose(1, 2)
}

/// The result as `[B, S, H, D]`, and the probabilities, which callers hold on to where there are any.
pub(crate) fn attend(
    cx: &Cx,
    [query, key, value]: [&Tensor; 3],
    mask: &AttentionMask,
    dropout: f64,
    eager: Eager,
) -> (Tensor, Option<Tensor>) {
    match cx.env.training.attention {
        Attention::Sdpa | Attention::Flash2 => {
            let out = query.attention(key, value, mask, cx.rate(dropout));
            let out = out.transpose(1, 2);
            (out.contiguous(), None)
        }
        Attention::Eager => {
            let mut weights = query.matmul(&key.transpose(2, 3)).pipe(Tensor::mul_scalar);
            if let AttentionMask::Given(bias) = mask {
                weights = weights.add(bias);
            }
            weights = if eager.in_fp32 {
                let wide = weights.softmax(Some(DType::F32));
                wide.to(query.dtype())
            } else {
                weights.softmax(None)
            };
            weights = cx.dropout(&weights, dropout);
            let mut out = weights.matmul(value);
            out = out.transpose(1, 2).contiguous();
            (out, Some(weights))
        }
    }
}
