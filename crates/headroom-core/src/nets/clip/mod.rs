//! CLIP: an image and a text encoder, and the contrastive loss between them (transformers/models/clip/modeling_clip.py).

mod text;
mod tower;
mod vision;

pub(super) use text::TextModel;
pub(super) use text::build as text_alone;
pub(super) use tower::{Tower, quick_gelu};
pub(super) use vision::VisionModel;

use super::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Clip {
    vision: VisionModel,
    text: TextModel,
    projection: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Clip {
        vision: VisionModel::new(sizes)?,
        text: TextModel::new(sizes, Tower::of_texts(sizes)?)?,
        projection: sizes.need("proj")?,
    }))
}

impl Net for Clip {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        vec![self.text.ids(cx, n), self.vision.pixels(cx, n)]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, image] = batch else {
            return Output::empty(cx);
        };
        let before = cx.tape.construction_point();
        let scale = cx.param("logit_scale", [0; 0]);
        let start = cx.tape.construction_point();
        let [vision_last, pooled] = cx.module("vision_model", |cx| self.vision.forward(cx, image));
        let image_features = cx.linear("visual_projection", &pooled, self.projection, false);
        drop(pooled);
        let after = cx.tape.construction_point();
        let [text_last, pooled] = cx.module("text_model", |cx| self.text.forward(cx, ids));
        // The constructor makes the text's model first, and the scale, which it lists first, last.
        cx.tape.construct_here(start, after);
        let text_features = cx.linear("text_projection", &pooled, self.projection, false);
        drop(pooled);
        cx.tape.allocate_before(before, start);
        let image_embeds = normalized(&image_features);
        let text_embeds = normalized(&text_features);
        let mut logits = text_embeds.linear(&image_embeds, None);
        logits = scale.tensor().exp().pipe(|scale| logits.mul(scale));
        let loss = cx.module("loss", |_| {
            let captions = contrastive_loss(&logits);
            let images = contrastive_loss(&logits.transpose(0, 1));
            captions.add(&images).pipe(Tensor::mul_scalar)
        });
        let held = vec![
            logits,
            text_embeds,
            image_embeds,
            text_last,
            text_features,
            vision_last,
            image_features,
        ];
        Output { loss, held }
    }
}

/// `x / _get_vector_norm(x)`.
pub(super) fn normalized(x: &Tensor) -> Tensor {
    let norm = {
        let squares = x.pow();
        let sum = squares.sum(&[-1]);
        sum.pow()
    };
    x.div(&norm)
}

/// `contrastive_loss`: each row's own index is its class.
fn contrastive_loss(logits: &Tensor) -> Tensor {
    let classes = logits.constant("arange", &[logits.size(0)], DType::I64);
    logits.cross_entropy(&classes)
}
