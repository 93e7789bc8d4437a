//! The gated delta rule (`Qwen3_5GatedDeltaNet` in transformers/models/qwen3_5/modeling_qwen3_5.py; with fused projections
//! `Qwen3NextGatedDeltaNet`), chunk by chunk in plain PyTorch.

use super::super::super::{Cx, Sizes};
use super::super::Decoder;
use super::{causal_conv, without_padding};
use crate::tape::{DType, Tensor};

/// `chunk_size` of `torch_chunk_gated_delta_rule`.
const CHUNK: u64 = 64;

/// The widths of the delta rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatedDelta {
    key_heads: u64,
    value_heads: u64,
    key_dim: u64,
    value_dim: u64,
    kernel: u64,
    /// Two projections make what four do (Qwen3-Next).
    fused: bool,
}

impl GatedDelta {
    pub(super) fn of(sizes: &Sizes) -> Self {
        Self {
            key_heads: sizes.or("delta_key_heads", 16).max(1),
            value_heads: sizes.or("delta_heads", 32).max(1),
            key_dim: sizes.or("delta_key_dim", 128),
            value_dim: sizes.or("delta_dim", 128),
            kernel: sizes.or("delta_conv", 4).max(1),
            fused: sizes.is_set("delta_fused"),
        }
    }
}

impl Decoder {
    pub(super) fn gated_delta(&self, cx: &Cx, x: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let this = self.mixers.delta;
        let hidden = without_padding(x, padding);
        let (b, s) = (hidden.size(0), hidden.size(1));
        let (keys, values) = (
            this.key_heads * this.key_dim,
            this.value_heads * this.value_dim,
        );
        let (mut mixed, z, beta_input, a, held) = if this.fused {
            this.fused_projections(cx, &hidden)
        } else {
            let mixed = cx
                .linear("in_proj_qkv", &hidden, 2 * keys + values, false)
                .transpose(1, 2);
            let z = cx
                .linear("in_proj_z", &hidden, values, false)
                .pipe(|z| z.reshape(&[b, s, this.value_heads, this.value_dim]));
            let beta = cx.linear("in_proj_b", &hidden, this.value_heads, false);
            let a = cx.linear("in_proj_a", &hidden, this.value_heads, false);
            (mixed, z, beta, a, Vec::new())
        };
        mixed = causal_conv(cx, "conv1d", &mixed, this.kernel, false, true);
        mixed = mixed.transpose(1, 2);
        let parts = mixed.split(&[keys, keys, values], -1);
        let [query, key, value] = &parts[..] else {
            return hidden;
        };
        let heads = |t: &Tensor, dim: u64| t.reshape(&[b, s, t.size(-1) / dim.max(1), dim]);
        let [query, key] = [query, key].map(|t| heads(t, this.key_dim));
        let value = heads(value, this.value_dim);
        drop(parts);
        let beta = beta_input.sigmoid();
        let g = {
            let decay = {
                let log = cx.param("A_log", [this.value_heads]).tensor();
                log.to(DType::F32).pipe(Tensor::exp).pipe(Tensor::neg)
            };
            let step = {
                let bias = cx.param("dt_bias", [this.value_heads]).tensor();
                let sum = a.to(DType::F32).pipe(|a| a.add(&bias));
                sum.softplus()
            };
            decay.mul(&step)
        };
        let mut out = this.chunked([&query, &key, &value], &g, &beta);
        out = out.reshape(&[b * s * this.value_heads, this.value_dim]);
        let z = z.reshape(&[b * s * this.value_heads, this.value_dim]);
        out = cx.module("norm", |cx| {
            let weight = cx.param("weight", [this.value_dim]).tensor();
            gated_norm(&out, &z, &weight)
        });
        out = out.reshape(&[b, s, values]);
        let result = cx.linear("out_proj", &out, self.hidden, false);
        drop((
            mixed, query, key, value, beta_input, a, beta, g, z, out, held,
        ));
        result
    }
}

impl GatedDelta {
    /// `fix_query_key_value_ordering` of Qwen3-Next: the mixed queries, keys and values `[B, C, S]`, the gate, and the inputs of
    /// beta and of the decay.
    fn fused_projections(
        &self,
        cx: &Cx,
        hidden: &Tensor,
    ) -> (Tensor, Tensor, Tensor, Tensor, Vec<Tensor>) {
        let (b, s, groups) = (hidden.size(0), hidden.size(1), self.key_heads);
        let ratio = self.value_heads / groups;
        let widths = [
            self.key_dim,
            self.key_dim,
            ratio * self.value_dim,
            ratio * self.value_dim,
        ];
        let each: u64 = widths.iter().sum();
        let both = cx
            .linear("in_proj_qkvz", hidden, groups * each, false)
            .view(&[b, s, groups, each]);
        let rates = cx
            .linear("in_proj_ba", hidden, groups * 2 * ratio, false)
            .view(&[b, s, groups, 2 * ratio]);
        let parts = both.split(&widths, -1);
        let halves = rates.split(&[ratio, ratio], -1);
        let ([query, key, value, z], [beta, a]) = (&parts[..], &halves[..]) else {
            let same = || hidden.clone();
            return (same(), same(), same(), same(), Vec::new());
        };
        let of_values = |t: &Tensor| t.reshape(&[b, s, self.value_heads, self.value_dim]);
        let (value, z) = (of_values(value), of_values(z));
        let of_rates = |t: &Tensor| t.reshape(&[b, s, self.value_heads]);
        let (beta, a) = (of_rates(beta), of_rates(a));
        let flat = |t: &Tensor| t.reshape(&[b, s, t.numel() / (b * s).max(1)]);
        let (query, key, value) = (flat(query), flat(key), flat(&value));
        let mixed = Tensor::cat(&query, &[&key, &value], -1).transpose(1, 2);
        (mixed, z, beta, a, vec![query, key, value, both, rates])
    }

