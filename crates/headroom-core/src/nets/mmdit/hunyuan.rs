//! HunyuanVideo (diffusers/models/transformers/transformer_hunyuan_video.py): FLUX's two kinds of blocks over videos, a refiner of the
//! text before them, and a mask over its padding.

use super::joint::{ada_norm, last_norm};
use crate::nets::diffusion::{
    Grid, Pixels, apply_rotary_emb, double_and_single_blocks, feed_forward, flow_matching,
    modulate, modulated_norm, mse_output, rms_norm, sinusoids, timestep_embedding,
};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Hunyuan {
    pixels: Pixels,
    channels: u64,
    /// Channels that are given beside the learned ones (image to video).
    condition: u64,
    patch: u64,
    layers: u64,
    single_layers: u64,
    refiner_layers: u64,
    heads: u64,
    head_dim: u64,
    words: u64,
    context: u64,
    pooled: u64,
    guidance: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let defaults = [("height", 544), ("width", 960), ("frames", 129)];
    Ok(Box::new(Hunyuan {
        pixels: Pixels::moving(&sizes.with_defaults(defaults), 8, 4),
        channels: sizes.or("channels", 16),
        condition: sizes.or("condition", 0),
        patch: sizes.or("patch", 2).max(1),
        layers: sizes.need("layers")?,
        single_layers: sizes.need("single_layers")?,
        refiner_layers: sizes.or("refiner_layers", 2),
        heads: sizes.need("heads")?.max(1),
        head_dim: sizes.or("head_dim", 128),
        words: sizes.or("ctx_len", 256),
        context: sizes.or("ctx_dim", 4096),
        pooled: sizes.or("pooled", 768),
        guidance: sizes.or("guidance", 1) != 0,
    }))
}

/// What every block is given besides its streams.
#[derive(Clone, Debug)]
struct Shared {
    temb: Tensor,
    mask: Tensor,
    rotary: [Tensor; 2],
}

impl Net for Hunyuan {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let Grid {
            frames,
            height,
            width,
        } = self.pixels.latents(data);
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        vec![
            make("latents", &[n, self.channels, frames, height, width]),
            make("condition", &[n, self.condition, frames, height, width]),
            make("encoder_hidden_states", &[n, self.words, self.context]),
            cx.tape
                .empty("encoder_attention_mask", [n, self.words], DType::I64),
            make("pooled_projections", &[n, self.pooled]),
            make("guidance", &[if self.guidance { n } else { 0 }]),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, condition, text, mask, pooled, guidance] = batch else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let shown = match self.condition {
            0 => noised.input.clone(),
            _ => Tensor::cat(&noised.input, &[condition], 1),
        };
        let timestep = noised.level.mul_scalar();
        let predicted = self.model(cx, &shown, [&timestep, guidance], text, mask, pooled);
        drop((shown, timestep));
        mse_output(cx, predicted, &noised.target)
    }
}

impl Hunyuan {
    const fn width(&self) -> u64 {
        self.heads.saturating_mul(self.head_dim)
    }

    /// `HunyuanVideoTransformer3DModel.forward`.
    fn model(
        &self,
        cx: &Cx,
        latents: &Tensor,
        [timestep, guidance]: [&Tensor; 2],
        text: &Tensor,
        text_mask: &Tensor,
        pooled: &Tensor,
    ) -> Tensor {
        let width = self.width();
        let grid = Grid {
            frames: latents.size(2),
            height: latents.size(3),
            width: latents.size(4),
        };
        let grid = grid.patches(1, self.patch);
        let (n, tokens, words) = (latents.size(0), grid.count(), text.size(1));
        let rotary =
            [(); 2].map(|()| latents.constant("rope", &[1, tokens, 1, self.head_dim], DType::F32));
        let temb = cx.module("time_text_embed", |cx| {
            self.conditions(cx, [timestep, guidance], pooled)
        });
        let mut hidden = cx.module("x_embedder", |cx| {
            let patch = [1, self.patch, self.patch];
            let x = cx.patch_convolution("proj", latents, width, &patch, true);
            x.reshape(&[n, width, tokens]).transpose(1, 2)
        });
        let text = cx.module("context_embedder", |cx| {
            self.refiner(cx, text, timestep, text_mask)
        });
        let mask = hidden.constant("masked_fill", &[n, 1, 1, tokens + words], DType::Bool);
        let shared = Shared {
            temb: temb.clone(),
            mask,
            rotary,
        };
        let mut state = vec![hidden, text];
        let [double, single] = double_and_single_blocks(cx, 1);
        for (outer, name, count, single) in [
            (double, "transformer_blocks", self.layers, false),
            (
                single,
                "single_transformer_blocks",
                self.single_layers,
                true,
            ),
        ] {
            let (this, shared) = (*self, shared.clone());
            state = outer.equal_layers(name, count, state, move |cx, state| match state {
                [hidden, text] if single => this.single(cx, hidden, text, &shared).to_vec(),
                [hidden, text] => this.block(cx, hidden, text, &shared).to_vec(),
                _ => Vec::new(),
            });
        }
        let Ok([image, _text]) = <[Tensor; 2]>::try_from(state) else {
            return latents.clone();
        };
        hidden = last_norm(cx, &image, &temb);
        drop(image);
        let p = self.patch;
        hidden = cx.linear("proj_out", &hidden, p * p * self.channels, true);
        let Grid {
            frames,
            height,
            width,
        } = grid;
        let each = [n, frames, height, width, self.channels, p, p];
        let video = hidden.reshape(&each).permute(&[0, 4, 1, 2, 5, 3, 6]);
        video.reshape(&[n, self.channels, frames, height * p, width * p])
    }

