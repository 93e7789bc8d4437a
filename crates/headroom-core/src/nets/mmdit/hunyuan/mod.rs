//! HunyuanVideo, HunyuanVideo 1.5 and HunyuanImage (diffusers/models/transformers/transformer_{hunyuan_video,hunyuan_video15,
//! hunyuanimage}.py): FLUX's two kinds of blocks over videos or pictures, a refiner of the text before them, and a mask over its
//! padding.

mod blocks;
mod texts;

use super::joint::last_norm;
use crate::nets::diffusion::{
    Grid, Pixels, double_and_single_blocks, flow_matching, mse_output, sinusoids,
    timestep_embedding,
};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// Which of the three it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Video,
    /// Tokens of glyphs and of a picture beside the text's, told apart by an embedding; no single blocks.
    Video15,
    /// Pictures, with tokens of glyphs beside the text's.
    Picture,
}

#[derive(Clone, Copy, Debug)]
struct Hunyuan {
    kind: Kind,
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
    /// Tokens of the encoder of glyphs, and their width.
    glyphs: [u64; 2],
    /// Tokens of the encoder of pictures, and their width.
    image: [u64; 2],
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let defaults = [("height", 544), ("width", 960), ("frames", 129)];
    let pixels = Pixels::moving(&sizes.with_defaults(defaults), 8, 4);
    of_kind(sizes, Kind::Video, pixels)
}

pub(crate) fn video15(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let defaults = [("height", 480), ("width", 832), ("frames", 121)];
    let pixels = Pixels::moving(&sizes.with_defaults(defaults), 16, 4);
    of_kind(sizes, Kind::Video15, pixels)
}

pub(crate) fn picture(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let pixels = Pixels::still(32, sizes.or("img", 2048));
    of_kind(sizes, Kind::Picture, pixels)
}

