//! U-Nets of diffusion: of latents with a text (diffusers/models/unets/unet_2d_condition.py), Stable Diffusion 1.5 and XL, and
//! of pixels without.

mod attention;
mod blocks;
mod encoders;
mod layers;
mod order;
mod time;
mod unconditional;

pub(super) use attention::{attention, masked_attention};

use self::attention::Transformer;
use self::layers::GROUPS;
use self::order::in_module_order;
use super::diffusion::{Grid, Pixels, mse_output};
use super::vision::index_name;
use super::{Build, Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("unet", build),
    ("UNet2DConditionModel", build),
    ("unet2d", unconditional::build),
];

#[derive(Clone, Debug)]
struct UNet {
    pixels: Pixels,
    channels: u64,
    context_length: u64,
    context: u64,
    widths: Vec<u64>,
    layers: u64,
    heads: Vec<u64>,
    /// Transformer blocks in each attention of a stage; none where a stage has no attention.
    depths: Vec<u64>,
    /// Projections around attention are linear layers, not convolutions.
    linear: bool,
    /// Transformer blocks in the middle.
    middle: u64,
    /// Width of the pooled text embedding, and of the sinusoids of each of the six `time_ids` (XL).
    added: Option<(u64, u64)>,
    /// The encoders that make latents and text states in each step, where these are not read from disk.
    encoders: Option<encoders::Encoders>,
}

fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let widths = sizes.list("block_out")?.to_vec();
    let per_stage = |name: &str, default: Vec<u64>| match sizes.list(name) {
        Ok([one]) => vec![*one; widths.len()],
        Ok(list) => list.to_vec(),
        Err(_) => default,
    };
    let mut plain = vec![1; widths.len()];
    if let Some(last) = plain.last_mut() {
        *last = 0;
    }
    let attends = per_stage("cross", plain);
    let deep = per_stage("depth", vec![1; widths.len()]);
    let middle = deep.last().copied().unwrap_or(1);
    let depths = deep
        .iter()
        .zip(&attends)
        .map(|(depth, attends)| depth * attends.min(&1))
        .collect();
    Ok(Box::new(UNet {
        pixels: Pixels::still(8, sizes.need("img")?.saturating_mul(8)),
        channels: sizes.or("channels", 4),
        context_length: sizes.or("ctx_len", 77),
        context: sizes.need("ctx_dim")?,
        layers: sizes.or("layers_per_block", 2),
        heads: per_stage("heads", vec![8; widths.len()]),
        depths,
        linear: sizes.is_set("linear"),
        added: sizes.get("add_embed").map(|width| {
            let each = sizes.or("time_ids", 256);
            (width.saturating_sub(6 * each), each)
        }),
        middle,
        widths,
        encoders: encoders::Encoders::from_sizes(sizes)?,
    }))
}

impl Net for UNet {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let samples = data.micro_batch;
        let weights = cx.env.weights;
        let grid = self.pixels.latents(data);
        let Grid { height, width, .. } = grid;
        let shape = [samples, self.channels, height, width];
        let make = |name, shape: &[u64], dtype| cx.tape.empty(name, shape, dtype);
        let mut all = match &self.encoders {
            Some(encoders) => encoders.batch(cx, samples, grid, self.context_length),
            None => {
                vec![
                    make("sample", &shape, weights),
                    make("target", &shape, weights),
                ]
            }
        };
        all.push(make("timestep", &[samples], DType::I64));
        if self.encoders.is_none() {
            let states = [samples, self.context_length, self.context];
            all.push(make("encoder_hidden_states", &states, weights));
        }
        if let Some((pooled, _)) = self.added {
            all.push(make("text_embeds", &[samples, pooled], weights));
            all.push(make("time_ids", &[samples, 6], weights));
        }
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let Some(([sample, target, context], timestep, added)) = self.inputs(cx, batch) else {
            return Output::empty(cx);
        };
        let predicted =
            in_module_order(cx, |cx| self.model(cx, &sample, timestep, &context, added));
        mse_output(cx, predicted, &target)
    }
}

