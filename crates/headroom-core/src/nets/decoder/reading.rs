//! Models that read pictures, in the parts that are alike: a batch with pictures, the states of the text, and its head; trainers
//! after pre-training call the same states.

use super::super::language_model::{LanguageModel, TokenMask};
use super::super::{Cx, Output, inputs};
use super::{Cache, Decoder, KvCache, cache};
use crate::tape::Tensor;
use headroom_scenario::Data;

/// A model that reads pictures in the places of their tokens.
pub(super) trait Reads {
    fn text(&self) -> &Decoder;
    /// The tensors of a batch's pictures, which are remembered for the forward pass.
    fn pictures(&self, cx: &Cx, data: &Data) -> Vec<Tensor>;
    /// The text's last hidden states, of a batch of ids, labels, pictures and perhaps a mask; `None` if it lacks some.
    fn states(&self, cx: &Cx, batch: &[Tensor], cache: &Cache) -> Option<States>;
}

pub(super) struct States {
    pub(super) hidden: Tensor,
    /// What the model's output holds of its pictures.
    features: Option<Tensor>,
}

impl States {
    pub(super) fn of(hidden: Tensor, features: Option<Tensor>) -> Self {
        Self { hidden, features }
    }
}

pub(super) fn batch(model: &impl Reads, cx: &Cx, data: &Data) -> Vec<Tensor> {
    let mut all = inputs::token_ids_and_labels(cx, data);
    let pictures = model.pictures(cx, data);
    all.splice(2..2, pictures);
    all
}

pub(super) fn forward(model: &impl Reads, cx: &Cx, batch: &[Tensor]) -> Output {
    let cache = cache(cx);
    let (Some(labels), Some(states)) = (batch.get(1), model.states(cx, batch, &cache)) else {
        return Output::empty(cx);
    };
    let States { hidden, features } = states;
    model
        .text()
        .output_with(cx, &hidden, labels, cache, features)
}

impl<T: Reads> LanguageModel for T {
    /// Where the task shows pictures of so many rows; the tokens that are sampled after them have none.
    fn hidden(&self, cx: &Cx, ids: &Tensor, mask: TokenMask, cache: Option<&KvCache>) -> Tensor {
        let shown = cx.env.shared.pictures.borrow().clone();
        let shown = shown.filter(|shown| shown.rows == ids.size(0) && ids.size(1) > 1);
        let Some(shown) = shown else {
            return self.text().hidden(cx, ids, mask, cache);
        };
        let mut batch = vec![ids.clone(), ids.clone()];
        batch.extend(shown.tensors);
        if let TokenMask::Padded(padding) = mask {
            batch.push(padding.clone());
        }
        match self.states(cx, &batch, &cache.cloned()) {
            Some(states) => states.hidden,
            None => self.text().hidden(cx, ids, mask, cache),
        }
    }

    fn logits(&self, cx: &Cx, hidden: &Tensor) -> Tensor {
        self.text().logits(cx, hidden)
    }

    fn head_weight(&self, cx: &Cx) -> Tensor {
        LanguageModel::head_weight(self.text(), cx)
    }

    fn vocabulary(&self) -> u64 {
        self.text().vocabulary()
    }

    fn reads_pictures(&self) -> bool {
        true
    }

    fn pictures(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        Reads::pictures(self, cx, data)
    }
}
