//! LTX-Video: latents of thirty-two by thirty-two pixels and eight frames each, a token to a latent.

use crate::nets::diffusion::{
    Pixels, ada_norm_single, apply_rotary_emb, bare_rms_norm, blocks, caption_projection,
    feed_forward, flow_matching, mse_output, scaled_and_shifted, text_bias,
};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Ltx {
    pixels: Pixels,
    channels: u64,
    layers: u64,
    heads: u64,
    head_dim: u64,
    words: u64,
    context: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Ltx {
        pixels: Pixels::moving(sizes, sizes.or("vae", 32), 8),
        channels: sizes.or("channels", 128),
        layers: sizes.need("layers")?,
        heads: sizes.need("heads")?.max(1),
        head_dim: sizes.need("head_dim")?,
        words: sizes.or("ctx_len", 128),
        context: sizes.or("ctx_dim", 4096),
    }))
}

impl Net for Ltx {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let tokens = self.pixels.latents(data).count();
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        vec![
            make("latents", &[n, tokens, self.channels]),
            make("encoder_hidden_states", &[n, self.words, self.context]),
            make("encoder_attention_mask", &[n, self.words]),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, text, mask] = batch else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let predicted = self.model(cx, &noised.input, &noised.level, text, mask);
        mse_output(cx, predicted, &noised.target)
    }
}

impl Ltx {
    const fn width(&self) -> u64 {
        self.heads.saturating_mul(self.head_dim)
    }

    /// `LTXVideoTransformer3DModel.forward`.
    fn model(
        &self,
        cx: &Cx,
        latents: &Tensor,
        level: &Tensor,
        text: &Tensor,
        mask: &Tensor,
    ) -> Tensor {
        let width = self.width();
        let n = latents.size(0);
        let timestep = level.mul_scalar();
        let rotary = self.positions(latents);
        let mask = text_bias(mask, latents.dtype());
        let mut hidden = cx.linear("proj_in", latents, width, true);
        let [temb, embedded] =
            ada_norm_single(cx, "time_embed", &timestep, width, hidden.dtype(), |_| None);
        let temb = temb.view(&[n, 1, 6 * width]);
        let embedded = embedded.view(&[n, 1, width]);
        let context = caption_projection(cx, "caption_projection", text, width);
        let this = *self;
        hidden = blocks(cx).equal_stack(
            "transformer_blocks",
            self.layers,
            hidden,
            move |cx, hidden| {
                this.block(cx, hidden, &context, &temb, [&rotary[0], &rotary[1]], &mask)
            },
        );
        let table = cx.param("scale_shift_table", [2, width]).tensor();
        let values = {
            let table = table.unsqueeze(0).unsqueeze(0);
            table.add(&embedded.unsqueeze(2))
        };
        let [shift, scale] = [(); 2].map(|()| values.select(2));
        hidden = hidden.layer_norm(None, None);
        hidden = scaled_and_shifted(&hidden, &scale, &shift);
        cx.linear("proj_out", &hidden, self.channels, true)
    }

    /// `LTXVideoRotaryPosEmbed`: frequencies of three axes, and ones for the rest of the width.
    fn positions(&self, latents: &Tensor) -> [Tensor; 2] {
        let (n, tokens, width) = (latents.size(0), latents.size(1), self.width());
        let grid = latents.constant("stack", &[n, 3, tokens], DType::F32);
        let each = [n, tokens, 3, width / 6];
        let freqs = {
            let first = latents.constant("mul", &each, DType::F32);
            let out = latents.constant("flatten", &[n, tokens, 3 * (width / 6)], DType::F32);
            drop(first);
            out
        };
        let whole = [n, tokens, 6 * (width / 6)];
        let [cosines, sines] = ["cos", "sin"].map(|op| {
            let half = freqs.constant(op, freqs.shape(), DType::F32);
            half.constant("repeat_interleave", &whole, DType::F32)
        });
        let _held = (grid, freqs);
        if width.is_multiple_of(6) {
            return [cosines, sines];
        }
        let padding = ["ones_like", "zeros_like"]
            .map(|op| cosines.constant(op, &[n, tokens, width % 6], DType::F32));
        let [ones, zeros] = &padding;
        let cosines = Tensor::cat(ones, &[&cosines], -1);
        [cosines, Tensor::cat(zeros, &[&sines], -1)]
    }

    /// `LTXVideoTransformerBlock.forward`.
    fn block(
        &self,
        cx: &Cx,
        hidden: &Tensor,
        context: &Tensor,
        temb: &Tensor,
        rotary: [&Tensor; 2],
        mask: &Tensor,
    ) -> Tensor {
        let width = self.width();
        let mut normed = bare_rms_norm(hidden);
        let table = cx.param("scale_shift_table", [6, width]).tensor();
        let values = {
            let table = table.unsqueeze(0).unsqueeze(0);
            table.add(&temb.reshape(&[temb.size(0), temb.size(1), 6, width]))
        };
        let parts = values.unbind_along(2);
        let [shift, scale, gate, ff_shift, ff_scale, ff_gate] = &parts[..] else {
            return hidden.clone();
        };
        normed = scaled_and_shifted(&normed, scale, shift);
        let mut attended = cx.module("attn1", |cx| {
            self.attention(cx, &normed, &normed, Some(rotary), None)
        });
        let mut hidden = attended.mul(gate).pipe(|more| hidden.add(more));
        attended = cx.module("attn2", |cx| {
            self.attention(cx, &hidden, context, None, Some(mask))
        });
        hidden = hidden.add(&attended);
        normed =
            bare_rms_norm(&hidden).pipe(|normed| scaled_and_shifted(normed, ff_scale, ff_shift));
        let ff_output = feed_forward(cx, "ff", &normed);
        ff_output.mul(ff_gate).pipe(|more| hidden.add(more))
    }

    /// `LTXVideoAttnProcessor`: norms and positions over all heads at once.
    fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        context: &Tensor,
        rotary: Option<[&Tensor; 2]>,
        mask: Option<&Tensor>,
    ) -> Tensor {
        let width = self.width();
        let mask = mask.map_or(AttentionMask::None, |mask| {
            let (n, words) = (mask.size(0), mask.size(-1));
            let each = mask.constant(
                "repeat_interleave",
                &[n, self.heads, 1, words],
                mask.dtype(),
            );
            AttentionMask::Given(each)
        });
        let rows = |x: &Tensor| x.view(&[x.size(0), x.size(1), self.heads, self.head_dim]);
        let mut query = cx.linear("to_q", x, width, true);
        let mut key = cx.linear("to_k", context, width, true);
        let mut value = cx.linear("to_v", context, width, true);
        query = cx.fused_rms_norm("norm_q", &query);
        key = cx.fused_rms_norm("norm_k", &key);
        if let Some([cosines, sines]) = rotary {
            query = apply_rotary_emb(&query, cosines, sines);
            key = apply_rotary_emb(&key, cosines, sines);
        }
        query = rows(&query);
        key = rows(&key);
        value = rows(&value);
        let mut hidden = {
            let [query, key, value] = [&query, &key, &value].map(|x| x.transpose(1, 2));
            query.attention(&key, &value, &mask, 0.0).transpose(1, 2)
        };
        hidden = hidden.reshape(&[hidden.size(0), hidden.size(1), width]);
        hidden = hidden.to(query.dtype());
        cx.module("to_out", |cx| cx.linear("0", &hidden, width, true))
    }
}
