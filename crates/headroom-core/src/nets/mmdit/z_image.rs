//! Z-Image (diffusers/models/transformers/transformer_z_image.py): one stream of image and text, each refined by itself first.

use crate::nets::diffusion::{
    Grid, Pixels, blocks, flow_matching, mse_output, rms_norm, rotate_complex,
};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct ZImage {
    pixels: Pixels,
    channels: u64,
    layers: u64,
    refiner_layers: u64,
    heads: u64,
    head_dim: u64,
    words: u64,
    context: u64,
}

const PATCH: u64 = 2;
/// `ADALN_EMBED_DIM`, and the width between its two layers.
const TIME: u64 = 256;
const TIME_INNER: u64 = 1024;
/// Lengths are padded to multiples of this (`SEQ_MULTI_OF`).
const MULTIPLE: u64 = 32;
/// `axes_lens` and `axes_dims`, whose complex numbers stay on the device from the first step on.
const AXES: [(&str, u64, u64); 3] = [
    ("freqs_0", 1024, 32),
    ("freqs_1", 512, 48),
    ("freqs_2", 512, 48),
];

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(ZImage {
        pixels: Pixels::still(8, sizes.or("img", 1024)),
        channels: sizes.or("channels", 16),
        layers: sizes.need("layers")?,
        refiner_layers: sizes.or("refiner_layers", 2),
        heads: sizes.need("heads")?.max(1),
        head_dim: sizes.or("head_dim", 128),
        words: sizes.or("ctx_len", 512),
        context: sizes.or("ctx_dim", 2560),
    }))
}

impl Net for ZImage {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let Grid { height, width, .. } = self.pixels.latents(data);
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        vec![
            make("latents", &[n, self.channels, 1, height, width]),
            make("encoder_hidden_states", &[n, self.words, self.context]),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, text] = batch else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let timestep = noised.level.add_scalar();
        let predicted = self.model(cx, &noised.input, &timestep, text);
        drop(timestep);
        mse_output(cx, predicted, &noised.target)
    }
}

impl ZImage {
    const fn width(&self) -> u64 {
        self.heads.saturating_mul(self.head_dim)
    }

    /// `ZImageTransformer2DModel.forward` for pictures and texts of one length.
    fn model(&self, cx: &Cx, latents: &Tensor, timestep: &Tensor, text: &Tensor) -> Tensor {
        let width = self.width();
        let n = latents.size(0);
        let grid = Grid {
            frames: 1,
            height: latents.size(3),
            width: latents.size(4),
        };
        let grid = grid.patches(1, PATCH);
        let (pixels, words) = (grid.count(), text.size(1));
        let all_pixels = pixels.next_multiple_of(MULTIPLE);
        let all_words = words.next_multiple_of(MULTIPLE);
        let temb = cx
            .module("t_embedder", |cx| time(cx, timestep))
            .to(latents.dtype());
        let each = PATCH * PATCH * self.channels;
        // Lists of a tensor for each sample become one.
        let patches = {
            let rows = latents.constant("patchify", &[n * all_pixels, each], latents.dtype());
            let joined = rows.constant("cat", &[n * all_pixels, each], latents.dtype());
            (rows, joined)
        };
        let (rows, joined) = patches;
        let captions = if words == all_words {
            text.clone()
        } else {
            text.constant("cat", &[n, all_words, self.context], text.dtype())
        };
        let mut hidden = cx.module("all_x_embedder", |cx| {
            cx.linear("2-1", &joined, width, true)
        });
        drop((joined, rows));
        let (image, freqs) = self.sequence(cx, &hidden, "x_pad_token", n, all_pixels);
        hidden = image;
        let outer = cx.checkpointing_in_any_mode();
        let (this, passed) = (*self, temb.clone());
        let own = freqs.clone();
        hidden = outer.stack(
            "noise_refiner",
            self.refiner_layers,
            hidden,
            move |cx, x, _| this.block(cx, x, &own, Some(&passed)),
        );
        let mut words = {
            let rows = captions.constant("cat", &[n * all_words, self.context], text.dtype());
            cx.module("cap_embedder", |cx| {
                let normed = rms_norm(cx, "0", &rows);
                cx.linear("1", &normed, width, true)
            })
        };
        let (padded, word_freqs) = self.sequence(cx, &words, "cap_pad_token", n, all_words);
        words = padded;
        let own = word_freqs.clone();
        words = outer.stack(
            "context_refiner",
            self.refiner_layers,
            words,
            move |cx, x, _| this.block(cx, x, &own, None),
        );
        let unified = {
            let each: Vec<Tensor> = (0..samples(latents))
                .map(|_| {
                    let [image, words] = [&hidden, &words].map(|x| x.select(0));
                    Tensor::cat(&image, &[&words], 0)
                })
                .collect();
            pad_sequence(
                cx,
                &each,
                [n, all_pixels + all_words, width],
                hidden.dtype(),
            )
        };
        let places = [all_pixels + all_words, 1, self.head_dim / 2, 2];
        let all_freqs = freqs.constant("pad_sequence", &places, DType::F32);
        let passed = temb.clone();
        let mut unified = blocks(cx).equal_stack("layers", self.layers, unified, move |cx, x| {
            this.block(cx, x, &all_freqs, Some(&passed))
        });
        unified = cx.module("all_final_layer", |cx| {
            cx.module("2-1", |cx| self.last(cx, &unified, &temb))
        });
        let one = &latents.shape()[1..];
        let images: Vec<Tensor> = unified
            .unbind_along(0)
            .iter()
            .take(samples(latents) as usize)
            .map(|rows| {
                let rows = rows.narrow(0, pixels);
                let patches = [grid.height, grid.width, PATCH, PATCH, self.channels];
                let image = rows.view(&patches).permute(&[4, 0, 2, 1, 3]);
                image.reshape(one)
            })
            .collect();
        Tensor::stack(&images, 0).unwrap_or(unified)
    }

