//! The thinkers of Qwen2.5-Omni and Qwen3-Omni, which are what trainers fine-tune: a tower of sounds, one of pictures, and a Qwen
//! whose tokens have places in three dimensions (transformers/models/{qwen2_5_omni,qwen3_omni_moe}/modeling_*.py).

use std::cell::Cell;

use super::super::{Cx, LanguageModel, ModelError, Net, Output, Sizes, inputs};
use super::family::Family;
use super::pictures::{self, Pictures};
use super::qwen_vision::{Kind, VisionTransformer};
use super::reading::{self, Reads, States};
use super::sound::{FRAMES, pieces};
use super::{Cache, Decoder, ModelInputs, qwen_vl};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Debug)]
struct Thinker {
    ear: pieces::Tower,
    eye: VisionTransformer,
    text: Decoder,
    /// Patches along the sides of each picture.
    pictures: Pictures,
    /// Frames of sound in each sample of the batch made last.
    frames: Cell<u64>,
}

pub(super) fn second_and_half(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    let text = Decoder::new(sizes, family)?;
    let ear = pieces::Tower::halved(sizes, text.hidden)?;
    let eye = VisionTransformer::new(sizes, text.hidden, Kind::windowed(sizes)?)?;
    Ok(build(text, ear, eye.with_products(["q", "k", "v", "proj"])))
}

pub(super) fn third(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    let text = Decoder::new(sizes, family)?;
    let sizes = sizes.with_defaults([("a_at_once", 500)]);
    let ear = pieces::Tower::convolved(&sizes, text.hidden)?;
    let eye = VisionTransformer::new(&sizes, text.hidden, Kind::stacked(&sizes)?)?;
    Ok(build(text, ear, eye))
}

fn build(text: Decoder, ear: pieces::Tower, eye: VisionTransformer) -> Box<dyn Net> {
    Box::new(Thinker {
        ear,
        eye,
        text,
        pictures: Pictures::default(),
        frames: Cell::new(0),
    })
}

impl Net for Thinker {
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

impl Reads for Thinker {
    fn text(&self) -> &Decoder {
        &self.text
    }

    /// The sound of each sample and its pictures, whose places are part of the sequence. Without pictures there is a sound.
    fn pictures(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let grids = self.eye.grids(data);
        let frames = match data.audio_frames {
            0 if grids.is_empty() => FRAMES,
            frames => frames,
        };
        self.pictures.keep(&grids);
        self.frames.set(frames);
        let images = n.saturating_mul(grids.len() as u64);
        vec![
            self.eye.pixels(cx, n, &grids),
            cx.tape.empty("image_grid_thw", [images, 3], DType::I64),
            self.ear.features(cx, n, frames),
            cx.tape
                .empty("feature_attention_mask", [n, frames], DType::I64),
        ]
    }

    fn states(&self, cx: &Cx, batch: &[Tensor], cache: &Cache) -> Option<States> {
        let [ids, _labels, pixels, _grid, features, _mask, ..] = batch else {
            return None;
        };
        let hidden = cx.module("model", |cx| {
            self.model(cx, [ids, pixels, features], batch.get(6), cache)
        });
        Some(States::of(hidden, None))
    }
}

impl Thinker {
    fn model(
        &self,
        cx: &Cx,
        [ids, pixels, features]: [&Tensor; 3],
        padding: Option<&Tensor>,
        cache: &Cache,
    ) -> Tensor {
        let before = cx.tape.construction_point();
        let mut embeddings = cx.module("language_model", |cx| self.text.embeddings(cx, ids));
        let after = cx.tape.construction_point();
        let heard = self.heard(cx, ids, features).inspect(|heard| {
            let [features, mask] = heard;
            embeddings = embeddings.masked_scatter(mask, features);
        });
        let seen = (!self.pictures.are_none() || cx.tape.declaring()).then(|| {
            let grids = self.pictures.of_batch(ids.size(0));
            cx.module("visual", |cx| self.eye.see(cx, pixels, &grids))
        });
        cx.tape.construct_here(before, after);
        let placed = seen.map(|seen| {
            let (placed, with_pictures) = qwen_vl::place(ids, seen, &embeddings);
            embeddings = with_pictures;
            placed
        });
        let stacked = placed.as_ref().and_then(qwen_vl::stacked);
        let positions = ids.constant("zeros", &[3, ids.size(0), ids.size(1)], DType::I64);
        // `self.rope_deltas` stays with the model.
        cx.buffer("rope_deltas", [ids.size(0), 1], DType::I64);
        let hidden = cx.module("language_model", |cx| {
            let rules = inputs::MaskRules {
                probed: false,
                always: false,
            };
            let mask = inputs::mask(cx, ids, padding, embeddings.dtype(), None, rules);
            let inputs = ModelInputs {
                padding_mask: None,
                attention_masks: Some([mask, AttentionMask::None]),
                position_ids: Some(positions.clone()),
                stacked,
            };
            self.text.run(cx, embeddings.clone(), ids, inputs, cache)
        });
        drop((heard, placed, positions));
        hidden
    }

    /// What the tower makes of the sounds, and the mask of their places.
    fn heard(&self, cx: &Cx, ids: &Tensor, features: &Tensor) -> Option<[Tensor; 2]> {
        let frames = match self.frames.get() {
            // The tower is part of the model, whatever the samples have.
            0 if cx.tape.declaring() => FRAMES,
            0 => return None,
            frames => frames,
        };
        let sounds = ids.size(0);
        let chunks = self.ear.chunked(features, frames);
        let heard = cx.module("audio_tower", |cx| {
            self.ear.hear(cx, &chunks, [sounds, frames])
        });
        let [mask, _] = pictures::placeholders(ids, true);
        Some([heard, mask])
    }
}
