//! Mochi (diffusers/models/transformers/transformer_mochi.py): video and text attend to each other, sample by sample, with learned
//! frequencies for each head.

use crate::nets::diffusion::{
    Grid, Pixels, bare_rms_norm, blocks, flow_matching, mse_output, rms_norm_in_fp32, sinusoids,
    timestep_embedding,
};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// The most samples whose attention runs one by one.
const MOST_SAMPLES: u64 = 1024;
/// Heads of the attention that pools the text.
const POOLING_HEADS: u64 = 8;

#[derive(Clone, Copy, Debug)]
struct Mochi {
    pixels: Pixels,
    channels: u64,
    patch: u64,
    layers: u64,
    heads: u64,
    head_dim: u64,
    words: u64,
    context: u64,
    /// `pooled_projection_dim`: the width of the text's stream.
    text_width: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Mochi {
        pixels: Pixels::moving(sizes, 8, 6),
        channels: sizes.or("channels", 12),
        patch: sizes.or("patch", 2).max(1),
        layers: sizes.need("layers")?,
        heads: sizes.need("heads")?.max(1),
        head_dim: sizes.or("head_dim", 128),
        words: sizes.or("ctx_len", 256),
        context: sizes.or("ctx_dim", 4096),
        text_width: sizes.or("pooled", 1536),
    }))
}

/// What every block is given besides its streams.
#[derive(Clone, Debug)]
struct Shared {
    temb: Tensor,
    mask: Tensor,
    rotary: [Tensor; 2],
}

impl Net for Mochi {
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
            make("encoder_hidden_states", &[n, self.words, self.context]),
            cx.tape
                .empty("encoder_attention_mask", [n, self.words], DType::Bool),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, text, mask] = batch else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let timestep = noised.level.mul_scalar();
        let predicted = self.model(cx, &noised.input, &timestep, text, mask);
        drop(timestep);
        mse_output(cx, predicted, &noised.target)
    }
}

impl Mochi {
    const fn width(&self) -> u64 {
        self.heads.saturating_mul(self.head_dim)
    }

    /// `MochiTransformer3DModel.forward`.
    fn model(
        &self,
        cx: &Cx,
        latents: &Tensor,
        timestep: &Tensor,
        text: &Tensor,
        mask: &Tensor,
    ) -> Tensor {
        let (width, p) = (self.width(), self.patch);
        let (n, frames) = (latents.size(0), latents.size(2));
        let grid = Grid {
            frames,
            height: latents.size(3),
            width: latents.size(4),
        };
        let grid = grid.patches(1, p);
        let (temb, text) = cx.module("time_embed", |cx| {
            let waves = sinusoids(timestep, 256).to(latents.dtype());
            let time = timestep_embedding(cx, "timestep_embedder", &waves, width);
            let pooled = cx.module("pooler", |cx| self.pooled(cx, text, mask));
            let text = cx.linear("caption_proj", text, self.text_width, true);
            (time.add(&pooled), text)
        });
        let mut hidden = {
            let pictures = latents.permute(&[0, 2, 1, 3, 4]);
            let one = [n * frames, self.channels, latents.size(3), latents.size(4)];
            let pictures = pictures.reshape(&one);
            let rows = cx.module("patch_embed", |cx| {
                cx.patch_convolution("proj", &pictures, width, &[p, p], true)
            });
            drop(pictures);
            let each = grid.height * grid.width;
            let rows = rows
                .reshape(&[n * frames, width, each])
                .transpose(1, 2)
                .view(&[n, frames, each, width]);
            rows.reshape(&[n, grid.count(), width])
        };
        let rotary = self.positions(cx, &hidden);
        let shared = Shared {
            temb: temb.clone(),
            mask: mask.clone(),
            rotary,
        };
        let this = *self;
        let outer = blocks(cx);
        let (name, last) = ("transformer_blocks", self.layers.saturating_sub(1));
        let passed = shared.clone();
        let mut state = outer.equal_layers(name, last, vec![hidden, text], move |cx, state| {
            this.block(cx, state, &passed, false)
        });
        // The last leaves the text behind.
        state = outer.layer(name, last as usize, state, move |cx, state| {
            this.block(cx, state, &shared, true)
        });
        let Some(image) = state.into_iter().next() else {
            return latents.clone();
        };
        hidden = cx.module("norm_out", |cx| {
            let parts = temb
                .silu()
                .pipe(|x| cx.linear("linear", x, 2 * width, true))
                .chunk(2, 1);
            match &parts[..] {
                [scale, shift] => crate::nets::diffusion::modulated_norm(&image, scale, shift),
                _ => image.clone(),
            }
        });
        drop(image);
        hidden = cx.linear("proj_out", &hidden, p * p * self.channels, true);
        let each = [n, frames, grid.height, grid.width, p, p, self.channels];
        let video = hidden.reshape(&each).permute(&[0, 6, 1, 2, 4, 3, 5]);
        video.reshape(&[n, self.channels, frames, grid.height * p, grid.width * p])
    }