    /// `_prepare_sequence`: padding is replaced, and complex numbers are looked up for each token.
    fn sequence(
        &self,
        cx: &Cx,
        rows: &Tensor,
        pad: &'static str,
        n: u64,
        length: u64,
    ) -> (Tensor, Tensor) {
        let width = self.width();
        let token = cx.param(pad, [1, width]).tensor();
        let mask = rows.constant("cat", &[n * length, 1], DType::Bool);
        let chosen = mask.choose(&token, rows);
        for (name, places, dims) in AXES {
            cx.module("rope_embedder", |cx| {
                cx.buffer(name, [places, dims], DType::F32);
            });
        }
        let pairs = self.head_dim / 2;
        let freqs = rows.constant("pad_sequence", &[length, 1, pairs, 2], DType::F32);
        drop(mask);
        let sizes = vec![length; n.min(MOST_SAMPLES) as usize];
        let parts = chosen.split(&sizes, 0);
        let stacked = pad_sequence(cx, &parts, [n, length, width], chosen.dtype());
        (stacked, freqs)
    }

    /// `ZImageTransformerBlock.forward`.
    fn block(&self, cx: &Cx, x: &Tensor, freqs: &Tensor, temb: Option<&Tensor>) -> Tensor {
        let width = self.width();
        let parts = temb.map(|temb| {
            let all = cx.module("adaLN_modulation", |cx| {
                cx.linear("0", temb, 4 * width, true)
            });
            all.unsqueeze(1).chunk(4, 2)
        });
        let parts = match parts.as_deref() {
            Some([scale, gate, ff_scale, ff_gate]) => {
                let gates = [gate, ff_gate].map(Tensor::tanh);
                let [gate, ff_gate] = gates;
                let scales = [scale, ff_scale].map(Tensor::add_scalar);
                let [scale, ff_scale] = scales;
                Some([scale, gate, ff_scale, ff_gate])
            }
            _ => None,
        };
        let [scale, gate, ff_scale, ff_gate] = match &parts {
            Some(all) => all.each_ref().map(Some),
            None => [None; 4],
        };
        let times = |x: Tensor, factor: Option<&Tensor>| match factor {
            Some(factor) => x.mul(factor),
            None => x,
        };
        let attended = {
            let normed = times(rms_norm(cx, "attention_norm1", x), scale);
            cx.module("attention", |cx| self.attention(cx, &normed, freqs))
        };
        let gated = |normed: Tensor, gate: Option<&Tensor>| match gate {
            Some(gate) => gate.mul(&normed),
            None => normed,
        };
        let more = gated(rms_norm(cx, "attention_norm2", &attended), gate);
        let x = x.add(&more);
        drop(more);
        let out = {
            let normed = times(rms_norm(cx, "ffn_norm1", &x), ff_scale);
            cx.module("feed_forward", |cx| {
                let inner = width / 3 * 8;
                let gate = cx.linear("w1", &normed, inner, false);
                let up = cx.linear("w3", &normed, inner, false);
                let both = gate.silu().pipe(|gate| gate.mul(&up));
                drop((gate, up));
                cx.linear("w2", &both, width, false)
            })
        };
        let more = gated(rms_norm(cx, "ffn_norm2", &out), ff_gate);
        drop(out);
        x.add(&more)
    }

