//! Segment Anything: an image's features, a prompt and the masks both lead to (transformers/models/sam/modeling_sam.py).
//! A sample is an image with a box, one mask is requested, and the loss is binary cross-entropy with it.

mod decoder;
mod prompt;
mod second;
pub(super) mod vision;

use super::error::at_most;
use super::vision::TinyVit;
use super::{Build, Cx, ModelError, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use decoder::{Decoded, Decoder};
use headroom_scenario::Data;
use vision::Encoder;

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("sam", |sizes| {
        build(sizes, ImageEncoder::Vit(Encoder::new(sizes)?))
    }),
    ("sam2", second::build),
    ("tinysam", |sizes| {
        build(sizes, ImageEncoder::Tiny(TinyVit::new(sizes)?))
    }),
];

/// The image encoder: a ViT, or TinyViT as in TinySAM and MobileSAM.
enum ImageEncoder {
    Vit(Encoder),
    Tiny(TinyVit),
}

impl ImageEncoder {
    /// Side of the image, and of the grid of its features.
    fn sides(&self) -> [u64; 2] {
        match self {
            Self::Vit(vit) => [vit.image, vit.side()],
            Self::Tiny(tiny) => [tiny.image, tiny.image / 16],
        }
    }

    fn encode(&self, cx: &Cx, image: &Tensor) -> Tensor {
        match self {
            Self::Vit(vit) => vit.encode(cx, image),
            Self::Tiny(tiny) => tiny.encode(cx, image),
        }
    }
}

struct Sam {
    encoder: ImageEncoder,
    decoder: Decoder,
    /// Channels between a mask prompt and the features (`mask_input_channels`).
    mask_channels: u64,
    /// Point embeddings of the prompt encoder (`num_point_embeddings`).
    points: u64,
}

fn build(sizes: &Sizes, encoder: ImageEncoder) -> Result<Box<dyn Net>, ModelError> {
    for name in ["masks", "points", "d_layers", "iou_layers"] {
        at_most(name, sizes.or(name, 0), 1000)?;
    }
    Ok(Box::new(Sam {
        encoder,
        decoder: Decoder::new(sizes, false)?,
        mask_channels: sizes.or("mask_channels", 16),
        points: sizes.or("points", 4),
    }))
}

impl Net for Sam {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let [side, grid] = self.encoder.sides();
        let mask = 4 * grid;
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
        let Decoded { mask, mut scores } = self.masks(cx, image, boxes);
        let loss = cx.module("loss", |_| mask.squeeze(1).bce_with_logits(target));
        scores.insert(0, mask);
        Output { loss, held: scores }
    }
}

impl Sam {
    fn masks(&self, cx: &Cx, image: &Tensor, boxes: &Tensor) -> Decoded {
        let width = self.decoder.hidden;
        let [_, grid] = self.encoder.sides();
        let positions = prompt::image_wide_positions(cx, image, grid, width).tiled(image.size(0));
        let features = cx.module("vision_encoder", |cx| self.encoder.encode(cx, image));
        let corners = prompt::embed_boxes(cx, boxes, width);
        let embeddings = cx.module("prompt_encoder", |cx| {
            prompt::embeddings(cx, [self.mask_channels, self.points], width)
        });
        let corners = prompt::add_point_embeddings(&corners, &embeddings.corners);
        let dense = embeddings
            .no_mask
            .reshape(&[1, width, 1, 1])
            .expand(features.shape());
        cx.module("mask_decoder", |cx| {
            self.decoder
                .decode(cx, [&features, &positions], &corners, &dense, None)
        })
    }
}