impl UNet {
    /// Noisy latents, their noise and the text's states; the time step, and `added_cond_kwargs`.
    fn inputs<'a>(
        &self,
        cx: &Cx,
        batch: &'a [Tensor],
    ) -> Option<([Tensor; 3], &'a Tensor, &'a [Tensor])> {
        let Some(encoders) = &self.encoders else {
            let [sample, target, timestep, context, added @ ..] = batch else {
                return None;
            };
            let all = [sample, target, context].map(Clone::clone);
            return Some((all, timestep, added));
        };
        let rest = 1 + if self.added.is_some() { 2 } else { 0 };
        let (raw, rest) = batch.split_at(batch.len().saturating_sub(rest));
        let (timestep, added) = rest.split_first()?;
        let (latents, context) = encoders.encode(cx, raw)?;
        let noise = |name| latents.constant(name, latents.shape(), latents.dtype());
        Some((
            [noise("add_noise"), noise("randn"), context],
            timestep,
            added,
        ))
    }

    /// The blocks of stage `i`.
    fn stage(&self, i: usize) -> blocks::Stage {
        self.stage_of_depth(i, self.depths.get(i).copied().unwrap_or(0))
    }

    fn stage_of_depth(&self, i: usize, depth: u64) -> blocks::Stage {
        let at = |list: &[u64], default| list.get(i).copied().unwrap_or(default);
        blocks::Stage {
            width: at(&self.widths, 32).max(1),
            attention: (depth > 0).then_some(Transformer {
                heads: at(&self.heads, 8).max(1),
                depth,
                linear: self.linear,
            }),
            padding: 1,
        }
    }

    fn model(
        &self,
        cx: &Cx,
        image: &Tensor,
        timestep: &Tensor,
        context: &Tensor,
        added: &[Tensor],
    ) -> Tensor {
        let first = self.widths.first().copied().unwrap_or(32);
        let waves = self.added.map_or(256, |(_, waves)| waves);
        let [embedding, _waves] = time::embed(cx, timestep, first, added, waves, image.dtype());
        let mut sample = cx.conv2d("conv_in", image, first, 3, Conv::stride(1).padded(1), true);
        let mut skips = vec![sample.clone()];
        let stages = self.widths.len();
        for i in 0..stages {
            let downsample = i + 1 < stages;
            sample = cx.module("down_blocks", |cx| {
                cx.module(index_name(i), |cx| {
                    let stage = self.stage(i);
                    stage.down(
                        cx,
                        &sample,
                        &embedding,
                        Some(context),
                        self.layers,
                        downsample,
                        &mut skips,
                    )
                })
            });
        }
        sample = cx.module("mid_block", |cx| {
            let middle = self.stage_of_depth(stages.saturating_sub(1), self.middle);
            middle.middle(cx, &sample, &embedding, Some(context))
        });
        // The loop's variable holds the skips of the last stage to the end.
        let mut stage_skips = Vec::new();
        for i in 0..stages {
            let kept = skips.len().saturating_sub(self.layers as usize + 1);
            let before = std::mem::replace(&mut stage_skips, skips.split_off(kept));
            drop(before);
            // As large as what it will be joined with: twice as large, but for sides that were odd (`upsample_size`).
            let upsample = skips.last().filter(|_| i + 1 < stages);
            let upsample = upsample.map(|skip| [skip.size(2), skip.size(3)]);
            sample = cx.module("up_blocks", |cx| {
                cx.module(index_name(i), |cx| {
                    let stage = self.stage(stages - 1 - i);
                    stage.up(
                        cx,
                        &sample,
                        &embedding,
                        Some(context),
                        &stage_skips,
                        upsample,
                    )
                })
            });
        }
        sample = cx.group_norm("conv_norm_out", &sample, GROUPS);
        sample = sample.silu();
        sample = cx.conv2d(
            "conv_out",
            &sample,
            self.channels,
            3,
            Conv::stride(1).padded(1),
            true,
        );
        drop(stage_skips);
        sample
    }
}