    /// `ZSingleStreamAttnProcessor`.
    fn attention(&self, cx: &Cx, x: &Tensor, freqs: &Tensor) -> Tensor {
        let width = self.width();
        let rows = |x: &Tensor| x.view(&[x.size(0), x.size(1), self.heads, self.head_dim]);
        let mut query = cx.linear("to_q", x, width, false);
        let mut key = cx.linear("to_k", x, width, false);
        let mut value = cx.linear("to_v", x, width, false);
        query = rows(&query);
        key = rows(&key);
        value = rows(&value);
        query = rms_norm(cx, "norm_q", &query);
        key = rms_norm(cx, "norm_k", &key);
        query = rotate_complex(&query, freqs);
        key = rotate_complex(&key, freqs);
        let mut hidden = {
            let [q, k, v] = [&query, &key, &value].map(|x| x.transpose(1, 2));
            q.attention(&k, &v, &AttentionMask::None, 0.0)
                .transpose(1, 2)
        };
        hidden = hidden.reshape(&[hidden.size(0), hidden.size(1), width]);
        hidden = hidden.to(query.dtype());
        cx.module("to_out", |cx| cx.linear("0", &hidden, width, false))
    }

    /// `FinalLayer.forward`.
    fn last(&self, cx: &Cx, x: &Tensor, temb: &Tensor) -> Tensor {
        let width = self.width();
        let scale = cx.module("adaLN_modulation", |cx| {
            temb.silu().pipe(|x| cx.linear("1", x, width, true))
        });
        let scale = scale.add_scalar().unsqueeze(1);
        let scaled = x.layer_norm(None, None).pipe(|normed| normed.mul(&scale));
        cx.linear("linear", &scaled, PATCH * PATCH * self.channels, true)
    }
}

/// The most samples that are joined and cut one by one.
const MOST_SAMPLES: u64 = 1024;

fn samples(latents: &Tensor) -> u64 {
    latents.size(0).min(MOST_SAMPLES)
}

/// `pad_sequence(.., batch_first=True)`: each is written into an empty tensor.
fn pad_sequence(cx: &Cx, parts: &[Tensor], shape: [u64; 3], dtype: DType) -> Tensor {
    let empty = cx.tape.empty("full", shape, dtype);
    parts
        .iter()
        .fold(empty, |out, part| out.copy_into_slice_(part))
}

/// `TimestepEmbedder`.
fn time(cx: &Cx, timestep: &Tensor) -> Tensor {
    let scaled = timestep.mul_scalar();
    let waves = {
        let freqs = scaled.constant("exp", &[TIME / 2], DType::F32);
        let args = scaled.unsqueeze(1).pipe(|t| t.mul(&freqs.unsqueeze(0)));
        let cosines = args.cos();
        let sines = args.sin();
        Tensor::cat(&cosines, &[&sines], -1)
    };
    let waves = waves.to(cx.env.weights);
    cx.module("mlp", |cx| {
        let mut x = cx.linear("0", &waves, TIME_INNER, true);
        x = x.silu();
        cx.linear("2", &x, TIME, true)
    })
}
