//! The block that text and image share, and its attention.

use crate::nets::Cx;
use crate::nets::diffusion::{feed_forward, modulate, modulated_norm, modulation};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

/// The sizes of a network's blocks, and what differs between them.
#[derive(Clone, Debug)]
pub(crate) struct Joint {
    pub heads: u64,
    pub head_dim: u64,
    /// RMS norms of queries and keys.
    pub norms: bool,
    /// Cosines and sines of FLUX's positions, which also puts the text first.
    pub rotary: Option<[Tensor; 2]>,
    /// The last block of SD3 leaves the text behind.
    pub pre_only: bool,
    /// A second attention of the image to itself (SD3.5 medium).
    pub dual: bool,
}

impl Joint {
    pub(crate) fn width(&self) -> u64 {
        self.heads.saturating_mul(self.head_dim)
    }

    /// `FluxTransformerBlock`, `JointTransformerBlock`: image and text in, image and text out.
    pub(crate) fn block(
        &self,
        cx: &Cx,
        hidden: &Tensor,
        text: &Tensor,
        emb: &Tensor,
    ) -> [Tensor; 2] {
        let both = || [hidden.clone(), text.clone()];
        let parts = ada_norm(cx, "norm1", emb, if self.dual { 9 } else { 6 });
        let [
            shift,
            scale,
            gate,
            shift_mlp,
            scale_mlp,
            gate_mlp,
            second @ ..,
        ] = &parts[..]
        else {
            return both();
        };
        let plain = hidden.layer_norm(None, None);
        let normed = modulate(&plain, scale, shift);
        let again = match second {
            [shift, scale, _] => Some(modulate(&plain, scale, shift)),
            _ => None,
        };
        drop(plain);
        let text_parts = ada_norm(cx, "norm1_context", emb, if self.pre_only { 2 } else { 6 });
        let normed_text = match &text_parts[..] {
            [scale, shift] | [shift, scale, ..] => modulated_norm(text, scale, shift),
            _ => return both(),
        };
        let (mut attended, attended_text) =
            cx.module("attn", |cx| self.attention(cx, &normed, Some(&normed_text)));
        attended = gate.unsqueeze(1).mul(&attended);
        let mut hidden = hidden.add(&attended);
        if let (Some(again), [.., gate]) = (again, second) {
            let (more, _) = cx.module("attn2", |cx| self.attention(cx, &again, None));
            hidden = gate.unsqueeze(1).pipe(|gate| hidden.add(&gate.mul(&more)));
        }
        let normed = modulated_norm(&hidden, scale_mlp, shift_mlp);
        let mut ff_output = feed_forward(cx, "ff", &normed);
        ff_output = gate_mlp.unsqueeze(1).mul(&ff_output);
        hidden = hidden.add(&ff_output);
        let ([_, _, gate, shift_mlp, scale_mlp, gate_mlp], Some(mut attended)) =
            (&text_parts[..], attended_text)
        else {
            return [hidden, text.clone()];
        };
        attended = gate.unsqueeze(1).mul(&attended);
        let mut text = text.add(&attended);
        let normed = modulated_norm(&text, scale_mlp, shift_mlp);
        let ff_output = feed_forward(cx, "ff_context", &normed);
        text = gate_mlp
            .unsqueeze(1)
            .mul(&ff_output)
            .pipe(|ff_output| text.add(ff_output));
        [hidden, text]
    }

    /// `FluxSingleTransformerBlock`: one stream, attention and feed-forward side by side.
    pub(crate) fn single(
        &self,
        cx: &Cx,
        hidden: &Tensor,
        text: &Tensor,
        emb: &Tensor,
    ) -> [Tensor; 2] {
        let (words, width) = (text.size(1), self.width());
        let pixels = hidden.size(1);
        let both = Tensor::cat(text, &[hidden], 1);
        let parts = ada_norm(cx, "norm", emb, 3);
        let [shift, scale, gate] = &parts[..] else {
            return [hidden.clone(), text.clone()];
        };
        let normed = modulated_norm(&both, scale, shift);
        let ff_output = cx
            .linear("proj_mlp", &normed, 4 * width, true)
            .pipe(Tensor::gelu);
        let (attended, _) = cx.module("attn", |cx| self.attention(cx, &normed, None));
        let joined = Tensor::cat(&attended, &[&ff_output], 2);
        let mut out = cx.linear("proj_out", &joined, width, true);
        out = gate.unsqueeze(1).mul(&out);
        out = both.add(&out);
        let [text, hidden] = [words, pixels].map(|n| out.narrow(1, n));
        [hidden, text]
    }