    /// `torch_chunk_gated_delta_rule` without initial and final state.
    fn chunked(&self, [query, key, value]: [&Tensor; 3], g: &Tensor, beta: &Tensor) -> Tensor {
        let dtype = query.dtype();
        let (b, s) = (query.size(0), query.size(1));
        let (heads, dim) = (self.value_heads, self.value_dim);
        let (mut query, mut key) = (query.clone(), key.clone());
        let ratio = heads / self.key_heads;
        if ratio > 1 {
            let wide = [b, s, self.key_heads, ratio, self.key_dim];
            let repeated = |t: &Tensor| {
                let copies = t.unsqueeze(3).repeated(&wide);
                copies.view(&[b, s, heads, self.key_dim])
            };
            query = repeated(&query);
            key = repeated(&key);
        }
        let wide = |t: &Tensor| t.transpose(1, 2).to_dense(DType::F32);
        let (mut value, mut beta, mut decay) = (value.clone(), beta.clone(), g.clone());
        let all = [&query, &key, &value, &beta, &decay].map(wide);
        [query, key, value, beta, decay] = all;
        query = unit_length(&query);
        key = unit_length(&key);
        query = query.mul_scalar();
        let pad = (CHUNK - s % CHUNK) % CHUNK;
        let all = [&query, &key, &value].map(|t| t.padded_at_end(2, pad));
        [query, key, value] = all;
        let both = [&beta, &decay].map(|t| t.padded_at_end(2, pad));
        [beta, decay] = both;
        let chunks = (s + pad) / CHUNK;
        let mut value_beta = value.mul(&beta.unsqueeze(-1));
        let mut key_beta = key.mul(&beta.unsqueeze(-1));
        let by_chunk = |t: &Tensor| t.reshape(&[b, heads, chunks, CHUNK, t.size(-1)]);
        let all = [&query, &key, &key_beta, &value_beta].map(by_chunk);
        [query, key, key_beta, value_beta] = all;
        decay = decay.reshape(&[b, heads, chunks, CHUNK]);
        let upper = {
            let ones = query.constant("ones", &[CHUNK, CHUNK], DType::Bool);
            ones.constant("triu", &[CHUNK, CHUNK], DType::Bool)
        };
        let sums = decay.cumsum(3);
        let mut pairwise = sums.unsqueeze(4).sub(&sums.unsqueeze(3));
        pairwise = pairwise.masked_fill(&upper);
        pairwise = pairwise.exp();
        let scores = |t: &Tensor| {
            let product = t.matmul(&key.transpose(-1, -2));
            product.mul(&pairwise)
        };
        let system = scores(&key_beta);
        let within = scores(&query);
        let decayed = sums.exp().pipe(|sums| key_beta.mul(&sums.unsqueeze(-1)));
        let new_values = system.solve_triangular(&value_beta);
        let key_decay = system.solve_triangular(&decayed);
        let state_shape = [b, heads, self.key_dim, dim];
        let mut state = new_values.constant("zeros", &state_shape, DType::F32);
        let mut out = new_values.empty_like("zeros_like", DType::F32);
        query = sums.exp().pipe(|sums| query.mul(&sums.unsqueeze(-1)));
        key = {
            let left = sums.narrow(3, 1).sub(&sums).pipe(Tensor::exp);
            key.mul(&left.unsqueeze(-1))
        };
        let chunk_decay = sums.select(3).exp().unsqueeze(-1).unsqueeze(-1);
        let mut held = None;
        for _ in 0..chunks {
            let new = {
                let old = key_decay.select(2).matmul(&state);
                new_values.select(2).sub(&old)
            };
            let between = query.select(2).matmul(&state);
            let sum = {
                let inside = within.select(2).matmul(&new);
                between.add(&inside)
            };
            out = out.copy_into_slice_(&sum);
            drop(sum);
            let next = {
                let kept = state.mul(&chunk_decay.select(2));
                let added = key.select(2).transpose(-1, -2).matmul(&new);
                kept.add(&added)
            };
            state = next;
            held = Some((new, between));
        }
        out = out.reshape(&[b, heads, s + pad, dim]).narrow(2, s);
        out = out.transpose(1, 2).to_dense(dtype);
        drop((
            state,
            held,
            chunk_decay,
            key_decay,
            new_values,
            decayed,
            within,
            system,
        ));
        drop((
            pairwise, sums, upper, decay, beta, value, value_beta, key_beta,
        ));
        out
    }
}

/// `l2norm`.
fn unit_length(x: &Tensor) -> Tensor {
    let scale = x
        .mul(x)
        .pipe(|squares| squares.sum(&[-1]))
        .pipe(Tensor::add_scalar)
        .pipe(Tensor::rsqrt);
    x.mul(&scale)
}

/// `Qwen3_5RMSNormGated.forward`.
fn gated_norm(x: &Tensor, gate: &Tensor, weight: &Tensor) -> Tensor {
    let dtype = x.dtype();
    let mut hidden = x.to(DType::F32);
    let variance = hidden.pow().pipe(|squares| squares.mean(&[-1]));
    hidden = variance
        .add_scalar()
        .pipe(Tensor::rsqrt)
        .pipe(|scale| hidden.mul(scale));
    hidden = hidden.to(dtype).pipe(|narrow| weight.mul(narrow));
    hidden = gate
        .to(DType::F32)
        .pipe(Tensor::silu)
        .pipe(|gate| hidden.mul(gate));
    drop(variance);
    hidden.to(dtype)
}