    /// `HunyuanVideoConditionEmbedding`.
    fn conditions(&self, cx: &Cx, [timestep, guidance]: [&Tensor; 2], pooled: &Tensor) -> Tensor {
        let width = self.width();
        let waves = sinusoids(timestep, 256).to(pooled.dtype());
        let time = timestep_embedding(cx, "timestep_embedder", &waves, width);
        let text = timestep_embedding(cx, "text_embedder", pooled, width);
        if !self.guidance {
            return time.add(&text);
        }
        let waves = sinusoids(guidance, 256).to(pooled.dtype());
        let guidance = timestep_embedding(cx, "guidance_embedder", &waves, width);
        time.add(&guidance).pipe(|sum| sum.add(&text))
    }

    /// `HunyuanVideoTokenRefiner`.
    fn refiner(&self, cx: &Cx, text: &Tensor, timestep: &Tensor, mask: &Tensor) -> Tensor {
        let width = self.width();
        let (n, words) = (text.size(0), text.size(1));
        let pooled = {
            let wide = mask.constant("float", &[n, words, 1], DType::F32);
            let sum = text
                .mul(&wide)
                .pipe(|x| x.sum(&[1]))
                .reshape(&[n, self.context]);
            let count = wide.constant("sum", &[n, 1], DType::F32);
            sum.div(&count).to(text.dtype())
        };
        let temb = cx.module("time_text_embed", |cx| {
            let waves = sinusoids(timestep, 256).to(pooled.dtype());
            let time = timestep_embedding(cx, "timestep_embedder", &waves, width);
            let text = timestep_embedding(cx, "text_embedder", &pooled, width);
            time.add(&text)
        });
        let hidden = cx.linear("proj_in", text, width, true);
        let square = hidden.constant("and", &[n, 1, words, words], DType::Bool);
        let this = *self;
        cx.module("token_refiner", |cx| {
            (0..self.refiner_layers as usize).fold(hidden, |hidden, i| {
                cx.list_item("refiner_blocks", i, |cx| {
                    this.refine(cx, &hidden, &temb, &square)
                })
            })
        })
    }

    /// `HunyuanVideoIndividualTokenRefinerBlock.forward`.
    fn refine(&self, cx: &Cx, hidden: &Tensor, temb: &Tensor, mask: &Tensor) -> Tensor {
        let width = self.width();
        let normed = cx.layer_norm("norm1", hidden);
        let attended = cx.module("attn", |cx| {
            let (n, words) = (normed.size(0), normed.size(1));
            let each = mask.constant(
                "repeat_interleave",
                &[n, self.heads, words, words],
                DType::Bool,
            );
            let rows = |x: &Tensor| {
                x.view(&[n, words, self.heads, self.head_dim])
                    .transpose(1, 2)
            };
            let mut query = cx.linear("to_q", &normed, width, true);
            let mut key = cx.linear("to_k", &normed, width, true);
            let mut value = cx.linear("to_v", &normed, width, true);
            query = rows(&query);
            key = rows(&key);
            value = rows(&value);
            let mut x = query.attention(&key, &value, &AttentionMask::Given(each), 0.0);
            x = x.transpose(1, 2).reshape(&[n, words, width]);
            x = x.to(query.dtype());
            x = cx.module("to_out", |cx| cx.linear("0", &x, width, true));
            x.mul_scalar()
        });
        let gates = cx.module("norm_out", |cx| {
            temb.silu()
                .pipe(|x| cx.linear("linear", x, 2 * width, true))
                .chunk(2, 1)
        });
        let [gate, ff_gate] = &gates[..] else {
            return hidden.clone();
        };
        let (gate, ff_gate) = (gate.unsqueeze(1), ff_gate.unsqueeze(1));
        let hidden = attended.mul(&gate).pipe(|more| hidden.add(more));
        let ff_output = {
            let normed = cx.layer_norm("norm2", &hidden);
            cx.module("ff", |cx| {
                cx.module("net", |cx| {
                    let mut x = cx.module("0", |cx| cx.linear("proj", &normed, 4 * width, true));
                    x = x.silu();
                    cx.linear("2", &x, width, true)
                })
            })
        };
        ff_output.mul(&ff_gate).pipe(|more| hidden.add(more))
    }

    /// `HunyuanVideoTransformerBlock.forward`.
    fn block(&self, cx: &Cx, hidden: &Tensor, text: &Tensor, shared: &Shared) -> [Tensor; 2] {
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
    fn single(&self, cx: &Cx, hidden: &Tensor, text: &Tensor, shared: &Shared) -> [Tensor; 2] {
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
        let mut hidden = {
            let [q, k, v] = [&query, &key, &value].map(|x| x.transpose(1, 2));
            let mask = AttentionMask::Given(shared.mask.clone());
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
}
