//! Wan 2.1 and 2.2: attention of all patches to each other and to a text, and to a picture in the first image-to-video models.

use super::wan_vace::{Control, Given};
use crate::nets::diffusion::{
    Grid, Pixels, blocks, caption_projection, feed_forward_of, flow_matching, fp32_layer_norm,
    fp32_modulated, mse_output, sinusoids,
};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
pub(super) struct Wan {
    pixels: Pixels,
    /// Channels of the latents that are learned, and of what is given beside them.
    channels: u64,
    condition: u64,
    pub(super) layers: u64,
    heads: u64,
    head_dim: u64,
    ffn: u64,
    words: u64,
    context: u64,
    /// Width of a picture's features, if the model attends to them.
    image: Option<u64>,
    /// Each token has a time step of its own (Wan 2.2's 5B).
    time_of_tokens: bool,
    /// Blocks beside the others that read a control video (VACE).
    pub(super) control: Option<Control>,
}

/// Patches are of two by two latents of one frame.
const PATCH: u64 = 2;
/// Features of a picture by CLIP ViT-H/14.
const IMAGE_TOKENS: u64 = 257;
/// `rope_max_seq_len`.
const PLACES: u64 = 1024;
const WAVES: u64 = 256;

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Wan {
        pixels: Pixels::moving(sizes, sizes.or("vae", 8), 4),
        channels: sizes.or("channels", 16),
        condition: sizes.or("condition", 0),
        layers: sizes.need("layers")?,
        heads: sizes.need("heads")?.max(1),
        head_dim: sizes.or("head_dim", 128),
        ffn: sizes.need("ffn")?,
        words: sizes.or("ctx_len", 512),
        context: sizes.or("ctx_dim", 4096),
        image: sizes.get("image_dim").filter(|width| *width > 0),
        time_of_tokens: sizes.is_set("time_of_tokens"),
        control: Control::of(sizes),
    }))
}

impl Net for Wan {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let Grid {
            frames,
            height,
            width,
        } = self.pixels.latents(data);
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        let mut all = vec![
            make("latents", &[n, self.channels, frames, height, width]),
            make("condition", &[n, self.condition, frames, height, width]),
            make("encoder_hidden_states", &[n, self.words, self.context]),
        ];
        if let Some(features) = self.image {
            all.push(make("image", &[n, IMAGE_TOKENS, features]));
        } else if let Some(control) = self.control {
            let shape = [n, control.channels, frames, height, width];
            all.push(make("control_hidden_states", &shape));
        }
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, condition, text, more @ ..] = batch else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let shown = match self.condition {
            0 => noised.input.clone(),
            _ => Tensor::cat(&noised.input, &[condition], 1),
        };
        let predicted = self.model(cx, &shown, &noised.level, text, more.first());
        drop(shown);
        mse_output(cx, predicted, &noised.target)
    }
}

impl Wan {
    pub(super) const fn width(&self) -> u64 {
        self.heads.saturating_mul(self.head_dim)
    }

    /// `WanTransformer3DModel.forward`.
    fn model(
        &self,
        cx: &Cx,
        latents: &Tensor,
        level: &Tensor,
        text: &Tensor,
        more: Option<&Tensor>,
    ) -> Tensor {
        let image = more.filter(|_| self.image.is_some());
        let width = self.width();
        let grid = Grid {
            frames: latents.size(2),
            height: latents.size(3),
            width: latents.size(4),
        };
        let grid = grid.patches(1, PATCH);
        let (n, tokens) = (latents.size(0), grid.count());
        let timestep = level.mul_scalar();
        let timestep = if self.time_of_tokens {
            timestep.constant("expand", &[n.saturating_mul(tokens)], DType::F32)
        } else {
            timestep
        };
        let rotary = self.positions(cx, latents, grid);
        let mut hidden =
            cx.patch_convolution("patch_embedding", latents, width, &[1, PATCH, PATCH], true);
        hidden = hidden.reshape(&[n, width, tokens]).transpose(1, 2);
        let control = more.zip(self.control);
        let control = control.map(|(video, _)| Control::patches(cx, video, width));
        if control.is_none() {
            hidden = hidden.contiguous();
        }
        let (temb, parts, context) = cx.module("condition_embedder", |cx| {
            self.conditions(cx, &timestep, text, image)
        });
        let rows = if self.time_of_tokens { tokens } else { 1 };
        let (temb, parts) = if self.time_of_tokens {
            let each = parts.view(&[n, rows, 6, width]);
            (temb.view(&[n, rows, width]), each)
        } else {
            (temb, parts.view(&[n, 6, width]))
        };
        let given = Given {
            context,
            parts,
            rotary,
        };
        let this = *self;
        hidden = if let Some((control, form)) = control.zip(self.control) {
            form.run(cx, this, [hidden, control], given)
        } else {
            blocks(cx).equal_stack("blocks", self.layers, hidden, move |cx, hidden| {
                this.block(cx, hidden, &given)
            })
        };
        let table = cx.param("scale_shift_table", [1, 2, width]).tensor();
        let ends = if self.time_of_tokens {
            let sum = temb.unsqueeze(2).pipe(|temb| table.unsqueeze(0).add(temb));
            squeezed(&sum.chunk(2, 2))
        } else {
            temb.unsqueeze(1).pipe(|temb| table.add(temb)).chunk(2, 1)
        };
        if let [shift, scale] = &ends[..] {
            hidden = fp32_modulated(&hidden, scale, shift);
        }
        let out = PATCH * PATCH * self.channels;
        hidden = cx.linear("proj_out", &hidden, out, true);
        let Grid {
            frames,
            height,
            width,
        } = grid;
        let patches = [n, frames, height, width, PATCH, PATCH, self.channels];
        let video = hidden.reshape(&patches).permute(&[0, 6, 1, 2, 4, 3, 5]);
        video.reshape(&[n, self.channels, frames, height * PATCH, width * PATCH])
    }