    /// `MochiAttentionPool`: one query, the mean of the tokens in use.
    fn pooled(&self, cx: &Cx, text: &Tensor, mask: &Tensor) -> Tensor {
        let (n, words, width) = (text.size(0), text.size(1), self.context);
        let mask = mask.constant("pad", &[n, 1, 1, words + 1], DType::Bool);
        let joined = {
            let weights = mask.constant("div", &[n, words, 1], text.dtype());
            let mean = text.mul(&weights).pipe(|x| x.sum(&[1]));
            drop(weights);
            let mean = mean.reshape(&[n, 1, width]);
            Tensor::cat(&mean, &[text], 1)
        };
        let both = cx.linear("to_kv", &joined, 2 * width, true);
        let query = cx.linear("to_q", &joined.select(1), width, true);
        let head = width / POOLING_HEADS;
        let both = both
            .view(&[n, words + 1, 2, POOLING_HEADS, head])
            .transpose(1, 3);
        let parts = both.unbind_along(2);
        let [key, value] = &parts[..] else {
            return query;
        };
        let query = query.view(&[n, POOLING_HEADS, head]).unsqueeze(2);
        let out = query.attention(key, value, &AttentionMask::Given(mask.clone()), 0.0);
        let out = out.reshape(&[n, width]);
        cx.linear("to_out", &out, self.width(), true)
    }

    /// `MochiRoPE`: cosines and sines for each token and head, by frequencies that are learned, in fp32 whatever autocast says.
    fn positions(&self, cx: &Cx, hidden: &Tensor) -> [Tensor; 2] {
        let places = hidden.constant("stack", &[hidden.size(1), 3], DType::F32);
        let shape = [3, self.heads, self.head_dim / 2];
        let frequencies = cx.param("pos_frequencies", shape).tensor();
        let angles = cx.tape.autocast(None, || {
            let wide = frequencies.to(DType::F32);
            places.einsum("nd", &wide, "dhf", "nhf")
        });
        drop(places);
        let cosines = angles.cos();
        [cosines, angles.sin()]
    }

    /// `MochiTransformerBlock.forward`.
    fn block(&self, cx: &Cx, state: &[Tensor], shared: &Shared, last: bool) -> Vec<Tensor> {
        let [hidden, text] = state else {
            return Vec::new();
        };
        let (mut normed, parts) = cx.module("norm1", |cx| zero_norm(cx, hidden, &shared.temb));
        let (normed_text, text_parts) = cx.module("norm1_context", |cx| {
            if last {
                (last_norm(cx, text, &shared.temb), Vec::new())
            } else {
                zero_norm(cx, text, &shared.temb)
            }
        });
        let [attended, attended_text] = cx.module("attn1", |cx| {
            self.attention(cx, &normed, &normed_text, shared, last)
        });
        let stream = |cx: &Cx, x: &Tensor, more: &Tensor, parts: &[Tensor], name| {
            let [_, gate, scale, last_gate] = parts else {
                return (x.clone(), Vec::new());
            };
            let opened = |more: &Tensor, gate: &Tensor| {
                let gate = gate.tanh();
                modulated(more, &gate.unsqueeze(1))
            };
            let mut x = opened(more, gate).pipe(|more| x.add(more));
            let normed = {
                let scale = scale.unsqueeze(1).to(DType::F32).add_scalar();
                modulated(&x, &scale)
            };
            let out = cx.module(name, |cx| feed_forward(cx, &normed));
            x = opened(&out, last_gate).pipe(|more| x.add(more));
            (x, vec![normed, out])
        };
        let (hidden, mut held) = stream(cx, hidden, &attended, &parts, "ff");
        // `norm_hidden_states` is bound anew, and with it what attention read.
        if let Some(again) = held.first() {
            normed = again.clone();
        }
        let (text, more) = stream(cx, text, &attended_text, &text_parts, "ff_context");
        held.extend(more);
        drop((normed, held));
        vec![hidden, text]
    }

