//! The frozen encoders that make latents of images and hidden states of texts: `AutoencoderKL.encode` (diffusers/models/autoencoders/vae.py)
//! and CLIP's text towers, which examples/text_to_image/train_text_to_image*.py of diffusers run in each step.

use super::attention::self_attention;
use super::blocks::residual_block;
use super::layers::GROUPS;
use crate::nets::clip::{TextModel, Tower};
use crate::nets::diffusion::Grid;
use crate::nets::vision::index_name;
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use headroom_scenario::{Checkpointing, Precision, Quantization};

/// The frozen encoders of one family of models.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoders {
    texts: &'static [TextEncoder],
    /// The autoencoder stays in fp32: this family's overflows in fp16.
    fp32_vae: bool,
}

/// `CLIPTextModel`, or `CLIPTextModelWithProjection`.
#[derive(Clone, Copy, Debug)]
struct TextEncoder {
    model: TextModel,
    /// The width its pooled output is projected to, if it is.
    projection: Option<u64>,
}

/// CLIP ViT-L/14, OpenCLIP ViT-H/14 without its last layer, OpenCLIP ViT-bigG/14 with its projection
/// (`text_encoder/config.json` of the models).
const CLIP_L: TextEncoder = TextEncoder::new([768, 12, 12], true, None);
const OPENCLIP_H: TextEncoder = TextEncoder::new([1024, 23, 16], false, None);
const OPENCLIP_G: TextEncoder = TextEncoder::new([1280, 32, 20], false, Some(1280));

impl TextEncoder {
    const fn new(sizes: [u64; 3], quick_gelu: bool, projection: Option<u64>) -> Self {
        let [hidden, layers, heads] = sizes;
        let tower = Tower {
            layers,
            hidden,
            heads,
            ffn: 4 * hidden,
            quick_gelu,
        };
        let model = TextModel {
            tower,
            vocab: 49_408,
            context: 77,
        };
        Self { model, projection }
    }

    /// The hidden states that the U-Net attends to.
    fn encode(self, cx: &Cx, ids: &Tensor) -> Tensor {
        let [states, pooled] = cx.module("text_model", |cx| self.model.forward(cx, ids));
        if let Some(width) = self.projection {
            drop(cx.linear("text_projection", &pooled, width, false));
        }
        states
    }
}

/// Stages of the autoencoder, residual blocks in each, and its decoder's weights: they are on the card and never run.
const WIDTHS: [u64; 4] = [128, 256, 512, 512];
const BLOCKS: usize = 2;
const DECODER: u64 = 49_490_179 + 20;

impl Encoders {
    /// The encoders of the family with this width of text states, where the run has them.
    pub(crate) fn from_sizes(sizes: &Sizes) -> Result<Option<Self>, ModelError> {
        if !sizes.is_set("encoders") {
            return Ok(None);
        }
        let with = |texts, fp32_vae| Ok(Some(Self { texts, fp32_vae }));
        match sizes.need("ctx_dim")? {
            768 => with(&[CLIP_L], false),
            1024 => with(&[OPENCLIP_H], false),
            2048 => with(&[CLIP_L, OPENCLIP_G], true),
            width => Err(ModelError::UnknownTextEncoder { width }),
        }
    }

    /// Pixels, and the ids of each tower's text.
    pub(crate) fn batch(&self, cx: &Cx, samples: u64, grid: Grid, length: u64) -> Vec<Tensor> {
        let pixels = [samples, 3, 8 * grid.height, 8 * grid.width];
        let mut all = vec![cx.tape.empty("pixel_values", pixels, DType::F32)];
        for _ in self.texts {
            all.push(cx.tape.empty("input_ids", [samples, length], DType::I64));
        }
        all
    }

