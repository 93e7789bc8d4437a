//! The block that text and image share, and its attention.

use crate::nets::Cx;
use crate::nets::diffusion::{
    apply_rotary_emb, feed_forward, modulate, modulated_norm, modulation, rms_norm,
};
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
    /// Which tokens are no padding, `[B, S]` (Chroma).
    pub mask: Option<Tensor>,
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
        // Chroma's parts are made outside: the image's, then the text's.
        let halves = match emb.shape().len() {
            3 => Some([(); 2].map(|()| emb.narrow(1, emb.size(1) / 2))),
            _ => None,
        };
        let [emb, text_emb] = halves
            .as_ref()
            .map_or([emb, emb], |[image, text]| [image, text]);
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
        let mut normed = modulate(&plain, scale, shift);
        let again = match second {
            [shift, scale, _] => Some(modulate(&plain, scale, shift)),
            _ => None,
        };
        drop(plain);
        let text_parts = ada_norm(
            cx,
            "norm1_context",
            text_emb,
            if self.pre_only { 2 } else { 6 },
        );
        let mut normed_text = match &text_parts[..] {
            [scale, shift] | [shift, scale, ..] => modulated_norm(text, scale, shift),
            _ => return both(),
        };
        let (mut attended, mut attended_text) =
            cx.module("attn", |cx| self.attention(cx, &normed, Some(&normed_text)));
        // FLUX's block keeps what attention returned under a name of its own.
        let outputs = (attended.clone(), attended_text.clone());
        let _outputs = self.rotary.is_some().then_some(outputs);
        attended = gate.unsqueeze(1).mul(&attended);
        let mut hidden = hidden.add(&attended);
        let mut second_attended = None;
        if let (Some(again), [.., gate]) = (&again, second) {
            let (mut more, _) = cx.module("attn2", |cx| self.attention(cx, again, None));
            more = gate.unsqueeze(1).mul(&more);
            hidden = hidden.add(&more);
            second_attended = Some(more);
        }
        normed = hidden.layer_norm(None, None);
        normed = modulate(&normed, scale_mlp, shift_mlp);
        let mut ff_output = feed_forward(cx, "ff", &normed);
        ff_output = gate_mlp.unsqueeze(1).mul(&ff_output);
        hidden = hidden.add(&ff_output);
        let ([_, _, gate, shift_mlp, scale_mlp, gate_mlp], Some(last)) =
            (&text_parts[..], attended_text.take())
        else {
            return [hidden, text.clone()];
        };
        let attended_text = gate.unsqueeze(1).mul(&last);
        drop(last);
        let mut text = text.add(&attended_text);
        normed_text = text.layer_norm(None, None);
        normed_text = modulate(&normed_text, scale_mlp, shift_mlp);
        let text_output = feed_forward(cx, "ff_context", &normed_text);
        text = gate_mlp
            .unsqueeze(1)
            .mul(&text_output)
            .pipe(|more| text.add(more));
        drop(second_attended);
        [hidden, text]
    }

    /// `FluxSingleTransformerBlock`: image and text joined, and cut again.
    pub(crate) fn single(
        &self,
        cx: &Cx,
        hidden: &Tensor,
        text: &Tensor,
        emb: &Tensor,
    ) -> [Tensor; 2] {
        let (words, pixels) = (text.size(1), hidden.size(1));
        let both = Tensor::cat(text, &[hidden], 1);
        let out = self.stream(cx, &both, emb);
        drop(both);
        let [text, hidden] = [words, pixels].map(|n| out.narrow(1, n));
        [hidden, text]
    }

    /// What it does to the one stream: attention and feed-forward side by side.
    pub(crate) fn stream(&self, cx: &Cx, both: &Tensor, emb: &Tensor) -> Tensor {
        let width = self.width();
        let parts = ada_norm(cx, "norm", emb, 3);
        let [shift, scale, gate] = &parts[..] else {
            return both.clone();
        };
        let normed = modulated_norm(both, scale, shift);
        let ff_output = cx
            .linear("proj_mlp", &normed, 4 * width, true)
            .pipe(Tensor::gelu);
        let (attended, _) = cx.module("attn", |cx| self.attention(cx, &normed, None));
        let joined = Tensor::cat(&attended, &[&ff_output], 2);
        let mut out = cx.linear("proj_out", &joined, width, true);
        out = gate.unsqueeze(1).mul(&out);
        both.add(&out)
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
            (true, None) => rms_norm(cx, name, &x),
            (false, _) => x,
        };
        let project = |names: [&'static str; 3], x: &Tensor| {
            names.map(|name| rows(&cx.linear(name, x, width, true)))
        };
        let [mut query, mut key, mut value] = project(["to_q", "to_k", "to_v"], x);
        query = normed("norm_q", query);
        key = normed("norm_k", key);
        // Names of the text's parts hold them to the end.
        let mut _parts = None;
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
            _parts = Some([text_query, text_key, text_value]);
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
        // Every token that is no padding, by every other.
        let mask = self.mask.as_ref().map_or(AttentionMask::None, |mask| {
            let (n, tokens) = (mask.size(0), mask.size(1));
            let square = [n, 1, tokens, tokens];
            AttentionMask::Given(mask.constant("mul", &square, DType::Bool))
        });
        let mut out = q.attention(&k, &v, &mask, 0.0);
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
        // The last block of SD3 leaves the text's part as it is, which holds all of the attention's result.
        let to_add_out = || {
            if self.pre_only {
                text.clone()
            } else {
                cx.linear("to_add_out", &text, width, true)
            }
        };
        if text_first {
            let image = to_out(&image);
            return (image, Some(to_add_out()));
        }
        let text = to_add_out();
        (to_out(&image), Some(text))
    }
}

/// `AdaLayerNormZero`: its linear layer makes as many shifts, scales and gates; Chroma's are given.
pub(crate) fn ada_norm(cx: &Cx, name: &'static str, emb: &Tensor, parts: u64) -> Vec<Tensor> {
    if emb.shape().len() == 3 {
        let flat = [emb.size(0), emb.size(1) * emb.size(2)];
        return emb.reshape(&flat).chunk(parts, 1);
    }
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

impl Cx {
    /// `nn.RMSNorm`.
    pub fn fused_rms_norm(&self, name: &'static str, x: &Tensor) -> Tensor {
        self.module(name, |cx| {
            x.fused_rms_norm(&cx.param("weight", [x.size(-1)]).tensor())
        })
    }
}
