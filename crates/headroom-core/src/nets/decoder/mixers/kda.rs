//! The delta rule of Kimi Linear (`KimiLinearDeltaAttention` in transformers/models/kimi_linear/modeling_kimi_linear.py), whose
//! decay has a number for each channel: chunk by chunk in plain PyTorch.

use super::super::super::{Cx, Sizes};
use super::super::Decoder;
use super::{causal_conv, without_padding};
use crate::tape::{DType, Tensor};

/// `chunk_size` of `chunk_kimi_delta_attention`.
const CHUNK: u64 = 64;

/// The widths of the rule: queries, keys and values have the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KimiDelta {
    heads: u64,
    dim: u64,
    kernel: u64,
}

impl KimiDelta {
    pub(super) fn of(sizes: &Sizes) -> Self {
        Self {
            heads: sizes.or("delta_heads", 32).max(1),
            dim: sizes.or("delta_dim", 128),
            kernel: sizes.or("delta_conv", 4).max(1),
        }
    }
}

impl Decoder {
    pub(super) fn kimi_delta(&self, cx: &Cx, x: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let this = self.mixers.kimi;
        let hidden = without_padding(x, padding);
        let (b, s, width) = (hidden.size(0), hidden.size(1), this.heads * this.dim);
        let mut mixed = {
            let all =
                ["q_proj", "k_proj", "v_proj"].map(|name| cx.linear(name, &hidden, width, false));
            Tensor::cat(&all[0], &[&all[1], &all[2]], -1).transpose(1, 2)
        };
        mixed = causal_conv(cx, "conv1d", &mixed, this.kernel, false, true);
        let parts = mixed.transpose(1, 2).split(&[width; 3], -1);
        let heads = |t: &Tensor| t.reshape(&[b, s, this.heads, this.dim]);
        let [query, key, value] = &parts[..] else {
            return hidden;
        };
        let [query, key, value] = [query, key, value].map(heads);
        drop(parts);
        let decay = cx.module("forget_gate", |cx| this.forget_gate(cx, &hidden));
        let beta = cx
            .linear("b_proj", &hidden, this.heads, false)
            .pipe(Tensor::sigmoid);
        let out = this.chunked([&query, &key, &value], &decay, &beta);
        let gate = cx
            .linear("g_a_proj", &hidden, this.dim, false)
            .pipe(|narrow| cx.linear("g_b_proj", narrow, width, false))
            .view(&[b, s, this.heads, this.dim]);
        let mut output = cx.module("o_norm", |cx| {
            let weight = cx.param("weight", [this.dim]).tensor();
            gated_norm(&out, &gate, &weight)
        });
        output = output.reshape(&[b, s, width]);
        output = cx.linear("o_proj", &output, self.hidden, false);
        drop((mixed, query, key, value, decay, beta, out, gate));
        output
    }
}

impl KimiDelta {
    /// `KimiLinearForgetGate.forward`.
    fn forget_gate(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let (b, s) = (x.size(0), x.size(1));
        let gate = cx
            .linear("f_a_proj", x, self.dim, false)
            .pipe(|narrow| cx.linear("f_b_proj", narrow, self.heads * self.dim, false));
        let g = {
            let bias = cx.param("dt_bias", [self.heads * self.dim]).tensor();
            let wide = gate.to(DType::F32);
            let bias = bias.to(DType::F32).view(&[1, 1, self.heads * self.dim]);
            wide.add(&bias).view(&[b, s, self.heads, self.dim])
        };
        let log = cx.param("A_log", [1, 1, self.heads, 1]).tensor();
        let log = log.to(DType::F32);
        let rate = log.exp();
        let softplus = {
            let large = g.constant("gt", g.shape(), DType::Bool);
            let soft = g.exp().pipe(Tensor::add_scalar).pipe(Tensor::log);
            large.choose(&g, &soft)
        };
        let out = rate.neg().pipe(|rate| rate.mul(&softplus));
        drop((gate, g, log, rate, softplus));
        out
    }