    /// `WanRotaryPosEmbed`: a cosine and a sine for each token.
    fn positions(&self, cx: &Cx, latents: &Tensor, grid: Grid) -> [Tensor; 2] {
        let dtype = cx.env.weights;
        cx.module("rope", |cx| {
            ["freqs_cos", "freqs_sin"].map(|name| {
                cx.buffer(name, [PLACES, self.head_dim], dtype);
                latents.constant("cat", &[1, grid.count(), 1, self.head_dim], dtype)
            })
        })
    }

    /// `WanTimeTextImageEmbedding`: the time step, its six parts, and what is attended to.
    fn conditions(
        &self,
        cx: &Cx,
        timestep: &Tensor,
        text: &Tensor,
        image: Option<&Tensor>,
    ) -> (Tensor, Tensor, Tensor) {
        let width = self.width();
        let waves = sinusoids(timestep, WAVES).to(cx.env.weights);
        let temb = cx.module("time_embedder", |cx| {
            let mut x = cx.linear("linear_1", &waves, width, true);
            x = x.silu();
            cx.linear("linear_2", &x, width, true)
        });
        let temb = temb.to(text.dtype());
        let parts = temb
            .silu()
            .pipe(|x| cx.linear("time_proj", x, 6 * width, true));
        let mut context = caption_projection(cx, "text_embedder", text, width);
        if let Some(image) = image {
            let shown = cx.module("image_embedder", |cx| {
                let mut x = fp32_layer_norm(cx, "norm1", image);
                x = feed_forward_of_picture(cx, &x, width);
                fp32_layer_norm(cx, "norm2", &x)
            });
            context = Tensor::cat(&shown, &[&context], 1);
        }
        (temb, parts, context)
    }

    /// `WanTransformerBlock.forward`.
    pub(super) fn block(
        &self,
        cx: &Cx,
        hidden: &Tensor,
        Given {
            context,
            parts: temb,
            rotary,
        }: &Given,
    ) -> Tensor {
        let width = self.width();
        let table = cx.param("scale_shift_table", [1, 6, width]).tensor();
        let wide = temb.to(DType::F32);
        let parts = if self.time_of_tokens {
            let sum = table.unsqueeze(0).add(&wide);
            squeezed(&sum.chunk(6, 2))
        } else {
            table.add(&wide).chunk(6, 1)
        };
        drop(wide);
        let [shift, scale, gate, ff_shift, ff_scale, ff_gate] = &parts[..] else {
            return hidden.clone();
        };
        let mut normed = fp32_modulated(hidden, scale, shift);
        let mut attended = cx.module("attn1", |cx| {
            self.attention(cx, &normed, &normed, Some(rotary))
        });
        let mut hidden = gated(hidden, &attended, gate);
        normed = {
            let wide = hidden.to(DType::F32);
            fp32_layer_norm(cx, "norm2", &wide).to(hidden.dtype())
        };
        attended = cx.module("attn2", |cx| self.attention(cx, &normed, context, None));
        hidden = hidden.add(&attended);
        normed = fp32_modulated(&hidden, ff_scale, ff_shift);
        let ff_output = feed_forward_of(cx, "ffn", &normed, self.ffn);
        let wide = hidden.to(DType::F32);
        let more = ff_output.to(DType::F32).pipe(|x| x.mul(ff_gate));
        let sum = wide.add(&more);
        drop((wide, more));
        sum.to(hidden.dtype())
    }

