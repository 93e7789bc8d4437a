//! SAM 2 on pictures: Hiera, a pyramid of its stages, and the mask decoder with finer maps (transformers/models/sam2/modeling_sam2.py).
//! A sample is an image with a box, one mask is requested, and the loss is binary cross-entropy with it.

mod hiera;
mod neck;

use self::hiera::Hiera;
use super::decoder::{Decoded, Decoder};
use crate::nets::error::at_most;
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

struct Sam2 {
    encoder: Hiera,
    decoder: Decoder,
    /// Channels of the pyramid.
    width: u64,
    mask_channels: u64,
    points: u64,
}

pub(super) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    for name in ["masks", "points", "d_layers", "iou_layers"] {
        at_most(name, sizes.or(name, 0), 1000)?;
    }
    Ok(Box::new(Sam2 {
        encoder: Hiera::new(sizes)?,
        decoder: Decoder::new(sizes, true)?,
        width: sizes.or("neck", 256),
        mask_channels: sizes.or("mask_channels", 16),
        points: sizes.or("points", 4).max(4),
    }))
}

impl Net for Sam2 {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let (side, mask) = (self.encoder.image, self.encoder.image / 4);
        let make = |name, shape: &[u64], dtype| cx.tape.empty(name, shape, dtype);
        vec![
            make("pixel_values", &[n, 3, side, side], cx.env.weights),
            make("input_boxes", &[n, 1, 4], cx.env.weights),
            make("masks", &[n, 1, mask, mask], DType::F32),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, boxes, target] = batch else {
            return Output::empty(cx);
        };
        let n = image.size(0);
        let positions = self.image_wide_positions(cx, image).tiled(n);
        let maps = cx.module("vision_encoder", |cx| {
            let stages = cx.module("backbone", |cx| self.encoder.stages(cx, image));
            cx.module("neck", |cx| neck::pyramid(cx, &stages, self.width))
        });
        let [finest, finer, coarse] = &maps.features;
        let decoder_width = self.decoder.hidden;
        let [finest, finer] = cx.module("mask_decoder", |cx| {
            [("conv_s0", finest, 8), ("conv_s1", finer, 4)].map(|(name, map, part)| {
                cx.conv2d(name, map, decoder_width / part, 1, Conv::default(), true)
            })
        });
        let coarse = {
            let none = cx.param("no_memory_embedding", [1, 1, self.width]).tensor();
            let (h, w) = (coarse.size(2), coarse.size(3));
            let rows = coarse
                .reshape(&[n, self.width, h * w])
                .permute(&[2, 0, 1])
                .add(&none);
            rows.permute(&[1, 2, 0]).view(&[n, self.width, h, w])
        };
        let prompt = cx.module("prompt_encoder", |cx| self.prompt(cx, boxes));
        let (h, w) = (coarse.size(2), coarse.size(3));
        let dense = prompt
            .no_mask
            .reshape(&[1, self.width, 1, 1])
            .expand(&[n, self.width, h, w]);
        let Decoded { mask, scores } = cx.module("mask_decoder", |cx| {
            let image = [&coarse, &positions];
            self.decoder
                .decode(cx, image, &prompt.corners, &dense, Some([&finest, &finer]))
        });
        drop((maps, positions, dense, prompt));
        let mut held = vec![finest, finer, coarse, mask.clone()];
        held.extend(scores);
        let loss = cx.module("loss", |_| mask.squeeze(1).bce_with_logits(target));
        Output { loss, held }
    }
}

/// A box as two points and one that is none, and what stands for a mask that is absent.
struct Prompt {
    corners: Tensor,
    no_mask: Tensor,
}

impl Sam2 {
    /// `Sam2PositionalEmbedding.forward` of a buffer of random numbers.
    fn positional(&self, cx: &Cx, name: &'static str, coordinates: &Tensor) -> Tensor {
        cx.module(name, |cx| {
            let random = cx.buffer("positional_embedding", [2, self.width / 2], cx.env.weights);
            let mut shape = coordinates.shape().to_vec();
            if let Some(last) = shape.last_mut() {
                *last = self.width / 2;
            }
            let angles = random.constant("matmul", &shape, random.dtype());
            let turned = angles.constant("mul", &shape, random.dtype());
            drop(angles);
            let parts = [(); 2].map(|()| turned.constant("sin", &shape, random.dtype()));
            let [sin, cos] = &parts;
            Tensor::cat(sin, &[cos], -1)
        })
    }

    fn image_wide_positions(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let side = self.encoder.image / 16;
        let grid = image.constant("stack", &[side, side, 2], cx.env.weights);
        let all = self.positional(cx, "shared_image_embedding", &grid);
        all.permute(&[2, 0, 1]).unsqueeze(0)
    }

    /// `Sam2PromptEncoder.forward` of boxes.
    fn prompt(&self, cx: &Cx, boxes: &Tensor) -> Prompt {
        let width = self.width;
        let table = |name: &'static str, rows| {
            cx.module(name, |cx| cx.param("weight", [rows, width]).tensor())
        };
        cx.module("mask_embed", |cx| {
            let (first, channels) = (self.mask_channels / 4, self.mask_channels);
            let pair = |name: &'static str, shape: &[u64], out: u64| {
                cx.module(name, |cx| {
                    cx.param("weight", shape);
                    cx.param("bias", [out]);
                });
            };
            pair("conv1", &[first, 1, 2, 2], first);
            pair("conv2", &[channels, first, 2, 2], channels);
            pair("conv3", &[width, channels, 1, 1], width);
            pair("layer_norm1", &[first], first);
            pair("layer_norm2", &[channels], channels);
        });
        let no_mask = table("no_mask_embed", 1);
        let points = table("point_embed", self.points);
        let none = table("not_a_point_embed", 1);
        let count = boxes.size(1);
        let corners = boxes.constant("pad", &[boxes.size(0), count, 3, 2], boxes.dtype());
        let embedded = self.positional(cx, "shared_embedding", &corners);
        let embedded = embedded.add(&points.narrow(0, 1));
        let corners = embedded.add(&none);
        Prompt { corners, no_mask }
    }
}
