//! `Lfm2ShortConv.forward` (transformers/models/lfm2/modeling_lfm2.py).

use super::super::super::Cx;
use super::super::Decoder;
use super::{causal_conv, without_padding};
use crate::tape::Tensor;

impl Decoder {
    pub(super) fn short_conv(&self, cx: &Cx, x: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let bias = self.mixers.short_bias;
        let x = without_padding(x, padding);
        let projected = cx
            .linear("in_proj", &x, 3 * self.hidden, bias)
            .transpose(-1, -2);
        drop(x);
        let parts = projected.chunk(3, -2);
        let [before, after, value] = &parts[..] else {
            return projected;
        };
        let mut hidden = before.mul(value);
        hidden = causal_conv(cx, "conv", &hidden, self.mixers.short_kernel, bias, false);
        let mut y = after.mul(&hidden);
        y = y.transpose(-1, -2).contiguous();
        y = cx.linear("out_proj", &y, self.hidden, bias);
        drop((parts, projected, hidden));
        y
    }
}
