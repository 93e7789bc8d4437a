//! Quantisation-aware training of torchao (quantization/qat/fake_quantizer.py): inputs and weights of linear layers are rounded
//! to what few bits can tell apart, in their own type.

use super::Cx;
use crate::tape::{DType, Tensor};

/// Weights that share a scale (`group_size`).
const GROUP: u64 = 32;

impl Cx {
    /// `FakeQuantizedLinear.forward`: eight bits for each token's input, four for each group of weights.
    pub(super) fn fake_quantised_linear(
        &self,
        x: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
    ) -> Tensor {
        let tokens = x.numel() / x.size(-1).max(1);
        let input = self.module("activation_fake_quantizer", |cx| {
            fake_quantised(cx, x, [tokens, x.size(-1)])
        });
        let groups = weight.numel() / GROUP;
        let weight = self.module("weight_fake_quantizer", |cx| {
            fake_quantised(cx, weight, [groups, GROUP])
        });
        input.linear(&weight, bias)
    }
}

/// `_fake_quantize_affine` over this many groups: scales are fp32, and so is what they multiply.
fn fake_quantised(cx: &Cx, x: &Tensor, [groups, size]: [u64; 2]) -> Tensor {
    // Attributes of the module, chosen anew in each forward without gradients.
    let scale = cx.buffer("scale", [groups], DType::F32);
    cx.buffer("zero_point", [groups], DType::I32);
    let dtype = x.dtype();
    cx.tape.no_grad(|| {
        let ends = ["amin", "amax"].map(|op| x.constant(op, &[groups], dtype));
        let signed = ["minimum", "maximum"].map(|op| x.constant(op, &[groups], dtype));
        drop((ends, signed));
    });
    let scale = scale.view(&[groups, 1]);
    let quantised = {
        let input = x.view(&[groups, size]);
        let inverse = scale.constant("div", &[groups, 1], DType::F32);
        let scaled = input.mul(&inverse);
        let rounded = scaled.add_scalar();
        drop(scaled);
        let shifted = rounded.add_scalar();
        drop(rounded);
        shifted.clamp_between()
    };
    let copied = quantised.to(dtype);
    let centred = copied.add_scalar();
    drop(copied);
    let wide = centred.mul(&scale);
    drop(centred);
    let back = wide.view(x.shape()).to(dtype);
    drop((wide, quantised));
    back
}
