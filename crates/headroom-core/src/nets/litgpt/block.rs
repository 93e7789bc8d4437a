//! A block: its norms, its residuals and its MLP (`litgpt/model.py`).

use super::LitGpt;
use crate::nets::Cx;
use crate::tape::{DType, Tensor};

impl LitGpt {
    pub(super) fn block(&self, cx: &Cx, x: &Tensor, tables: &[Tensor; 2], layer: u64) -> Tensor {
        let first = self.norm(cx, "norm_1", x);
        let mut attn_out = cx.module("attn", |cx| self.attention(cx, &first, tables, layer));
        if self.post_norms {
            attn_out = self.norm(cx, "post_attention_norm", &attn_out);
        }
        if self.parallel {
            let second = if self.shared_norm {
                first.clone()
            } else {
                self.norm(cx, "norm_2", x)
            };
            return cx
                .module("mlp", |cx| self.mlp(cx, &second))
                .pipe(|mlp_out| mlp_out.add(&attn_out))
                .pipe(|sum| sum.add(x));
        }
        let x = attn_out.add(x);
        let second = self.norm(cx, "norm_2", &x);
        let mut mlp_out = cx.module("mlp", |cx| self.mlp(cx, &second));
        drop(second);
        if self.post_norms {
            mlp_out = self.norm(cx, "post_mlp_norm", &mlp_out);
        }
        let out = mlp_out.add(&x);
        drop(attn_out);
        out
    }

    pub(super) fn norm(&self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        if self.layer_norm {
            return cx.layer_norm(name, x);
        }
        cx.module(name, |cx| {
            let weight = cx.param("weight", [x.size(-1)]).tensor();
            let dtype = x.dtype();
            let x = x.to(DType::F32);
            let scale = x
                .mul(&x)
                .pipe(|squares| squares.mean(&[-1]))
                .pipe(Tensor::add_scalar)
                .pipe(Tensor::rsqrt);
            let normed = x.mul(&scale);
            if self.fp32_norm_weight {
                weight.mul(&normed).pipe(|product| product.to(dtype))
            } else {
                normed.pipe(|normed| normed.to(dtype)).mul(&weight)
            }
        })
    }

    pub(super) fn mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        if self.gpt_neox_mlp {
            let mut x = self.linear(cx, "fc", x, self.intermediate, self.bias);
            x = x.gelu();
            return self.linear(cx, "proj", &x, self.hidden, self.bias);
        }
        let gate = self.linear(cx, "fc_1", x, self.intermediate, self.bias);
        let up = self.linear(cx, "fc_2", x, self.intermediate, self.bias);
        let product = if self.gelu { gate.gelu() } else { gate.silu() }.pipe(|gate| gate.mul(&up));
        self.linear(cx, "proj", &product, self.hidden, self.bias)
    }
}
