//! A convolution with its norm and activation, as transformers' convolutional networks have it.

use crate::nets::Cx;
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// `…ConvLayer.forward`: no bias where a norm follows.
pub(super) fn conv_layer(
    cx: &Cx,
    x: &Tensor,
    out: u64,
    kernel: u64,
    conv: Conv,
    activation: fn(&Tensor) -> Tensor,
) -> Tensor {
    let mut x = cx.conv2d("convolution", x, out, kernel, conv, false);
    x = cx.batch_norm("normalization", &x);
    activation(&x)
}

/// `activation=None`.
pub(super) fn linear(x: &Tensor) -> Tensor {
    x.clone()
}

/// `make_divisible` with steps of eight.
pub(super) fn divisible_by_eight(value: u64) -> u64 {
    let near = ((value + 4) / 8 * 8).max(8);
    if near * 10 < value.saturating_mul(9) {
        near + 8
    } else {
        near
    }
}
