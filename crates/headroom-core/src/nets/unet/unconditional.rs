//! U-Nets of pixels without a text (diffusers/models/unets/unet_2d.py), as DDPM's.

use super::attention::Transformer;
use super::blocks::Stage;
use super::layers::GROUPS;
use super::order::in_module_order;
use super::time;
use crate::nets::diffusion::{Grid, Pixels, mse_output};
use crate::nets::vision::index_name;
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Debug)]
struct UNet2D {
    pixels: Pixels,
    channels: u64,
    widths: Vec<u64>,
    layers: u64,
    /// 1 for each stage with attention, on the way down and on the way up.
    down: Vec<u64>,
    up: Vec<u64>,
    /// Width of a head (`attention_head_dim`); without it there is one head.
    head_dim: Option<u64>,
    /// Padding of a convolution that halves the image; with 0, one row and one column are padded before it.
    padding: u64,
}

/// By default all stages have attention but the first of the way down and the last of the way up.
pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let widths = sizes.list("block_out")?.to_vec();
    let stages = widths.len();
    let attends = |name: &str, not: usize| match sizes.list(name) {
        Ok(list) => list.to_vec(),
        Err(_) => (0..stages).map(|i| u64::from(i != not)).collect(),
    };
    Ok(Box::new(UNet2D {
        pixels: Pixels::still(1, sizes.need("img")?),
        channels: sizes.or("channels", 3),
        layers: sizes.or("layers_per_block", 2),
        down: attends("down_attention", 0),
        up: attends("up_attention", stages.saturating_sub(1)),
        head_dim: sizes.get("head_dim"),
        padding: sizes.or("down_padding", 1),
        widths,
    }))
}

impl Net for UNet2D {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let Grid { height, width, .. } = self.pixels.latents(data);
        let shape = [data.micro_batch, self.channels, height, width];
        let image = |name| cx.tape.empty(name, shape, cx.env.weights);
        let (sample, noise) = (image("sample"), image("noise"));
        let timestep = cx.tape.empty("timestep", [data.micro_batch], DType::I64);
        vec![sample, noise, timestep]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [sample, noise, timestep] = batch else {
            return Output::empty(cx);
        };
        let predicted = in_module_order(cx, |cx| self.model(cx, sample, timestep));
        mse_output(cx, predicted, noise)
    }
}

impl UNet2D {
    fn stage(&self, i: usize, attends: bool) -> Stage {
        let width = self.widths.get(i).copied().unwrap_or(GROUPS).max(1);
        let head_dim = self.head_dim.unwrap_or(width).max(1);
        Stage {
            width,
            attention: attends.then_some(Transformer {
                heads: (width / head_dim).max(1),
                depth: 1,
                linear: false,
            }),
            padding: self.padding,
        }
    }

    fn model(&self, cx: &Cx, image: &Tensor, timestep: &Tensor) -> Tensor {
        let same = Conv::stride(1).padded(1);
        let first = self.widths.first().copied().unwrap_or(GROUPS);
        // The constructor makes it before what embeds the time step.
        cx.module("conv_in", |cx| {
            drop(cx.param("weight", [first, image.size(1), 3, 3]));
            drop(cx.param("bias", [first]));
        });
        let steps = {
            let ones = timestep.constant("ones", &[timestep.size(0)], DType::I64);
            timestep.mul(&ones)
        };
        let [embedding, _waves] = time::embed(cx, &steps, first, &[], 0, image.dtype());
        let mut sample = cx.conv2d("conv_in", image, first, 3, same, true);
        let mut skips = vec![sample.clone()];
        let stages = self.widths.len();
        let attends = |list: &[u64], i: usize| list.get(i).is_some_and(|flag| *flag > 0);
        for i in 0..stages {
            let downsample = i + 1 < stages;
            sample = cx.module("down_blocks", |cx| {
                cx.module(index_name(i), |cx| {
                    let stage = self.stage(i, attends(&self.down, i));
                    let layers = self.layers;
                    stage.down(
                        cx, &sample, &embedding, None, layers, downsample, &mut skips,
                    )
                })
            });
        }
        sample = cx.module("mid_block", |cx| {
            let stage = self.stage(stages.saturating_sub(1), true);
            stage.middle(cx, &sample, &embedding, None)
        });
        // The loop's variable holds the skips of the last stage to the end.
        let mut stage_skips = Vec::new();
        for i in 0..stages {
            let kept = skips.len().saturating_sub(self.layers as usize + 1);
            let before = std::mem::replace(&mut stage_skips, skips.split_off(kept));
            drop(before);
            sample = cx.module("up_blocks", |cx| {
                cx.module(index_name(i), |cx| {
                    let stage = self.stage(stages - 1 - i, attends(&self.up, i));
                    let upsample = skips.last().filter(|_| i + 1 < stages);
                    let upsample = upsample.map(|skip| [skip.size(2), skip.size(3)]);
                    stage.up(cx, &sample, &embedding, None, &stage_skips, upsample)
                })
            });
        }
        sample = cx.group_norm("conv_norm_out", &sample, GROUPS);
        sample = sample.silu();
        sample = cx.conv2d("conv_out", &sample, self.channels, 3, same, true);
        drop(stage_skips);
        sample
    }
}
