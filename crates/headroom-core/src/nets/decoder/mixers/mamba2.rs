//! Mamba 2 (`GraniteMoeHybridMambaLayer` in transformers/models/granitemoehybrid/modeling_granitemoehybrid.py and its
//! relatives), chunk by chunk in plain PyTorch: `mamba2_chunk_scan`.

use super::super::super::{Cx, Sizes};
use super::super::Decoder;
use super::{causal_conv, without_padding};
use crate::tape::{DType, Tensor};

/// The widths of a Mamba 2 mixer.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a yes or no of a configuration.
pub(crate) struct Mamba2 {
    heads: u64,
    head_dim: u64,
    state: u64,
    groups: u64,
    kernel: u64,
    chunk: u64,
    bias: bool,
    conv_bias: bool,
    /// Falcon-H1: multipliers around the projection, and a gated norm only where the configuration says so.
    multiplied: bool,
    normed: bool,
    norm_before_gate: bool,
}

impl Mamba2 {
    pub(super) fn of(sizes: &Sizes) -> Self {
        Self {
            heads: sizes.or("m_heads", 1).max(1),
            head_dim: sizes.or("m_head_dim", 64).max(1),
            state: sizes.or("m_state", 128),
            groups: sizes.or("m_groups", 1).max(1),
            kernel: sizes.or("m_conv", 4).max(1),
            chunk: sizes.or("m_chunk", 256).max(1),
            bias: sizes.is_set("m_bias"),
            conv_bias: sizes.or("m_conv_bias", 1) != 0,
            multiplied: sizes.is_set("m_multiplied"),
            normed: sizes.or("m_norm", 1) != 0,
            norm_before_gate: sizes.is_set("m_norm_first"),
        }
    }

    fn inner(&self) -> u64 {
        self.heads * self.head_dim
    }
}

impl Decoder {
    pub(crate) fn mamba2(&self, cx: &Cx, x: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let this = self.mixers.mamba;
        let mut hidden = without_padding(x, padding);
        let dtype = hidden.dtype();
        let (b, s, inner) = (hidden.size(0), hidden.size(1), this.inner());
        let states = this.groups * this.state;
        let width = inner + 2 * states;
        if this.multiplied {
            hidden = hidden.mul_scalar();
        }
        let mut projected = cx.linear("in_proj", &hidden, inner + width + this.heads, this.bias);
        if this.multiplied {
            let shape = [1, 1, inner + width + this.heads];
            let factors = cx.buffer("mup_vector", shape, cx.env.weights);
            projected = projected.mul(&factors);
        }
        let a = {
            let log = cx.param("A_log", [this.heads]).tensor();
            log.to(DType::F32).pipe(Tensor::exp).pipe(Tensor::neg)
        };
        let parts = projected.split(&[inner, width, this.heads], -1);
        let [gate, mixed, dt] = &parts[..] else {
            return hidden;
        };
        let mut mixed = mixed.transpose(1, 2);
        mixed = causal_conv(cx, "conv1d", &mixed, this.kernel, this.conv_bias, true);
        mixed = without_padding(&mixed.transpose(1, 2), padding);
        let inputs = mixed.split(&[inner, states, states], -1);
        let [value, state_in, state_out] = &inputs[..] else {
            return hidden;
        };
        hidden = value.clone();
        let heads = |t: &Tensor, n: u64| t.view(&[b, s, n, t.size(-1) / n.max(1)]);
        let bias = cx.param("dt_bias", [this.heads]).tensor();
        let skip = cx.param("D", [this.heads]).tensor();
        let mut out = this.scan(
            [
                heads(value, this.heads),
                heads(state_in, this.groups),
                heads(state_out, this.groups),
            ],
            dt,
            [&a, &skip, &bias],
        );
        out = out.reshape(&[b, s, inner]);
        out = if this.normed {
            cx.module("norm", |cx| {
                let weight = cx.param("weight", [inner]).tensor();
                if this.norm_before_gate {
                    normed_then_gated(&out, gate, &weight, this.groups)
                } else {
                    gated_then_normed(&out, gate, &weight, this.groups)
                }
            })
        } else {
            gate.silu().pipe(|gate| out.mul(gate))
        };
        let narrow = out.to(dtype);
        let result = cx.linear("out_proj", &narrow, self.hidden, this.bias);
        drop((hidden, projected, a, mixed, out, narrow));
        result
    }
}

