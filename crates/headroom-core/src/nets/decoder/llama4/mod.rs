//! Llama 4: tiles of pictures through a ViT, whose patches are joined by squares, and a mixture of experts
//! (transformers/models/llama4/modeling_llama4.py).

mod moe;
mod tower;

use super::super::{Cx, LanguageModel, ModelError, Net, Output, Sizes};
use super::Decoder;
use super::family::Family;
use super::pictures::Pictures;
use super::reading::{self, Reads, States};
use crate::tape::Tensor;
use headroom_scenario::Data;
use tower::Tower;

#[derive(Debug)]
struct Llama4 {
    tower: Tower,
    text: Decoder,
    pictures: Pictures,
}

pub(super) fn build(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Llama4 {
        tower: Tower::new(sizes)?,
        text: Decoder::new(sizes, family)?,
        pictures: Pictures::default(),
    }))
}

impl Net for Llama4 {
    /// Pictures and what goes with them are between the labels and the mask.
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        reading::batch(self, cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        reading::forward(self, cx, batch)
    }

    fn language_model(&self) -> Option<&dyn LanguageModel> {
        Some(self)
    }
}

impl Reads for Llama4 {
    fn text(&self) -> &Decoder {
        &self.text
    }

    /// Each picture is one tile; its tokens are part of the sequence.
    fn pictures(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let pictures = data.pictures([self.tower.side(); 2]);
        self.pictures.keep(&pictures);
        let count = data.micro_batch.saturating_mul(pictures.len() as u64);
        let side = self.tower.image;
        let shape = [count, 3, side, side];
        vec![cx.tape.empty("pixel_values", shape, cx.env.weights)]
    }

    fn states(&self, cx: &Cx, batch: &[Tensor], cache: &super::Cache) -> Option<States> {
        let [ids, _labels, pixels, ..] = batch else {
            return None;
        };
        let see = |cx: &Cx| {
            let states = cx.module("vision_model", |cx| self.tower.states(cx, pixels));
            let rows = states.reshape(&[states.size(0) * states.size(1), states.size(2)]);
            let features = cx.module("multi_modal_projector", |cx| {
                cx.linear("linear_1", &rows, self.text.hidden, false)
            });
            (vec![states], features)
        };
        let sees = !self.pictures.are_none() || cx.tape.declaring();
        let see = sees.then_some(&see as &dyn Fn(&Cx) -> (Vec<Tensor>, Tensor));
        let (hidden, features) = self.text.with_features(cx, ids, batch.get(3), cache, see);
        Some(States::of(hidden, features))
    }
}