    /// `MochiAttnProcessor2_0`.
    fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        text: &Tensor,
        shared: &Shared,
        last: bool,
    ) -> [Tensor; 2] {
        let width = self.width();
        let (n, pixels, words) = (x.size(0), x.size(1), text.size(1));
        let rows = |x: &Tensor| x.view(&[x.size(0), x.size(1), self.heads, self.head_dim]);
        let project = |names: [&'static str; 3], x: &Tensor| {
            names.map(|name| rows(&cx.linear(name, x, width, false)))
        };
        let [mut query, mut key, value] = project(["to_q", "to_k", "to_v"], x);
        query = rms_norm_in_fp32(cx, "norm_q", &query);
        key = rms_norm_in_fp32(cx, "norm_k", &key);
        let names = ["add_q_proj", "add_k_proj", "add_v_proj"];
        let [mut text_query, mut text_key, text_value] = project(names, text);
        text_query = rms_norm_in_fp32(cx, "norm_added_q", &text_query);
        text_key = rms_norm_in_fp32(cx, "norm_added_k", &text_key);
        query = rotated(&query, &shared.rotary);
        key = rotated(&key, &shared.rotary);
        let all = [&query, &key, &value].map(|x| x.transpose(1, 2));
        let all_text = [&text_query, &text_key, &text_value].map(|x| x.transpose(1, 2));
        let mut outputs = Vec::new();
        let mut held = None;
        for _ in 0..n.min(MOST_SAMPLES) {
            let places = shared.mask.constant("nonzero", &[words], DType::I64);
            let used = all_text.each_ref().map(|x| {
                let one = x.select(0).transpose(0, 1);
                one.rows_at(&places).transpose(0, 1).unsqueeze(0)
            });
            let [query, key, value] = [0, 1, 2].map(|i: usize| {
                let one = all[i].select(0).unsqueeze(0);
                Tensor::cat(&one, &[&used[i]], 2)
            });
            let out = query.attention(&key, &value, &AttentionMask::None, 0.0);
            // Nothing is left to pad, which makes a copy.
            outputs.push(out.cloned());
            held = Some((places, used, query, key, value));
        }
        let parts: Vec<&Tensor> = outputs.iter().collect();
        let mut joined = match parts.split_first() {
            Some((first, rest)) => Tensor::cat(first, rest, 0),
            None => query.clone(),
        };
        joined = joined.transpose(1, 2);
        joined = joined.reshape(&[joined.size(0), pixels + words, width]);
        let parts = joined.split(&[pixels, words], 1);
        let [image, text] = &parts[..] else {
            return [x.clone(), text.clone()];
        };
        let image = cx.module("to_out", |cx| cx.linear("0", image, width, true));
        let text = if last {
            text.clone()
        } else {
            cx.linear("to_add_out", text, self.text_width, true)
        };
        drop((held, outputs, all, all_text));
        [image, text]
    }
}

/// `SwiGLU` in `FeedForward`, without biases.
fn feed_forward(cx: &Cx, x: &Tensor) -> Tensor {
    let width = x.size(-1);
    let inner = 8 * width / 3;
    cx.module("net", |cx| {
        let product = cx.module("0", |cx| {
            let both = cx.linear("proj", x, 2 * inner, false);
            let halves = both.chunk(2, -1);
            drop(both);
            match &halves[..] {
                [up, gate] => gate.silu().pipe(|gate| up.mul(gate)),
                _ => x.clone(),
            }
        });
        cx.linear("2", &product, width, false)
    })
}

/// `MochiRMSNormZero`: the modulated rows; a scale, a gate, the feed-forward part's scale and its gate.
fn zero_norm(cx: &Cx, x: &Tensor, temb: &Tensor) -> (Tensor, Vec<Tensor>) {
    let emb = temb
        .silu()
        .pipe(|temb| cx.linear("linear", temb, 4 * x.size(-1), true));
    let parts = emb.chunk(4, 1);
    let Some(scale) = parts.first() else {
        return (x.clone(), parts);
    };
    let normed = x.to(DType::F32).pipe(bare_rms_norm);
    let scale = scale.unsqueeze(1).to(DType::F32).add_scalar();
    let scaled = normed.mul(&scale);
    drop((normed, scale));
    (scaled.to(x.dtype()), parts)
}

/// `MochiLayerNormContinuous`.
fn last_norm(cx: &Cx, x: &Tensor, temb: &Tensor) -> Tensor {
    let scale = temb
        .silu()
        .pipe(|temb| cx.linear("linear_1", temb, x.size(-1), true));
    let factor = scale.unsqueeze(1).to(DType::F32).add_scalar();
    modulated(x, &factor)
}

/// `MochiModulatedRMSNorm`.
fn modulated(x: &Tensor, scale: &Tensor) -> Tensor {
    let mut wide = x.to(DType::F32);
    wide = bare_rms_norm(&wide);
    wide = wide.mul(scale);
    wide.to(x.dtype())
}

/// Pairs of neighbours, by cosines and sines that may be learned.
fn rotated(x: &Tensor, [cosines, sines]: &[Tensor; 2]) -> Tensor {
    let [even, odd] = [(); 2].map(|()| x.every_other().to(DType::F32));
    let part = |first: &Tensor, second: &Tensor, plus: bool| {
        let (straight, crossed) = (even.mul(first), odd.mul(second));
        let sum = if plus {
            straight.add(&crossed)
        } else {
            straight.sub(&crossed)
        };
        drop((straight, crossed));
        sum.to(x.dtype())
    };
    let real = part(cosines, sines, false);
    let imaginary = part(sines, cosines, true);
    match Tensor::stack(&[real, imaginary], -1) {
        Some(pairs) => pairs.reshape(x.shape()),
        None => x.clone(),
    }
}
