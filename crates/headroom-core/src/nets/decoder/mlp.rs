//! The MLP of a block.

use super::super::{Cx, activations::gelu_new};
use super::Decoder;
use super::family::{Activation, MlpForm};
use super::xielu::xielu;
use crate::tape::Tensor;
use headroom_scenario::Kernels;

impl Decoder {
    pub(super) fn mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let mut out = match self.family.names.mlp {
            Some(name) if self.family.mlp.form == MlpForm::Shared => {
                self.beside_experts(cx, name, x)
            }
            Some(name) => cx.module(name, |cx| self.mlp_module(cx, x)),
            None => self.plain_mlp(cx, x, self.intermediate),
        };
        if self.family.dropout.in_layer {
            out = self.dropout(cx, &out);
        }
        out
    }

    fn mlp_module(&self, cx: &Cx, x: &Tensor) -> Tensor {
        if let Some(experts) = self.family.mlp.experts
            && self.family.mlp.form != MlpForm::Shared
        {
            return self.sparse_moe(cx, x, experts);
        }
        match self.family.mlp.form {
            MlpForm::Gated => self.gated_mlp(cx, x, self.intermediate),
            MlpForm::Shared => self.shared_mlp(cx, x),
            MlpForm::FusedGated => self.fused_gated_mlp(cx, x),
            MlpForm::Plain | MlpForm::Xielu => self.plain_mlp(cx, x, self.intermediate),
        }
    }

    pub(super) fn plain_mlp(&self, cx: &Cx, x: &Tensor, width: u64) -> Tensor {
        let (names, bias) = (self.family.names, self.family.mlp.bias);
        let mut hidden = cx.linear(names.up_proj, x, width, bias);
        hidden = match self.family.mlp.form {
            MlpForm::Xielu => cx.module("act_fn", |cx| xielu(cx, &hidden)),
            _ => self.activation(&hidden),
        };
        hidden = cx.linear(names.down_proj, &hidden, self.hidden, bias);
        if self.family.dropout.in_sublayers {
            hidden = self.dropout(cx, &hidden);
        }
        hidden
    }

    fn fused_gated_mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let both = cx.linear("gate_up_proj", x, 2 * self.intermediate, false);
        let mut halves = both.chunk(2, -1);
        drop(both);
        let (Some(up), Some(gate)) = (halves.pop(), halves.pop()) else {
            return x.clone();
        };
        let product = self.activation(&gate).pipe(|gate| up.mul(gate));
        cx.linear("down_proj", &product, self.hidden, false)
    }

    pub(super) fn gated_mlp(&self, cx: &Cx, x: &Tensor, width: u64) -> Tensor {
        let bias = self.family.mlp.bias;
        let mut product = {
            let names = self.family.names;
            let mut gate = cx.linear(names.gate_proj, x, width, bias);
            if cx.env.training.kernels == Kernels::Liger {
                let up = cx.linear(names.up_proj, x, width, bias);
                gate.silu_mul_liger(&up)
            } else {
                gate = gate.pipe(|gate| self.activation(gate));
                let up = cx.linear(names.up_proj, x, width, bias);
                gate.mul(&up)
            }
        };
        if let Some(name) = self.family.mlp.sub_norm {
            product = self.norm(cx, name, &product);
        }
        cx.linear(self.family.names.down_proj, &product, self.hidden, bias)
    }

    /// The experts of a Granite layer, if it has any, and the MLP for every token.
    fn beside_experts(&self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        let experts = self.family.mlp.experts.filter(|_| self.has_experts);
        let routed = experts
            .map(|experts| cx.module("block_sparse_moe", |cx| self.sparse_moe(cx, x, experts)));
        if self.shared_intermediate == 0
            && let Some(routed) = routed
        {
            return routed;
        }
        let shared = cx.module(name, |cx| self.shared_mlp(cx, x));
        match routed {
            Some(routed) => routed.add(&shared),
            None => shared,
        }
    }

    /// `GraniteMoeHybridMLP.forward`.
    fn shared_mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let both = cx.linear("input_linear", x, 2 * self.shared_intermediate, false);
        let halves = both.chunk(2, -1);
        drop(both);
        let [gate, up] = &halves[..] else {
            return x.clone();
        };
        let product = self.activation(gate).pipe(|gate| gate.mul(up));
        cx.linear("output_linear", &product, self.hidden, false)
    }

    pub(super) fn activation(&self, x: &Tensor) -> Tensor {
        match self.family.mlp.activation {
            Activation::Silu => x.silu(),
            Activation::Gelu => x.gelu(),
            Activation::GeluNew => gelu_new(x),
            Activation::Relu => x.relu(),
            Activation::ReluSquared => x.relu().pipe(Tensor::pow),
        }
    }

    pub(super) fn dropout(&self, cx: &Cx, x: &Tensor) -> Tensor {
        cx.dropout(x, self.dropout_rate)
    }
}