    /// `WanAttnProcessor`: norms over all heads at once.
    fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        context: &Tensor,
        rotary: Option<&[Tensor; 2]>,
    ) -> Tensor {
        let width = self.width();
        let of_picture = rotary.is_none() && self.image.is_some();
        let (shown, context) = if of_picture {
            let words = context.size(1).saturating_sub(IMAGE_TOKENS);
            (
                Some(context.narrow(1, IMAGE_TOKENS)),
                context.narrow(1, words),
            )
        } else {
            (None, context.clone())
        };
        let rows = |x: &Tensor| x.view(&[x.size(0), x.size(1), self.heads, self.head_dim]);
        let mut query = cx.linear("to_q", x, width, true);
        let mut key = cx.linear("to_k", &context, width, true);
        let mut value = cx.linear("to_v", &context, width, true);
        query = cx.fused_rms_norm("norm_q", &query);
        key = cx.fused_rms_norm("norm_k", &key);
        query = rows(&query);
        key = rows(&key);
        value = rows(&value);
        if let Some(rotary) = rotary {
            query = rotated(&query, rotary);
            key = rotated(&key, rotary);
        }
        let of_image = shown.map(|shown| {
            let mut key = cx.linear("add_k_proj", &shown, width, true);
            let value = cx.linear("add_v_proj", &shown, width, true);
            key = cx.fused_rms_norm("norm_added_k", &key);
            attended(&query, &rows(&key), &rows(&value)).to(query.dtype())
        });
        let mut hidden = attended(&query, &key, &value);
        hidden = hidden.to(query.dtype());
        if let Some(of_image) = &of_image {
            hidden = hidden.add(of_image);
        }
        cx.module("to_out", |cx| cx.linear("0", &hidden, width, true))
    }
}

/// `dispatch_attention_fn` on `[B, S, H, D]`, with the heads joined.
fn attended(query: &Tensor, key: &Tensor, value: &Tensor) -> Tensor {
    let [query, key, value] = [query, key, value].map(|x| x.transpose(1, 2));
    let out = query.attention(&key, &value, &AttentionMask::None, 0.0);
    let out = out.transpose(1, 2);
    out.reshape(&[out.size(0), out.size(1), out.size(2) * out.size(3)])
}

/// `(hidden.float() + update * gate).type_as(hidden)`.
fn gated(hidden: &Tensor, update: &Tensor, gate: &Tensor) -> Tensor {
    let wide = hidden.to(DType::F32);
    let more = update.mul(gate);
    let sum = wide.add(&more);
    drop((wide, more));
    sum.to(hidden.dtype())
}

fn squeezed(parts: &[Tensor]) -> Vec<Tensor> {
    parts.iter().map(|part| part.squeeze(2)).collect()
}

/// `FeedForward` with `gelu` and as wide inside as its input.
fn feed_forward_of_picture(cx: &Cx, x: &Tensor, width: u64) -> Tensor {
    cx.module("ff", |cx| {
        cx.module("net", |cx| {
            let mut y = cx.module("0", |cx| cx.linear("proj", x, x.size(-1), true));
            y = y.gelu();
            cx.linear("2", &y, width, true)
        })
    })
}

/// Even places and odd ones, written one after the other into an empty tensor.
fn rotated(x: &Tensor, [cosines, sines]: &[Tensor; 2]) -> Tensor {
    let shape = x.shape();
    let pairs = [shape[0], shape[1], shape[2], shape[3] / 2, 2];
    let halves = x.view(&pairs).unbind_along(-1);
    let [first, second] = &halves[..] else {
        return x.clone();
    };
    let [cos, sin] = [cosines, sines].map(Tensor::every_other);
    let out = x.empty_like("empty_like", x.dtype());
    let write = |out: &Tensor, part: Tensor| {
        let part = part.to(x.dtype());
        out.copy_into_slice_(&part)
    };
    let even = {
        let a = first.mul(&cos);
        let b = second.mul(&sin);
        a.sub(&b)
    };
    let out = write(&out, even);
    let odd = {
        let a = first.mul(&sin);
        let b = second.mul(&cos);
        a.add(&b)
    };
    write(&out, odd)
}