    /// Latents, and the text's states.
    pub(crate) fn encode(&self, cx: &Cx, batch: &[Tensor]) -> Option<(Tensor, Tensor)> {
        let (pixels, ids) = batch.split_first()?;
        let dtype = match cx.env.training.precision {
            Precision::AmpFp16 | Precision::Fp16 | Precision::AmpFp16OnFp16 => DType::F16,
            Precision::AmpBf16 | Precision::Bf16 | Precision::AmpBf16OnBf16 => DType::BF16,
            _ => DType::F32,
        };
        let image = frozen(cx, if self.fp32_vae { DType::F32 } else { dtype });
        let tape = cx.tape.clone();
        tape.without_autocast(|| {
            tape.no_grad(|| {
                let latents = image.module("vae", |cx| encode(cx, pixels));
                let text = frozen(cx, dtype);
                let states = self.texts.iter().zip(ids).enumerate();
                let mut states = states.map(|(i, (encoder, ids))| {
                    let name = if i == 0 {
                        "text_encoder"
                    } else {
                        "text_encoder_2"
                    };
                    text.module(name, |cx| encoder.encode(cx, ids))
                });
                let first = states.next()?;
                let context = match states.next() {
                    Some(second) => Tensor::cat(&first, &[&second], -1),
                    None => first,
                };
                Some((latents.to(cx.env.weights), context.to(cx.env.weights)))
            })
        })
    }
}

/// This module for a part that is not trained, with weights of its own type.
fn frozen(cx: &Cx, dtype: DType) -> Cx {
    let part = cx.part(dtype, |training| {
        training.lora = None;
        training.quantization = Quantization::None;
        training.checkpointing = Checkpointing::None;
    });
    part.frozen()
}

/// `encode(pixels).latent_dist.sample()`.
fn encode(cx: &Cx, pixels: &Tensor) -> Tensor {
    drop(cx.param("decoder", [DECODER]));
    let moments = cx.module("encoder", |cx| moments(cx, &pixels.to(cx.env.weights)));
    let channels = moments.size(1);
    let moments = cx.conv2d("quant_conv", &moments, channels, 1, Conv::default(), true);
    // Mean and deviation are halves of one tensor; the noise is a tensor of its own.
    let mut shape = moments.shape().to_vec();
    if let Some(channels) = shape.get_mut(1) {
        *channels /= 2;
    }
    let deviation = moments.constant("exp", &shape, moments.dtype());
    let noise = moments.constant("randn", &shape, moments.dtype());
    deviation.mul(&noise).pipe(Tensor::mul_scalar)
}

fn moments(cx: &Cx, pixels: &Tensor) -> Tensor {
    let same = Conv::stride(1).padded(1);
    let mut hidden = cx.conv2d("conv_in", pixels, WIDTHS[0], 3, same, true);
    let last = WIDTHS.len() - 1;
    for (i, width) in WIDTHS.into_iter().enumerate() {
        hidden = cx.module("down_blocks", |cx| {
            cx.module(index_name(i), |cx| {
                let mut hidden = blocks(cx, &hidden, BLOCKS, width);
                if i < last {
                    let (h, w) = (hidden.size(2), hidden.size(3));
                    hidden = hidden.pad_to(&[hidden.size(0), width, h + 1, w + 1]);
                    hidden = cx.module("downsamplers", |cx| {
                        cx.conv2d("conv", &hidden, width, 3, Conv::stride(2), true)
                    });
                }
                hidden
            })
        });
    }
    let width = WIDTHS[last];
    hidden = cx.module("mid_block", |cx| {
        let before = cx.module("first", |cx| residual_block(cx, &hidden, None, width));
        let attended = cx.module("attentions", |cx| self_attention(cx, &before, 1));
        drop(before);
        cx.module("second", |cx| residual_block(cx, &attended, None, width))
    });
    hidden = cx.group_norm("conv_norm_out", &hidden, GROUPS);
    hidden = hidden.silu();
    cx.conv2d("conv_out", &hidden, 8, 3, same, true)
}

fn blocks(cx: &Cx, hidden: &Tensor, count: usize, width: u64) -> Tensor {
    (0..count).fold(hidden.clone(), |hidden, i| {
        cx.module("resnets", |cx| {
            cx.module(index_name(i), |cx| residual_block(cx, &hidden, None, width))
        })
    })
}
