//! A network from an image to class logits, with its loss.

use super::super::{Cx, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// A network from an image to class logits.
pub(super) trait ImageModel {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor;
}

/// A classifier with its loss.
struct Classifier {
    image: u64,
    classes: u64,
    model: Box<dyn ImageModel>,
}

pub(super) fn classifier(sizes: &Sizes, model: impl ImageModel + 'static) -> Box<dyn Net> {
    Box::new(Classifier {
        image: sizes.or("img", 224),
        classes: sizes.or("classes", 1000),
        model: Box::new(model),
    })
}

impl Net for Classifier {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let shape = [data.micro_batch, 3, self.image, self.image];
        let mut image = cx.tape.empty("image", shape, cx.env.weights);
        if cx.env.training.channels_last {
            image = image.to_channels_last();
        }
        let labels = cx.tape.empty("labels", [data.micro_batch], DType::I64);
        vec![image, labels]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, labels] = batch else {
            return Output::empty(cx);
        };
        let logits = self.model.logits(cx, image, self.classes);
        let loss = cx.module("loss", |_| logits.cross_entropy(labels));
        Output {
            loss,
            held: vec![logits],
        }
    }
}
