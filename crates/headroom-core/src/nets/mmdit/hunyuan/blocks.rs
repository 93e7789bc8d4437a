//! The two kinds of blocks, and their attention.

use super::super::joint::ada_norm;
use super::{Hunyuan, Kind, Shared};
use crate::nets::Cx;
use crate::nets::diffusion::{apply_rotary_emb, feed_forward, modulate, modulated_norm, rms_norm};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

impl Hunyuan {
    /// `HunyuanVideoTransformerBlock.forward`.
    pub(super) fn block(
        &self,
        cx: &Cx,
        hidden: &Tensor,
        text: &Tensor,
        shared: &Shared,
    ) -> [Tensor; 2] {
        let parts = ada_norm(cx, "norm1", &shared.temb, 6);
        let both = || [hidden.clone(), text.clone()];
        let [shift, scale, gate, ff_shift, ff_scale, ff_gate] = &parts[..] else {
            return both();
        };
        let mut normed = modulated_norm(hidden, scale, shift);
        let text_parts = ada_norm(cx, "norm1_context", &shared.temb, 6);
        let [
            shift,
            scale,
            text_gate,
            text_ff_shift,
            text_ff_scale,
            text_ff_gate,
        ] = &text_parts[..]
        else {
            return both();
        };
        let mut normed_text = modulated_norm(text, scale, shift);
        let [attended, attended_text] = cx.module("attn", |cx| {
            self.attention(cx, &normed, &normed_text, shared, false)
        });
        let mut hidden = gate
            .unsqueeze(1)
            .pipe(|gate| attended.mul(gate))
            .pipe(|more| hidden.add(more));
        let mut text = text_gate
            .unsqueeze(1)
            .pipe(|gate| attended_text.mul(gate))
            .pipe(|more| text.add(more));
        normed = hidden.layer_norm(None, None);
        normed_text = text.layer_norm(None, None);
        normed = modulate(&normed, ff_scale, ff_shift);
        normed_text = modulate(&normed_text, text_ff_scale, text_ff_shift);
        let ff_output = feed_forward(cx, "ff", &normed);
        let text_output = feed_forward(cx, "ff_context", &normed_text);
        hidden = ff_gate
            .unsqueeze(1)
            .mul(&ff_output)
            .pipe(|more| hidden.add(more));
        text = text_ff_gate
            .unsqueeze(1)
            .mul(&text_output)
            .pipe(|more| text.add(more));
        [hidden, text]
    }

    /// `HunyuanVideoSingleTransformerBlock.forward`.
    pub(super) fn single(
        &self,
        cx: &Cx,
        hidden: &Tensor,
        text: &Tensor,
        shared: &Shared,
    ) -> [Tensor; 2] {
        let width = self.width();
        let (words, pixels) = (text.size(1), hidden.size(1));
        let residual = Tensor::cat(hidden, &[text], 1);
        let parts = ada_norm(cx, "norm", &shared.temb, 3);
        let [shift, scale, gate] = &parts[..] else {
            return [hidden.clone(), text.clone()];
        };
        let normed = modulated_norm(&residual, scale, shift);
        let mlp = cx
            .linear("proj_mlp", &normed, 4 * width, true)
            .pipe(Tensor::gelu);
        let (normed, normed_text) = (normed.narrow(1, pixels), normed.narrow(1, words));
        let [mut attended, attended_text] = cx.module("attn", |cx| {
            self.attention(cx, &normed, &normed_text, shared, true)
        });
        attended = Tensor::cat(&attended, &[&attended_text], 1);
        let mut both = Tensor::cat(&attended, &[&mlp], 2);
        both = {
            let gate = gate.unsqueeze(1);
            let projected = cx.linear("proj_out", &both, width, true);
            gate.mul(&projected)
        };
        both = both.add(&residual);
        [both.narrow(1, pixels), both.narrow(1, words)]
    }

    /// `HunyuanVideoAttnProcessor2_0`; single blocks project both streams together and only the image's places are turned.
    fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        text: &Tensor,
        shared: &Shared,
        single: bool,
    ) -> [Tensor; 2] {
        let width = self.width();
        let (pixels, words) = (x.size(1), text.size(1));
        let joined = if single {
            Tensor::cat(x, &[text], 1)
        } else {
            x.clone()
        };
        let rows = |x: &Tensor| x.view(&[x.size(0), x.size(1), self.heads, self.head_dim]);
        let mut query = cx.linear("to_q", &joined, width, true);
        let mut key = cx.linear("to_k", &joined, width, true);
        let mut value = cx.linear("to_v", &joined, width, true);
        query = rows(&query);
        key = rows(&key);
        value = rows(&value);
        query = rms_norm(cx, "norm_q", &query);
        key = rms_norm(cx, "norm_k", &key);
        let [cosines, sines] = &shared.rotary;
        let turned = |x: &Tensor| {
            if single {
                let image = x
                    .narrow(1, pixels)
                    .pipe(|x| apply_rotary_emb(x, cosines, sines));
                Tensor::cat(&image, &[&x.narrow(1, words)], 1)
            } else {
                apply_rotary_emb(x, cosines, sines)
            }
        };
        query = turned(&query);
        key = turned(&key);
        if !single {
            let names = ["add_q_proj", "add_k_proj", "add_v_proj"];
            let [mut text_query, mut text_key, text_value] =
                names.map(|name| rows(&cx.linear(name, text, width, true)));
            text_query = rms_norm(cx, "norm_added_q", &text_query);
            text_key = rms_norm(cx, "norm_added_k", &text_key);
            query = Tensor::cat(&query, &[&text_query], 1);
            key = Tensor::cat(&key, &[&text_key], 1);
            value = Tensor::cat(&value, &[&text_value], 1);
        }
        drop(joined);
        let (mask, _rows) = self.mask(shared, pixels + words);
        let mut hidden = {
            let [q, k, v] = [&query, &key, &value].map(|x| x.transpose(1, 2));
            let mask = AttentionMask::Given(mask.clone());
            q.attention(&k, &v, &mask, 0.0).transpose(1, 2)
        };
        hidden = hidden.reshape(&[hidden.size(0), pixels + words, width]);
        hidden = hidden.to(query.dtype());
        let (image, text) = (hidden.narrow(1, pixels), hidden.narrow(1, words));
        if single {
            return [image, text];
        }
        let image = cx.module("to_out", |cx| cx.linear("0", &image, width, true));
        [image, cx.linear("to_add_out", &text, width, true)]
    }
    /// Which keys a query sees, and what it is made of: each block of HunyuanVideo 1.5 makes a square of its own.
    fn mask(&self, shared: &Shared, tokens: u64) -> (Tensor, Option<Tensor>) {
        let given = &shared.mask;
        if self.kind != Kind::Video15 {
            return (given.clone(), None);
        }
        let n = given.size(0);
        let padded = given.constant("pad", &[n, tokens], DType::Bool);
        let square = [n, 1, tokens, tokens];
        let rows = padded.constant("repeat", &square, DType::Bool);
        drop(padded);
        (rows.constant("and", &square, DType::Bool), Some(rows))
    }
}
