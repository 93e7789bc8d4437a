//! `FalconH1DecoderLayer.forward` (transformers/models/falcon_h1/modeling_falcon_h1.py): attention and a Mamba 2 mixer beside
//! each other, each with multipliers.

use super::super::Cx;
use super::{Decoder, LayerInputs};
use crate::tape::Tensor;

impl Decoder {
    pub(super) fn falcon_h1_block(&self, cx: &Cx, input: &Tensor, inputs: &LayerInputs) -> Tensor {
        let names = self.family.names;
        let mut hidden = self.norm(cx, names.input_norm, input);
        let mut mixed = cx.module("mamba", |cx| {
            self.mamba2(cx, &hidden, inputs.padding.as_ref())
        });
        mixed = mixed.pipe(Tensor::mul_scalar);
        let (mut attended, weights) = {
            let scaled = hidden.mul_scalar();
            self.self_attention(cx, &scaled, inputs)
        };
        attended = attended.pipe(Tensor::mul_scalar);
        hidden = mixed.add(&attended);
        hidden = input.add(&hidden);
        let residual = hidden.clone();
        hidden = self.norm(cx, names.mlp_norm, &hidden);
        hidden = cx.module("feed_forward", |cx| self.multiplied_mlp(cx, &hidden));
        hidden = residual.add(&hidden);
        drop((mixed, attended, weights));
        hidden
    }

    /// `FalconH1MLP.forward`.
    fn multiplied_mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let names = self.family.names;
        let product = {
            let up = cx.linear(names.up_proj, x, self.intermediate, false);
            let gate = cx
                .linear(names.gate_proj, x, self.intermediate, false)
                .pipe(Tensor::mul_scalar)
                .pipe(|gate| self.activation(gate));
            up.mul(&gate)
        };
        cx.linear(names.down_proj, &product, self.hidden, false)
            .pipe(Tensor::mul_scalar)
    }
}
