//! Mask2Former (transformers/models/mask2former/modeling_mask2former.py): a Swin's pyramid through deformable attention, and queries
//! that attend within the masks they have found. Pictures are square and have as many objects as `objects` says.

mod decoder;
mod loss;
mod pixels;

use super::Pictures;
use crate::nets::swin::Swin;
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Debug)]
struct Mask2Former {
    backbone: Swin,
    /// `feature_size`, which masks have too.
    hidden: u64,
    heads: u64,
    layers: u64,
    ffn: u64,
    /// One more than the decoder has layers: the queries are judged before the first.
    decoder_layers: u64,
    decoder_ffn: u64,
    queries: u64,
    classes: u64,
    /// `train_num_points`: places where masks are compared.
    points: u64,
    pictures: Pictures,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let pictures = Pictures::of(sizes, 384);
    Ok(Box::new(Mask2Former {
        backbone: Swin::backbone(sizes)?,
        hidden: sizes.need("hidden")?,
        heads: sizes.or("decoder_heads", 8).max(1),
        layers: sizes.or("layers", 6),
        ffn: sizes.or("ffn", 1024),
        decoder_layers: sizes.or("decoder_layers", 10).max(1),
        decoder_ffn: sizes.or("decoder_ffn", 2048),
        queries: sizes.or("queries", 100),
        classes: sizes.or("classes", 80),
        points: sizes.or("points", 12544),
        pictures,
    }))
}

impl Net for Mask2Former {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let side = self.pictures.height;
        let objects = data.micro_batch.saturating_mul(self.pictures.objects);
        vec![
            cx.tape.empty(
                "pixel_values",
                [data.micro_batch, 3, side, side],
                cx.env.weights,
            ),
            cx.tape
                .empty("mask_labels", [objects, side, side], cx.env.weights),
            cx.tape.empty("class_labels", [objects], DType::I64),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, masks, _classes] = batch else {
            return Output::empty(cx);
        };
        let (found, states, mut held) = cx.module("model", |cx| {
            let pixels = [image.size(0), image.size(2), image.size(3)];
            let pixel_mask = image.constant("ones", &pixels, DType::F32);
            let (maps, pixels) = cx.module("pixel_level_module", |cx| self.pixel_level(cx, image));
            let (found, states) = cx.module("transformer_module", |cx| {
                self.transformer(cx, &maps, &pixels)
            });
            drop(pixel_mask);
            let mut held = maps;
            held.push(pixels);
            (found, states, held)
        });
        let logits: Vec<Tensor> = states
            .iter()
            .map(|states| {
                let own = states.transpose(0, 1);
                cx.linear("class_predictor", &own, self.classes + 1, true)
            })
            .collect();
        let loss = cx.module("loss", |cx| self.loss(cx, &found, &logits, masks));
        held.extend(found);
        held.extend(logits);
        held.extend(states);
        Output { loss, held }
    }
}
