//! `T5Attention` and its relative position biases.

use super::T5;
use super::stack::{AttentionInputs, Stack};
use crate::nets::Cx;
use crate::nets::kv_cache::cached;
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::{Attention, Checkpointing};

impl Stack {
    /// `T5Attention.forward`: the result, the position bias and, in eager attention, the weights.
    pub(crate) fn attention(
        self,
        cx: &Cx,
        x: &Tensor,
        inputs: AttentionInputs,
    ) -> (Tensor, Tensor, Option<Tensor>) {
        let AttentionInputs {
            position_bias,
            causal,
            encoded,
            cache,
        } = inputs;
        let T5 {
            heads, head_dim, ..
        } = self.model;
        let (b, s) = (x.size(0), x.size(1));
        let project = |name, x: &Tensor| {
            let wide = cx.linear(name, x, heads * head_dim, false);
            let (b, s) = (x.size(0), x.size(1));
            wide.view(&[b, s, heads, head_dim]).transpose(1, 2)
        };
        let q = project("q", x);
        let k = project("k", encoded.unwrap_or(x));
        let v = project("v", encoded.unwrap_or(x));
        let (k, v) = cached(cache, k, v);
        let start = cx.tape.construction_point();
        let bias = match (position_bias, encoded) {
            (Some(bias), _) => bias.clone(),
            (None, None) => self.compute_bias(cx, s),
            (None, Some(_)) => {
                let shape = [1, heads, s, k.size(2)];
                let zeros = q.constant("zeros", &shape, q.dtype());
                if cx.checkpointing() == Checkpointing::Layers {
                    zeros.requires_grad_()
                } else {
                    zeros
                }
            }
        };
        let made = cx.tape.construction_point();
        let (mut out, weights) = match cx.env.training.attention {
            Attention::Sdpa | Attention::Flash2 => {
                let mask = if self.is_decoder && encoded.is_none() && s > 1 {
                    causal_bias(&bias)
                } else {
                    bias.contiguous()
                };
                let mask = AttentionMask::Given(mask);
                let out = q.attention(&k, &v, &mask, cx.rate(0.1));
                (out.transpose(1, 2).contiguous(), None)
            }
            Attention::Eager => {
                let mut weights = q.matmul(&k.transpose(2, 3)).pipe(Tensor::mul_scalar);
                weights = weights.add(&bias);
                if let Some(causal) = causal {
                    weights = weights.add(causal);
                }
                weights = weights.softmax(None);
                weights = cx.dropout(&weights, 0.1);
                let out = weights.matmul(&v);
                (out.transpose(1, 2).contiguous(), Some(weights))
            }
        };
        out = out.reshape(&[b, s, heads * head_dim]);
        out = cx.linear("o", &out, self.model.hidden, false);
        cx.tape.construct_here(start, made);
        (out, bias, weights)
    }

    /// `compute_bias`: `[1, H, S, S]`, with its heads innermost in memory.
    fn compute_bias(self, cx: &Cx, s: u64) -> Tensor {
        let index = || cx.tape.empty("arange", [s], DType::I64);
        let context = index().pipe(Tensor::add_scalar);
        let memory = index();
        let relative = memory.constant("sub", &[s, s], DType::I64);
        let buckets = relative_position_bucket(&relative, !self.is_decoder);
        let values = cx.embedding(
            "relative_attention_bias",
            &buckets,
            self.model.buckets,
            self.model.heads,
        );
        drop((context, memory, relative));
        values.permute(&[2, 0, 1]).unsqueeze(0)
    }
}

/// `_relative_position_bucket`, an operation at a time.
pub(crate) fn relative_position_bucket(relative: &Tensor, bidirectional: bool) -> Tensor {
    let shape = relative.shape();
    let make = |op: &'static str, dtype| relative.constant(op, shape, dtype);
    let step = |from: Tensor, op: &'static str, dtype| {
        let to = make(op, dtype);
        drop(from);
        to
    };
    let (sum, distance) = if bidirectional {
        let sign = step(make("gt", DType::Bool), "to", DType::I64);
        let part = step(sign, "mul", DType::I64);
        let sum = step(part, "add", DType::I64);
        (Some(sum), make("abs", DType::I64))
    } else {
        let least = step(make("zeros_like", DType::I64), "minimum", DType::I64);
        (None, step(least, "neg", DType::I64))
    };
    let is_small = make("lt", DType::Bool);
    let mut logs = make("to", DType::F32);
    for op in ["div", "log", "div", "mul"] {
        logs = step(logs, op, DType::F32);
    }
    let large = step(logs, "to", DType::I64);
    let large = step(large, "add", DType::I64);
    let most = make("full_like", DType::I64);
    let bounded = make("minimum", DType::I64);
    drop((most, large));
    let chosen = make("where", DType::I64);
    // With a sum this is an addition in place.
    let result = sum.unwrap_or_else(|| make("add", DType::I64));
    drop((chosen, bounded, is_small, distance));
    result
}

/// `create_position_bias_mask` where attention is causal and nothing is padded.
fn causal_bias(bias: &Tensor) -> Tensor {
    let (queries, keys) = (bias.size(-2), bias.size(-1));
    let rows = bias.constant("arange", &[queries], DType::I64);
    let columns = bias.constant("arange", &[keys], DType::I64);
    let allowed = bias.constant("ge", &[1, 1, queries, keys], DType::Bool);
    drop((rows, columns));
    let masked = bias.where_mask(&allowed);
    masked.contiguous()
}
