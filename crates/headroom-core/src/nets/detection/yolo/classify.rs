//! Classification of whole pictures (ultralytics/cfg/models/{v8,11,26}/*-cls.yaml): the backbone without its pooling, and a linear layer.

use super::{Generation, Yolo, build as sized};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

struct Classifier(Yolo);

pub(super) fn build(sizes: &Sizes, generation: Generation) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Classifier(sized(sizes, generation, 224)?)))
}

impl Net for Classifier {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let pictures = self.0.pictures;
        let pixels = [data.micro_batch, 3, pictures.height, pictures.width];
        vec![
            cx.tape.empty("img", pixels, cx.env.weights),
            cx.tape.empty("cls", [data.micro_batch], DType::I64),
        ]
    }

    fn loads_batches_in_turn(&self) -> bool {
        true
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, labels] = batch else {
            return Output::empty(cx);
        };
        let scores = cx.module("model", |cx| self.0.classified(cx, image));
        Output {
            loss: cx.module("loss", |_| scores.cross_entropy(labels)),
            held: Vec::new(),
        }
    }
}
