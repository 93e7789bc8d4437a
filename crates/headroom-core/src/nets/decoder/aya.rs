//! Aya Vision: SigLIP's tower, squares of its patches by a gated projector, and a Cohere
//! (transformers/models/aya_vision/modeling_aya_vision.py).

use super::super::siglip::VisionModel;
use super::super::{Cx, LanguageModel, ModelError, Net, Output, Sizes};
use super::Decoder;
use super::family::Family;
use super::pictures::Pictures;
use super::reading::{self, Reads, States};
use crate::tape::Tensor;
use headroom_scenario::Data;

#[derive(Debug)]
struct AyaVision {
    vision: VisionModel,
    text: Decoder,
    /// `downsample_factor`: patches along the side of a square that becomes one token.
    square: u64,
    /// `alignment_intermediate_size`.
    inner: u64,
    pictures: Pictures,
}

pub(super) fn build(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    let text = Decoder::new(sizes, family)?;
    Ok(Box::new(AyaVision {
        vision: VisionModel::new(sizes)?,
        square: sizes.or("merge", 2).max(1),
        inner: sizes.or("aligned", text.hidden),
        text,
        pictures: Pictures::default(),
    }))
}

impl Net for AyaVision {
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

impl Reads for AyaVision {
    fn text(&self) -> &Decoder {
        &self.text
    }

    /// Pictures are scaled to the tower's size; their tokens are part of the sequence.
    fn pictures(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let pictures = data.pictures([self.vision.side(); 2]);
        self.pictures.keep(&pictures);
        let count = data.micro_batch.saturating_mul(pictures.len() as u64);
        vec![self.vision.pixels(cx, count)]
    }

    fn states(&self, cx: &Cx, batch: &[Tensor], cache: &super::Cache) -> Option<States> {
        let [ids, _labels, pixels, ..] = batch else {
            return None;
        };
        let see = |cx: &Cx| {
            let tower = |cx: &Cx| self.vision.last_states(cx, pixels);
            let [read, last] = cx.module("vision_tower", tower);
            let features = cx.module("multi_modal_projector", |cx| self.projected(cx, &read));
            (vec![read, last], features)
        };
        let sees = !self.pictures.are_none() || cx.tape.declaring();
        let see = sees.then_some(&see as &dyn Fn(&Cx) -> (Vec<Tensor>, Tensor));
        let run = |cx: &Cx| (self.text).with_features(cx, ids, batch.get(3), cache, see);
        let (hidden, features) = cx.module("model", run);
        Some(States::of(hidden, features))
    }
}

impl AyaVision {
    /// `AyaVisionMultiModalProjector.forward`.
    fn projected(&self, cx: &Cx, states: &Tensor) -> Tensor {
        let (n, side, square) = (states.size(0), self.vision.side(), self.square);
        let (width, tokens) = (states.size(-1), side / square);
        let rows = [n, side, tokens, width * square];
        let mut x = states
            .narrow(1, tokens * square * side)
            .reshape(&[n, tokens * square, side, width])
            .narrow(2, tokens * square)
            .reshape(&[rows[0], tokens * square, tokens, rows[3]])
            .permute(&[0, 2, 1, 3]);
        x = x.reshape(&[n, tokens, tokens, width * square * square]);
        x = x.permute(&[0, 2, 1, 3]);
        x = cx.layer_norm("layernorm", &x);
        let both = cx.linear("linear_1", &x, self.inner, true);
        let mut halves = both.chunk(2, -1);
        let (Some(gate), Some(up)) = (halves.pop(), halves.pop()) else {
            return x;
        };
        let product = gate.silu().pipe(|gate| gate.mul(&up));
        let out = cx.linear("linear_2", &product, self.text.hidden, true);
        out.reshape(&[n, tokens * tokens, self.text.hidden])
    }
}
