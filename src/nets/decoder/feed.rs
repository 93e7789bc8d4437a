//! The feed-forward of a block.

use super::super::{Cx, gpt2::gelu_new};
use super::Decoder;
use super::traits::{Activation, Feed};
use crate::scenario::Kernels;
use crate::tape::Tensor;

impl Decoder {
    pub(super) fn feed(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let mut out = match self.traits.names.mlp {
            Some(name) => cx.within(name, |cx| self.mlp(cx, x)),
            None => self.plain_mlp(cx, x),
        };
        if self.traits.dropout.outside {
            out = self.dropped(cx, &out);
        }
        out
    }

    fn mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        if let Some(kind) = self.traits.mixture {
            return self.mixture(cx, x, kind);
        }
        match self.traits.feed {
            Feed::Gated => self.gated_mlp(cx, x, self.ffn),
            Feed::GatedJoint => self.joint_mlp(cx, x),
            Feed::Plain => self.plain_mlp(cx, x),
        }
    }

    fn plain_mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let (names, bias) = (self.traits.names, self.traits.mlp_bias);
        let mut hidden = cx.linear(names.up, x, self.ffn, bias);
        hidden = self.activation(&hidden);
        hidden = cx.linear(names.down, &hidden, self.hidden, bias);
        if self.traits.dropout.inside {
            hidden = self.dropped(cx, &hidden);
        }
        hidden
    }

    fn joint_mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let both = cx.linear("gate_up_proj", x, 2 * self.ffn, false);
        let mut halves = both.chunk(2, -1);
        drop(both);
        let (Some(up), Some(gate)) = (halves.pop(), halves.pop()) else {
            return x.clone();
        };
        let product = self.activation(&gate).then(|gate| up.mul(gate));
        cx.linear("down_proj", &product, self.hidden, false)
    }

    pub(super) fn gated_mlp(&self, cx: &Cx, x: &Tensor, width: u64) -> Tensor {
        let product = {
            let mut gate = cx.linear("gate_proj", x, width, false);
            if cx.env.training.kernels == Kernels::Liger {
                let up = cx.linear("up_proj", x, width, false);
                gate.silu_mul_liger(&up)
            } else {
                gate = gate.then(|gate| self.activation(gate));
                let up = cx.linear("up_proj", x, width, false);
                gate.mul(&up)
            }
        };
        cx.linear("down_proj", &product, self.hidden, false)
    }

    pub(super) fn activation(&self, x: &Tensor) -> Tensor {
        match self.traits.activation {
            Activation::Silu => x.silu(),
            Activation::Gelu => x.gelu(),
            Activation::GeluNew => gelu_new(x),
            Activation::Relu => x.relu(),
        }
    }

    pub(super) fn dropped(&self, cx: &Cx, x: &Tensor) -> Tensor {
        cx.dropout(x, self.drop_rate)
    }
}