    /// `chunk_kimi_delta_attention` without initial and final state.
    fn chunked(&self, [query, key, value]: [&Tensor; 3], g: &Tensor, beta: &Tensor) -> Tensor {
        let dtype = query.dtype();
        let (b, s, heads, dim) = (query.size(0), query.size(1), self.heads, self.dim);
        let wide = |t: &Tensor| t.transpose(1, 2).contiguous().to(DType::F32);
        let [mut query, mut key, mut value, mut beta, mut g] =
            [query, key, value, beta, g].map(wide);
        query = unit_length(&query);
        key = unit_length(&key);
        let pad = (CHUNK - s % CHUNK) % CHUNK;
        let padded = |t: &Tensor| t.padded_at_end(2, pad);
        query = query.pipe(padded).pipe(Tensor::mul_scalar);
        key = padded(&key);
        value = padded(&value);
        g = padded(&g);
        beta = padded(&beta);
        let chunks = (s + pad) / CHUNK;
        let mut value_beta = value.mul(&beta.unsqueeze(-1));
        let mut key_beta = key.mul(&beta.unsqueeze(-1));
        let by_chunk = |t: &Tensor| t.reshape(&[b, heads, chunks, CHUNK, dim]);
        let all = [&query, &key, &g, &key_beta, &value_beta].map(by_chunk);
        [query, key, g, key_beta, value_beta] = all;
        g = g.cumsum(-2);
        let mask = upper(&g);
        let strict = upper(&g);
        let decay = g
            .unsqueeze(-2)
            .sub(&g.unsqueeze(-3))
            .pipe(|differences| differences.masked_fill(&strict.unsqueeze(-1)))
            .pipe(Tensor::exp);
        let mut system = key_beta
            .unsqueeze(-2)
            .mul(&key.unsqueeze(-3))
            .pipe(|pairs| pairs.mul(&decay))
            .pipe(|pairs| pairs.sum(&[-1]).squeeze(-1))
            .pipe(|sums| sums.masked_fill(&mask))
            .pipe(Tensor::neg);
        let mut last = None;
        for i in 1..CHUNK {
            let row = system.select(3).narrow(-1, i).cloned();
            let above = system.narrow(-2, i).narrow(-1, i).cloned();
            let new = row
                .unsqueeze(-1)
                .mul(&above)
                .pipe(|products| products.sum(&[-2]).squeeze(-2))
                .pipe(|sums| row.add(sums));
            system = system.put(&new);
            last = Some((row, above));
        }
        system = {
            let eye = system.constant("eye", &[CHUNK, CHUNK], DType::F32);
            system.add(&eye)
        };
        value = system.matmul(&value_beta);
        let key_decay = g
            .exp()
            .pipe(|decays| key_beta.mul(decays))
            .pipe(|decayed| system.matmul(decayed));
        let mut state = value.constant("zeros", &[b, heads, dim, dim], DType::F32);
        let mut out = value.empty_like("zeros_like", DType::F32);
        let mask = {
            drop(mask);
            upper(&g)
        };
        let mut held = None;
        for _ in 0..chunks {
            let [q_i, k_i, v_i, g_i] = [&query, &key, &value, &g].map(|t| t.select(2));
            let between = {
                let decayed = g_i.exp().pipe(|decays| q_i.mul(decays));
                decayed.matmul(&state)
            };
            let within = q_i
                .unsqueeze(-2)
                .mul(&k_i.unsqueeze(-3))
                .pipe(|pairs| pairs.mul(&decay.select(2)))
                .pipe(|pairs| pairs.sum(&[-1]).squeeze(-1))
                .pipe(|sums| sums.masked_fill(&mask));
            let old = key_decay.select(2).matmul(&state);
            let new = v_i.sub(&old);
            {
                let inside = within.matmul(&new);
                let sum = between.add(&inside);
                drop(inside);
                out = out.put(&sum);
            }
            state = {
                let kept = g_i
                    .select(2)
                    .exp()
                    .pipe(|decays| state.mul(&decays.unsqueeze(-1)));
                let added = g_i
                    .narrow(2, 1)
                    .sub(&g_i)
                    .pipe(Tensor::exp)
                    .pipe(|left| k_i.mul(left))
                    .pipe(|keys| keys.transpose(-1, -2).matmul(&new));
                kept.add(&added)
            };
            held = Some((between, within, old, new));
        }
        out = out.reshape(&[b, heads, s + pad, dim]).narrow(2, s);
        out = out.transpose(1, 2).contiguous().to(dtype);
        drop((state, held, last, key_decay, system, decay, strict, mask));
        drop((query, key, value, g, beta, key_beta, value_beta));
        out
    }
}

/// `torch.triu(torch.ones(chunk, chunk))`.
fn upper(x: &Tensor) -> Tensor {
    let ones = x.constant("ones", &[CHUNK, CHUNK], DType::Bool);
    ones.constant("triu", &[CHUNK, CHUNK], DType::Bool)
}

/// `l2norm`, by a division.
fn unit_length(x: &Tensor) -> Tensor {
    let length = x
        .mul(x)
        .pipe(|squares| squares.sum(&[-1]))
        .pipe(Tensor::add_scalar)
        .pipe(Tensor::sqrt);
    x.div(&length)
}

/// `KimiLinearRMSNormGated.forward`: fp32 to the end, the weight too.
fn gated_norm(x: &Tensor, gate: &Tensor, weight: &Tensor) -> Tensor {
    let dtype = x.dtype();
    let mut hidden = x.to(DType::F32);
    let variance = hidden.pow().pipe(|squares| squares.mean(&[-1]));
    hidden = variance
        .add_scalar()
        .pipe(Tensor::rsqrt)
        .pipe(|scale| hidden.mul(scale));
    hidden = weight.to(DType::F32).pipe(|weight| weight.mul(&hidden));
    hidden = gate
        .to(DType::F32)
        .pipe(Tensor::sigmoid)
        .pipe(|gate| hidden.mul(gate));
    drop(variance);
    hidden.to(dtype)
}
