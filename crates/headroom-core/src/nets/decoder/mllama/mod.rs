//! Llama 3.2 Vision: a Llama some of whose layers attend to pictures instead of tokens
//! (transformers/models/mllama/modeling_mllama.py).

mod cross;
mod tower;

use super::super::{Cx, ModelError, Net, Output, Sizes, inputs};
use super::families::llama::INSIDE;
use super::layer_set::LayerSet;
use super::pictures::mask_of_ones;
use super::{Decoder, LayerInputs, cache};
use crate::tape::{DType, Tensor};
use cross::Cross;
use headroom_scenario::Data;
use std::cell::Cell;
use tower::Tower;

#[derive(Debug)]
struct Mllama {
    tower: Tower,
    text: Decoder,
    /// The layers that attend to pictures, of those that there are.
    cross_layers: Vec<u64>,
    /// The pictures of a sample.
    pictures: Cell<u64>,
}

pub(super) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Mllama {
        tower: Tower::new(sizes)?,
        text: Decoder::new(sizes, INSIDE)?,
        cross_layers: LayerSet::list(sizes, "cross_layers", sizes.need("layers")?)?,
        pictures: Cell::default(),
    }))
}

/// Rows of the table of embeddings beyond the vocabulary, for the token of a picture.
const SPECIAL: u64 = 8;

impl Net for Mllama {
    /// Every picture has as many tiles as there may be; those it does not fill are empty.
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let (n, images) = (data.micro_batch, data.images);
        self.pictures.set(images);
        let Tower { image, tiles, .. } = self.tower;
        let make = |name, shape: &[u64], dtype| cx.tape.empty(name, shape, dtype);
        let mut all = inputs::token_ids_and_labels(cx, data);
        let pixels = [n, images, tiles, 3, image, image];
        let pictures = [
            make("pixel_values", &pixels, cx.env.weights),
            make("aspect_ratio_ids", &[n, images], DType::I64),
            make("aspect_ratio_mask", &[n, images, tiles], DType::I64),
            make(
                "cross_attention_mask",
                &[n, data.sequence, images, tiles],
                DType::I64,
            ),
            mask_of_ones(cx, data),
        ];
        all.splice(2..2, pictures);
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, pixels, ratios, _tiles, looks, _mask, ..] = batch else {
            return Output::empty(cx);
        };
        let cache = cache(cx);
        let run = |cx: &Cx| self.model(cx, [ids, pixels, ratios, looks], batch.get(7), &cache);
        let hidden = cx.module("model", run);
        self.text.output(cx, &hidden, labels, cache)
    }
}

impl Mllama {
    fn model(
        &self,
        cx: &Cx,
        [ids, pixels, ratios, looks]: [&Tensor; 4],
        padding: Option<&Tensor>,
        cache: &super::Cache,
    ) -> Tensor {
        let has_pictures = self.pictures.get() > 0 || cx.tape.declaring();
        let seen = has_pictures.then(|| {
            let tower = |cx: &Cx| self.tower.states(cx, pixels, ratios);
            let (states, _held) = cx.module("vision_model", tower);
            let projected = cx.linear("multi_modal_projector", &states, self.text.hidden, true);
            let patches = self.tower.patches();
            let rows = projected.numel() / (patches * self.text.hidden).max(1);
            projected.reshape(&[rows, patches, self.text.hidden])
        });
        let cross = seen.map(|states| Cross::new(cx, states, looks, self.tower.patches()));
        cx.module("language_model", |cx| {
            self.text_model(cx, ids, padding, cross, cache)
        })
    }

    /// `MllamaTextModel.forward`.
    fn text_model(
        &self,
        cx: &Cx,
        ids: &Tensor,
        padding: Option<&Tensor>,
        cross: Option<Cross>,
        cache: &super::Cache,
    ) -> Tensor {
        let text = self.text;
        let table = Decoder {
            vocab: text.vocab + SPECIAL,
            ..text
        };
        let embeddings = table.embeddings(cx, ids);
        let positions = inputs::positions(ids);
        let [mask, _] = text.attention_masks(cx, ids, padding, embeddings.dtype());
        let rotary = text.rotary_tables(cx, &positions, embeddings.dtype());
        let layer = |state: Vec<Tensor>, i: usize| {
            if self.cross_layers.contains(&(i as u64)) {
                let Some(cross) = cross.clone() else {
                    return state;
                };
                return cx.layer("layers", i, state, move |cx, state| {
                    let run = |hidden| cross.layer(cx, &text, hidden);
                    state.iter().map(run).collect()
                });
            }
            let inputs = LayerInputs {
                attention_mask: mask.clone(),
                mixer: None,
                padding: None,
                rotary: rotary.first().cloned(),
                cache: cache.clone(),
                prefix: None,
                position_ids: Some(positions.clone()),
                position_bias: None,
            };
            cx.layer("layers", i, state, move |cx, state| {
                let run = |hidden| text.layer(cx, hidden, &inputs);
                state.iter().flat_map(run).collect()
            })
        };
        let state = vec![embeddings.clone()];
        let state = cx.periodic_layers(text.layers, self.period(), state, layer);
        let last = state.first().map(|hidden| text.final_norm(cx, hidden));
        drop((mask, rotary, positions));
        last.unwrap_or(embeddings)
    }

    /// After how many layers they repeat.
    fn period(&self) -> u64 {
        let cross = |i: u64| self.cross_layers.contains(&i);
        let layers = self.text.layers;
        let repeats = |period: &u64| (*period..layers).all(|i| cross(i) == cross(i - period));
        (1..layers).find(repeats).unwrap_or(layers).max(1)
    }
}
