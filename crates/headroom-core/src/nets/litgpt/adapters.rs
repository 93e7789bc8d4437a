//! Linear layers with their adapters (`litgpt/lora.py`, `adapter_v2.py`).

use super::LitGpt;
use crate::nets::Cx;
use crate::tape::Tensor;
use crate::tape::ops::Conv;

impl LitGpt {
    /// `LoRAQKVLinear.forward`: one projection for queries, keys and values, and one adapter for those of them that are targets.
    pub(super) fn qkv(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let d = self.head_dim;
        let width = (self.heads + 2 * self.query_groups) * d;
        let plain = self.scaled_linear(cx, "attn", x, width, self.bias);
        let Some(lora) = cx.env.training.lora.clone() else {
            return plain;
        };
        let all = [
            ("q_proj", self.heads * d),
            ("k_proj", self.query_groups * d),
            ("v_proj", self.query_groups * d),
        ];
        let widths: Vec<u64> = all
            .iter()
            .filter(|(name, _)| lora.targets.iter().any(|target| target == name))
            .map(|(_, width)| *width)
            .collect();
        let (n, sum) = (
            widths.len() as u64,
            widths.iter().copied().fold(0, u64::saturating_add),
        );
        if n == 0 {
            return plain;
        }
        cx.module("attn", |cx| {
            let a = cx.param_as(
                "lora_A",
                [lora.rank * n, x.size(-1)],
                cx.env.weights,
                |_| true,
            );
            let b = cx.param_as("lora_B", [sum, lora.rank], cx.env.weights, |_| true);
            let low = x
                .dropout(lora.dropout)
                .pipe(|x| x.linear(&a.tensor(), None))
                .transpose(1, 2);
            let b = b.tensor().unsqueeze(-1);
            let high = if self.heads == self.query_groups {
                let conv = Conv::default().grouped(n);
                low.convolution(&b, None, conv)
            } else {
                let lows = low.chunk(n, 1);
                let weights = b.split(&widths, 0);
                let parts: Vec<Tensor> = lows
                    .iter()
                    .zip(&weights)
                    .map(|(low, weight)| low.convolution(weight, None, Conv::default()))
                    .collect();
                match parts.split_first() {
                    Some((first, rest)) => Tensor::cat(first, &rest.iter().collect::<Vec<_>>(), 1),
                    None => low.clone(),
                }
            };
            let high = high.transpose(1, 2);
            let padded = if sum == width {
                high
            } else {
                high.index_copy_into_zeros(width, self.copies_padding)
            };
            let update = padded.pipe(Tensor::mul_scalar);
            plain.add(&update)
        })
    }

    /// `LoRALinear.forward`; targets are told in transformers' names.
    pub(super) fn linear(
        &self,
        cx: &Cx,
        name: &'static str,
        x: &Tensor,
        out: u64,
        bias: bool,
    ) -> Tensor {
        let plain = self.scaled_linear(cx, name, x, out, bias);
        let Some(lora) = cx.env.training.lora.clone() else {
            return plain;
        };
        let target = match name {
            "head" => "lm_head",
            "fc" | "fc_1" | "fc_2" => "up_proj",
            _ if cx.path().ends_with("mlp") => "down_proj",
            _ => "o_proj",
        };
        if !lora.targets.iter().any(|name| name == target) {
            return plain;
        }
        cx.module(name, |cx| {
            let a = cx.param_as("lora_A", [lora.rank, x.size(-1)], cx.env.weights, |_| true);
            let b = cx.param_as("lora_B", [out, lora.rank], cx.env.weights, |_| true);
            let update = x
                .dropout(lora.dropout)
                .pipe(|x| x.linear(&a.tensor(), None))
                .pipe(|low| low.linear(&b.tensor(), None))
                .pipe(Tensor::mul_scalar);
            plain.add(&update)
        })
    }

    /// The layer without a low-rank adapter: `AdapterV2Linear.forward` where the run requests it.
    fn scaled_linear(
        &self,
        cx: &Cx,
        name: &'static str,
        x: &Tensor,
        out: u64,
        bias: bool,
    ) -> Tensor {
        let plain = cx.plain_linear(name, x, out, bias);
        if !self.adapter_v2 {
            return plain;
        }
        cx.module(name, |cx| {
            let bias = cx.param("adapter_bias", [out]).tensor();
            let scale = cx.param("adapter_scale", [out]).tensor();
            plain
                .pipe(|plain| plain.add(&bias))
                .pipe(|sum| scale.mul(sum))
        })
    }
}