fn of_kind(sizes: &Sizes, kind: Kind, pixels: Pixels) -> Result<Box<dyn Net>, ModelError> {
    let of_video = u64::from(kind == Kind::Video);
    let single_layers = match kind {
        Kind::Video15 => sizes.or("single_layers", 0),
        Kind::Video | Kind::Picture => sizes.need("single_layers")?,
    };
    Ok(Box::new(Hunyuan {
        kind,
        pixels,
        channels: sizes.or("channels", 16),
        condition: sizes.or("condition", 0),
        patch: sizes.or("patch", 2).max(1),
        layers: sizes.need("layers")?,
        single_layers,
        refiner_layers: sizes.or("refiner_layers", 2),
        heads: sizes.need("heads")?.max(1),
        head_dim: sizes.or("head_dim", 128),
        words: sizes.or("ctx_len", 256),
        context: sizes.or("ctx_dim", 4096),
        pooled: sizes.or("pooled", 768 * of_video),
        guidance: sizes.or("guidance", of_video) != 0,
        glyphs: [sizes.or("glyph_len", 0), sizes.or("glyph_dim", 1472)],
        image: [sizes.or("image_len", 0), sizes.or("image_dim", 1152)],
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
        let latents = match self.kind {
            Kind::Picture => make("latents", &[n, self.channels, height, width]),
            _ => make("latents", &[n, self.channels, frames, height, width]),
        };
        vec![
            latents,
            make("condition", &[n, self.condition, frames, height, width]),
            make("encoder_hidden_states", &[n, self.words, self.context]),
            cx.tape
                .empty("encoder_attention_mask", [n, self.words], DType::I64),
            make("pooled_projections", &[n, self.pooled]),
            make("guidance", &[if self.guidance { n } else { 0 }]),
            make(
                "encoder_hidden_states_2",
                &[n, self.glyphs[0], self.glyphs[1]],
            ),
            cx.tape
                .empty("encoder_attention_mask_2", [n, self.glyphs[0]], DType::I64),
            make("image_embeds", &[n, self.image[0], self.image[1]]),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, condition, given @ ..] = batch else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let shown = match self.condition {
            0 => noised.input.clone(),
            _ => Tensor::cat(&noised.input, &[condition], 1),
        };
        let mut timestep = noised.level.mul_scalar();
        if self.kind != Kind::Video {
            // These embed it in its own type.
            timestep = timestep.to(latents.dtype());
        }
        let predicted = self.model(cx, &shown, &timestep, given);
        drop((shown, timestep));
        mse_output(cx, predicted, &noised.target)
    }
}

impl Hunyuan {
    const fn width(&self) -> u64 {
        self.heads.saturating_mul(self.head_dim)
    }

    /// `HunyuanVideoTransformer3DModel.forward` and its relatives.
    fn model(&self, cx: &Cx, latents: &Tensor, timestep: &Tensor, given: &[Tensor]) -> Tensor {
        let [
            text,
            text_mask,
            pooled,
            guidance,
            glyphs,
            glyph_mask,
            picture,
        ] = given
        else {
            return latents.clone();
        };
        let width = self.width();
        let still = self.kind == Kind::Picture;
        let side = |dim: isize| latents.size(dim);
        let grid = Grid {
            frames: if still { 1 } else { side(-3) },
            height: side(-2),
            width: side(-1),
        };
        let grid = grid.patches(1, self.patch);
        let (n, tokens) = (latents.size(0), grid.count());
        let rotary =
            [(); 2].map(|()| latents.constant("rope", &[1, tokens, 1, self.head_dim], DType::F32));
        let name = match self.kind {
            Kind::Video => "time_text_embed",
            Kind::Video15 => "time_embed",
            Kind::Picture => "time_guidance_embed",
        };
        let temb = cx.module(name, |cx| self.conditions(cx, [timestep, guidance], pooled));
        let mut hidden = cx.module("x_embedder", |cx| {
            let patch = [1, self.patch, self.patch];
            let patch = if still { &patch[1..] } else { &patch[..] };
            let x = cx.patch_convolution("proj", latents, width, patch, true);
            x.reshape(&[n, width, tokens]).transpose(1, 2)
        });
        let used = match self.kind {
            Kind::Video => text_mask.clone(),
            _ => text_mask.constant("bool", text_mask.shape(), DType::Bool),
        };
        let mut text = cx.module("context_embedder", |cx| {
            self.refiner(cx, text, timestep, &used)
        });
        let mut mask = used;
        let mut held = Vec::new();
        if self.kind != Kind::Video {
            let joined = self.joined(cx, [&text, glyphs, picture], [&mask, glyph_mask]);
            (text, mask, held) = (joined.text, joined.mask, joined.held);
        }
        if self.kind != Kind::Video15 {
            let all = [n, 1, 1, tokens + text.size(1)];
            mask = hidden.constant("masked_fill", &all, DType::Bool);
        }
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
        drop((image, held));
        let p = self.patch;
        hidden = cx.linear("proj_out", &hidden, p * p * self.channels, true);
        let Grid {
            frames,
            height,
            width,
        } = grid;
        if still {
            let each = [n, height, width, self.channels, p, p];
            let picture = hidden.reshape(&each).permute(&[0, 3, 1, 4, 2, 5]);
            return picture.reshape(&[n, self.channels, height * p, width * p]);
        }
        let each = [n, frames, height, width, self.channels, p, p];
        let video = hidden.reshape(&each).permute(&[0, 4, 1, 2, 5, 3, 6]);
        video.reshape(&[n, self.channels, frames, height * p, width * p])
    }

    /// `HunyuanVideoConditionEmbedding`.
    fn conditions(&self, cx: &Cx, [timestep, guidance]: [&Tensor; 2], pooled: &Tensor) -> Tensor {
        let width = self.width();
        let waves = sinusoids(timestep, 256).to(pooled.dtype());
        let time = timestep_embedding(cx, "timestep_embedder", &waves, width);
        let text = (self.kind == Kind::Video)
            .then(|| timestep_embedding(cx, "text_embedder", pooled, width));
        let with_text = |time: Tensor| match &text {
            Some(text) => time.add(text),
            None => time,
        };
        if !self.guidance {
            return with_text(time);
        }
        let waves = sinusoids(guidance, 256).to(pooled.dtype());
        let guidance = timestep_embedding(cx, "guidance_embedder", &waves, width);
        with_text(time.add(&guidance))
    }
}
