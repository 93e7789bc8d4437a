//! LLaVA: a CLIP image tower, a projector and a Llama (transformers/models/llava/modeling_llava.py).

use super::super::clip::VisionModel;
use super::super::losses::{Entropy, causal_lm_loss};
use super::super::{Cx, LanguageModel, ModelError, Net, Output, Sizes};
use super::Decoder;
use super::families::llama::LLAMA;
use super::family::Family;
use super::reading::{self, Reads, States};
use crate::tape::{DType, Tensor};
use headroom_scenario::{Checkpointing, Data};

/// LLaVA: a CLIP image tower, a projector and a Llama.
#[derive(Clone, Copy, Debug)]
pub struct Llava {
    vision: VisionModel,
    text: Decoder,
    /// The width of image features, where they are read instead of computed.
    stored: Option<u64>,
}

pub(crate) fn build(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Llava::new(sizes, family)?))
}

impl Net for Llava {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        reading::batch(self, cx, data)
    }

    fn language_model(&self) -> Option<&dyn LanguageModel> {
        Some(self)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, pixels, ..] = batch else {
            return Output::empty(cx);
        };
        let (hidden, features) = cx.module("model", |cx| self.model(cx, ids, pixels, batch.get(3)));
        let logits = cx.linear("lm_head", &hidden, self.text.vocab, false);
        let [loss, logits] = cx.module("loss", |cx| {
            causal_lm_loss(cx, logits, labels, Entropy::Library)
        });
        Output {
            loss,
            held: vec![logits, features],
        }
    }
}

impl Reads for Llava {
    fn text(&self) -> &Decoder {
        &self.text
    }

    /// Pictures are scaled to the tower's size; their tokens are part of the sequence.
    fn pictures(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let count = data.micro_batch.saturating_mul(data.images.max(1));
        vec![self.pixels(cx, count)]
    }

    fn states(&self, cx: &Cx, batch: &[Tensor], _cache: &super::Cache) -> Option<States> {
        let [ids, _labels, pixels, ..] = batch else {
            return None;
        };
        let (hidden, features) = cx.module("model", |cx| self.model(cx, ids, pixels, batch.get(3)));
        Some(States::of(hidden, Some(features)))
    }
}

impl Llava {
    fn new(sizes: &Sizes, family: Family) -> Result<Self, ModelError> {
        Ok(Self {
            vision: VisionModel::new(sizes)?,
            stored: match sizes.or("encoders", 1) {
                0 => Some(sizes.need("v_hidden")?),
                _ => None,
            },
            text: Decoder::new(sizes, family)?,
        })
    }

    /// With a text model like Llama, for systems that build on it.
    pub fn like_llama(sizes: &Sizes) -> Result<Self, ModelError> {
        Self::new(sizes, LLAMA)
    }

    /// Images, or what the tower made of them.
    pub fn pixels(&self, cx: &Cx, count: u64) -> Tensor {
        match self.stored {
            Some(width) => {
                let shape = [count, self.vision.patches(), width];
                cx.tape.empty("image_features", shape, cx.env.weights)
            }
            None => self.vision.pixels(cx, count),
        }
    }

    /// `output_hidden_states=True`: the last hidden states, the logits of every place, and what each layer was given,
    /// which the model's output holds. A checkpointed layer's input is kept anyway.
    pub fn read(
        &self,
        cx: &Cx,
        ids: &Tensor,
        pixels: &Tensor,
        padding: Option<&Tensor>,
    ) -> [Tensor; 3] {
        let (hidden, _features) = cx.module("model", |cx| self.model(cx, ids, pixels, padding));
        let layers = match cx.checkpointing() {
            Checkpointing::None | Checkpointing::Offload => self.text.layers,
            _ => 0,
        };
        let shape = [&[layers], &hidden.shape()[..]].concat();
        let states = hidden.constant("hidden_states", &shape, hidden.dtype());
        let logits = cx.linear("lm_head", &hidden, self.text.vocab, false);
        [hidden, logits, states]
    }

    fn model(
        &self,
        cx: &Cx,
        ids: &Tensor,
        pixels: &Tensor,
        padding: Option<&Tensor>,
    ) -> (Tensor, Tensor) {
        let before = cx.tape.construction_point();
        let mut embeddings = cx.module("language_model", |cx| self.text.embeddings(cx, ids));
        let after = cx.tape.construction_point();
        let (projected, _states) = if self.stored.is_some() {
            let projected = cx.module("multi_modal_projector", |cx| self.project(cx, pixels));
            (projected, None)
        } else {
            let [read, last, pooled] =
                cx.module("vision_tower", |cx| self.vision.last_states(cx, pixels));
            let patches = read.narrow(1, read.size(1).saturating_sub(1));
            let projected = cx.module("multi_modal_projector", |cx| self.project(cx, &patches));
            drop(patches);
            // The projected features take the pooled output's place.
            drop(pooled);
            (projected, Some((read, last)))
        };
        cx.tape.construct_here(before, after);
        // A list of images, joined to one row of features.
        let count = projected.size(0) * projected.size(1);
        let joined = projected.cat_list().reshape(&[count, self.text.hidden]);
        let features = joined.to(embeddings.dtype());
        drop(joined);
        let mask = ids.constant("eq", ids.shape(), DType::Bool).unsqueeze(-1);
        embeddings = embeddings.masked_scatter(&mask, &features);
        let hidden = cx.module("language_model", |cx| {
            self.text
                .padded(cx, embeddings.clone(), ids, padding, &None)
        });
        drop((mask, projected));
        (hidden, features)
    }

    fn project(&self, cx: &Cx, patches: &Tensor) -> Tensor {
        let mut hidden = cx.linear("linear_1", patches, self.text.hidden, true);
        hidden = hidden.gelu();
        cx.linear("linear_2", &hidden, self.text.hidden, true)
    }
}