    /// `FluxAttnProcessor`, `JointAttnProcessor2_0`.
    fn attention(&self, cx: &Cx, x: &Tensor, text: Option<&Tensor>) -> (Tensor, Option<Tensor>) {
        let width = self.width();
        // SD3 brings the heads forward at once, FLUX only for the attention itself.
        let text_first = self.rotary.is_some();
        let rows = |x: &Tensor| {
            let rows = x.view(&[x.size(0), x.size(1), self.heads, self.head_dim]);
            if text_first {
                rows
            } else {
                rows.transpose(1, 2)
            }
        };
        let normed = |name, x: Tensor| match (self.norms, &self.rotary) {
            (true, Some(_)) => cx.fused_rms_norm(name, &x),
            (true, None) => cx.module(name, |cx| rms_norm(cx, &x)),
            (false, _) => x,
        };
        let project = |names: [&'static str; 3], x: &Tensor| {
            names.map(|name| rows(&cx.linear(name, x, width, true)))
        };
        let [mut query, mut key, mut value] = project(["to_q", "to_k", "to_v"], x);
        query = normed("norm_q", query);
        key = normed("norm_k", key);
        if let Some(text) = text {
            let names = ["add_q_proj", "add_k_proj", "add_v_proj"];
            let [mut text_query, mut text_key, text_value] = project(names, text);
            text_query = normed("norm_added_q", text_query);
            text_key = normed("norm_added_k", text_key);
            let join = |image: &Tensor, text: &Tensor| match self.rotary {
                Some(_) => Tensor::cat(text, &[image], 1),
                None => Tensor::cat(image, &[text], 2),
            };
            query = join(&query, &text_query);
            key = join(&key, &text_key);
            value = join(&value, &text_value);
        }
        if let Some([cosines, sines]) = &self.rotary {
            query = apply_rotary_emb(&query, cosines, sines);
            key = apply_rotary_emb(&key, cosines, sines);
        }
        let [q, k, v] = [&query, &key, &value].map(|x| {
            if text_first {
                x.transpose(1, 2)
            } else {
                x.clone()
            }
        });
        let mut out = q.attention(&k, &v, &AttentionMask::None, 0.0);
        out = out.transpose(1, 2);
        out = out.reshape(&[out.size(0), out.size(1), width]);
        out = out.to(query.dtype());
        let to_out = |x: &Tensor| cx.module("to_out", |cx| cx.linear("0", x, width, true));
        let Some(text) = text else {
            // FLUX's single blocks project after joining; SD3's second attention projects at once.
            return match self.rotary {
                Some(_) => (out, None),
                None => (to_out(&out), None),
            };
        };
        let (words, pixels) = (text.size(1), x.size(1));
        let (image, text) = if text_first {
            let parts = out.split(&[words, pixels], 1);
            let [text, image] = &parts[..] else {
                return (out, None);
            };
            (image.contiguous(), text.contiguous())
        } else {
            (out.narrow(1, pixels), out.narrow(1, words))
        };
        let to_add_out = || (!self.pre_only).then(|| cx.linear("to_add_out", &text, width, true));
        if text_first {
            let image = to_out(&image);
            return (image, to_add_out());
        }
        let text = to_add_out();
        (to_out(&image), text)
    }
}

/// `AdaLayerNormZero`: its linear layer makes as many shifts, scales and gates.
fn ada_norm(cx: &Cx, name: &'static str, emb: &Tensor, parts: u64) -> Vec<Tensor> {
    cx.module(name, |cx| modulation(cx, "linear", emb, parts))
}

/// `AdaLayerNormContinuous`, the norm before the last projection.
pub(crate) fn last_norm(cx: &Cx, x: &Tensor, emb: &Tensor) -> Tensor {
    let parts = ada_norm(cx, "norm_out", emb, 2);
    match &parts[..] {
        [scale, shift] => modulated_norm(x, scale, shift),
        _ => x.clone(),
    }
}

/// `RMSNorm` of diffusers, an operation at a time.
fn rms_norm(cx: &Cx, x: &Tensor) -> Tensor {
    let weight = cx.param("weight", [x.size(-1)]).tensor();
    let squares = x.to(DType::F32).pipe(Tensor::pow);
    let variance = squares.mean(&[-1]);
    drop(squares);
    let mut hidden = variance
        .add_scalar()
        .pipe(Tensor::rsqrt)
        .pipe(|scale| x.mul(scale));
    if weight.dtype().is_half() {
        hidden = hidden.to(weight.dtype());
    }
    hidden.mul(&weight)
}

/// `apply_rotary_emb`, which rotates pairs of neighbours.
pub(crate) fn apply_rotary_emb(x: &Tensor, cosines: &Tensor, sines: &Tensor) -> Tensor {
    let (b, s, h, d) = (x.size(0), x.size(1), x.size(2), x.size(3));
    let pairs = x.reshape(&[b, s, h, d / 2, 2]).unbind_along(-1);
    let [real, imaginary] = &pairs[..] else {
        return x.clone();
    };
    let rotated = imaginary
        .neg()
        .pipe(|negative| Tensor::stack(&[negative.clone(), real.clone()], -1));
    let Some(rotated) = rotated else {
        return x.clone();
    };
    let rotated = rotated.reshape(&[b, s, h, d]);
    let by_cos = x.to(DType::F32).pipe(|x| x.mul(cosines));
    let by_sin = rotated.to(DType::F32).pipe(|x| x.mul(sines));
    let sum = by_cos.add(&by_sin);
    drop((by_cos, by_sin));
    sum.to(x.dtype())
}

impl Cx {
    /// `nn.RMSNorm`.
    pub fn fused_rms_norm(&self, name: &'static str, x: &Tensor) -> Tensor {
        self.module(name, |cx| {
            x.fused_rms_norm(&cx.param("weight", [x.size(-1)]).tensor())
        })
    }
}