impl Mamba2 {
    /// `mamba2_chunk_scan` of values and states by heads and groups.
    fn scan(&self, all: [Tensor; 3], dt: &Tensor, [a, skip, bias]: [&Tensor; 3]) -> Tensor {
        let [mut hidden, mut b_in, mut c_out] = all;
        let (b, s, heads, dim) = (hidden.size(0), hidden.size(1), self.heads, self.head_dim);
        let mut dt = bias.to(dt.dtype()).pipe(|bias| dt.add(bias));
        dt = dt.softplus();
        dt = dt.clamp_between();
        hidden = hidden.to(DType::F32);
        let repeated = |t: &Tensor| {
            let wide = [b, s, self.groups, heads / self.groups, self.state];
            let copies = t
                .to(DType::F32)
                .pipe(|t| t.unsqueeze(3).expand(&wide).cloned_dense());
            copies.view(&[b, s, heads, self.state])
        };
        b_in = repeated(&b_in);
        c_out = repeated(&c_out);
        let pad = (self.chunk - s % self.chunk) % self.chunk;
        let residual = hidden
            .padded_at_end(1, pad)
            .pipe(|hidden| skip.unsqueeze(-1).mul(hidden));
        hidden = {
            let step = dt.unsqueeze(-1).to(DType::F32);
            hidden.mul(&step)
        };
        let mut a = {
            let step = dt.to(DType::F32);
            a.to(DType::F32).mul(&step)
        };
        let chunks = (s + pad) / self.chunk;
        let chunked = |t: &Tensor| {
            let shape = [&[b, chunks, self.chunk], &t.shape()[2..]].concat();
            t.padded_at_end(1, pad).reshape(&shape)
        };
        let all = [&hidden, &a, &b_in, &c_out].map(chunked);
        [hidden, a, b_in, c_out] = all;
        a = a.permute(&[0, 3, 1, 2]);
        let sums = a.cumsum(-1);
        let decay = segment_sums(&a).exp();
        let scores = c_out.einsum("bclhn", &b_in, "bcshn", "bclsh");
        let masked = scores.mul(&decay.permute(&[0, 2, 3, 4, 1]));
        let diagonal = masked.einsum("bclsh", &hidden, "bcshp", "bclhp");
        let decay_states = sums.narrow(-1, 1).sub(&sums).pipe(Tensor::exp);
        let b_decay = b_in.mul(&decay_states.permute(&[0, 2, 3, 1]).unsqueeze(-1));
        let mut states = b_decay.einsum("bclhn", &hidden, "bclhp", "bchpn");
        let previous = states.constant(
            "zeros_like",
            &[b, 1, heads, dim, self.state],
            states.dtype(),
        );
        states = Tensor::cat(&previous, &[&states], 1);
        let decay_chunk = sums
            .select(3)
            .pipe(|last| last.padded_at_end(2, 1))
            .pipe(segment_sums)
            .exp()
            .transpose(1, 3);
        let new_states = decay_chunk.einsum("bzch", &states, "bzhpn", "bchpn");
        states = new_states.narrow(1, chunks);
        let decay_out = sums.exp();
        let read = c_out.einsum("bclhn", &states, "bchpn", "bclhp");
        let off_diagonal = read.mul(&decay_out.permute(&[0, 2, 3, 1]).unsqueeze(-1));
        let mut out = diagonal.add(&off_diagonal).pipe(Tensor::contiguous);
        out = out.reshape(&[b, s + pad, heads, dim]);
        out = out.add(&residual);
        out = out.narrow(1, s);
        drop((
            decay,
            scores,
            masked,
            diagonal,
            decay_states,
            b_decay,
            previous,
        ));
        drop((
            decay_chunk,
            new_states,
            states,
            decay_out,
            read,
            off_diagonal,
        ));
        drop((sums, a, hidden, b_in, c_out, dt, residual));
        out
    }
}

/// `segment_sum`: sums over the segments between two positions, from a square for each row.
fn segment_sums(x: &Tensor) -> Tensor {
    let n = x.size(-1);
    let square = [&x.shape()[..], &[n]].concat();
    let lower = || {
        let mask = {
            let ones = x.constant("ones", &[n, n], DType::Bool);
            ones.constant("tril", &[n, n], DType::Bool)
        };
        let above = mask.constant("bitwise_not", &[n, n], DType::Bool);
        (mask, above)
    };
    let (mask, above) = lower();
    let filled = x.unsqueeze(-1).expand(&square).masked_fill(&above);
    drop(above);
    let mut sums = filled.cumsum(-2);
    drop(mask);
    let (_mask, above) = lower();
    sums = sums.masked_fill(&above);
    drop((above, filled));
    sums
}

/// `GraniteMoeHybridRMSNormGated.forward`: the gate first, then a norm over each group.
fn gated_then_normed(x: &Tensor, gate: &Tensor, weight: &Tensor, groups: u64) -> Tensor {
    let dtype = x.dtype();
    let mut hidden = x.to(DType::F32);
    hidden = gate
        .to(DType::F32)
        .pipe(Tensor::silu)
        .pipe(|gate| hidden.mul(gate));
    let shape = *hidden.shape();
    let [b, s, width] = [0, 1, 2].map(|i| hidden.size(i));
    let grouped = hidden.view(&[b, s, groups, width / groups.max(1)]);
    let variance = grouped.pow().pipe(|squares| squares.mean(&[-1]));
    let normed = variance
        .add_scalar()
        .pipe(Tensor::rsqrt)
        .pipe(|scale| grouped.mul(scale));
    drop(grouped);
    hidden = normed.view(&shape);
    let out = hidden.to(dtype).pipe(|hidden| weight.mul(hidden));
    drop((variance, normed));
    out
}

/// `FalconH1RMSNormGated.forward` with `norm_before_gate`.
fn normed_then_gated(x: &Tensor, gate: &Tensor, weight: &Tensor, groups: u64) -> Tensor {
    let dtype = x.dtype();
    let mut hidden = x.to(DType::F32);
    let shape = *hidden.shape();
    let [b, s, width] = [0, 1, 2].map(|i| hidden.size(i));
    let each = width / groups.max(1);
    hidden = hidden.view(&[b, s, groups, each]).to(DType::F32);
    let variance = hidden.pow().pipe(|squares| squares.mean(&[-1]));
    hidden = variance
        .add_scalar()
        .pipe(Tensor::rsqrt)
        .pipe(|scale| hidden.mul(scale));
    hidden = weight.view(&[groups, each]).mul(&hidden);
    hidden = hidden.view(&shape);
    hidden = gate
        .to(DType::F32)
        .pipe(Tensor::silu)
        .pipe(|gate| hidden.mul(gate));
    drop(variance);
    hidden.to(dtype)
}
