//! Language models that hear: a tower of sounds, a projector, and a decoder whose tokens have places for what they make of it
//! (transformers/models/{qwen2_audio,voxtral,qwen3_asr}/modeling_*.py). Frames of sound are `data.audio_frames`; the sequence has
//! the places in it.

mod layer;
pub(super) mod pieces;
mod windows;

use std::cell::Cell;

use super::super::{Cx, LanguageModel, ModelError, Net, Output, Sizes, masks};
use super::family::Family;
use super::reading::{self, Reads, States};
use super::{Cache, Decoder, cache};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::{Data, LossKernel};

/// Thirty seconds, where the run says no length.
pub(super) const FRAMES: u64 = 3000;

#[derive(Debug)]
struct Hearing {
    tower: Tower,
    text: Decoder,
    /// Frames of sound in each sample of the batch made last.
    frames: Cell<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Tower {
    Qwen2Audio(windows::Tower),
    Voxtral(windows::Tower),
    Qwen3Asr(pieces::Tower),
}

pub(super) fn qwen2_audio(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    build(
        sizes,
        family,
        Tower::Qwen2Audio(windows::Tower::new(sizes, true)?),
    )
}

pub(super) fn voxtral(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    build(
        sizes,
        family,
        Tower::Voxtral(windows::Tower::new(sizes, false)?),
    )
}

pub(super) fn qwen3_asr(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    let tower = pieces::Tower::convolved(sizes, 0)?;
    build(sizes, family, Tower::Qwen3Asr(tower))
}

fn build(sizes: &Sizes, family: Family, tower: Tower) -> Result<Box<dyn Net>, ModelError> {
    let mut text = Decoder::new(sizes, family)?;
    // The classes of Qwen2-Audio and Voxtral tie nothing, whatever the text's configuration says.
    text.tied &= matches!(tower, Tower::Qwen3Asr(_));
    Ok(Box::new(Hearing {
        tower,
        text,
        frames: Cell::new(FRAMES),
    }))
}

impl Net for Hearing {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        reading::batch(self, cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        match self.tower {
            Tower::Qwen2Audio(_) if cx.env.training.loss == LossKernel::Library => {
                self.masked_output(cx, batch)
            }
            _ => reading::forward(self, cx, batch),
        }
    }

    fn language_model(&self) -> Option<&dyn LanguageModel> {
        Some(self)
    }
}

impl Reads for Hearing {
    fn text(&self) -> &Decoder {
        &self.text
    }

    /// The sounds of the samples, one each; longer ones than a window are several.
    fn pictures(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let whole = match self.tower {
            Tower::Qwen2Audio(tower) | Tower::Voxtral(tower) => tower.frames(),
            Tower::Qwen3Asr(_) => FRAMES,
        };
        let frames = if data.audio_frames == 0 {
            whole
        } else {
            data.audio_frames
        };
        self.frames.set(frames);
        let windows = n.saturating_mul(frames.div_ceil(whole));
        match self.tower {
            Tower::Qwen2Audio(tower) => vec![
                tower.features(cx, windows),
                windows::frame_mask(cx, windows, tower.frames()),
                cx.tape
                    .empty("attention_mask", [n, data.sequence], DType::I64),
            ],
            Tower::Voxtral(tower) => vec![tower.features(cx, windows)],
            Tower::Qwen3Asr(tower) => {
                let padded = tower.padded(frames);
                vec![
                    tower.features(cx, n, padded),
                    windows::frame_mask(cx, n, padded),
                ]
            }
        }
    }

    fn states(&self, cx: &Cx, batch: &[Tensor], cache: &Cache) -> Option<States> {
        let own = match self.tower {
            Tower::Qwen2Audio(_) => 3,
            Tower::Qwen3Asr(_) => 2,
            Tower::Voxtral(_) => 1,
        };
        let (ids, features, padding) = (batch.first()?, batch.get(2)?, batch.get(2 + own));
        let (hidden, heard) = cx.module("model", |cx| {
            self.model(cx, [ids, features], padding, cache)
        });
        Some(States::of(hidden, Some(heard)))
    }
}

impl Hearing {
    fn model(
        &self,
        cx: &Cx,
        [ids, features]: [&Tensor; 2],
        padding: Option<&Tensor>,
        cache: &Cache,
    ) -> (Tensor, Tensor) {
        let before = cx.tape.construction_point();
        let mut embeddings = cx.module("language_model", |cx| self.text.embeddings(cx, ids));
        let after = cx.tape.construction_point();
        let Heard {
            features: heard,
            places,
            names,
        } = match self.tower {
            Tower::Qwen2Audio(tower) => self.of_masked_windows(cx, tower, ids, features),
            Tower::Voxtral(tower) => self.of_windows(cx, tower, [ids, &embeddings], features),
            Tower::Qwen3Asr(tower) => self.of_chunks(cx, tower, [ids, &embeddings], features),
        };
        cx.tape.construct_here(before, after);
        embeddings = {
            let features = heard.to(embeddings.dtype());
            embeddings.masked_scatter(&places, &features)
        };
        let hidden = cx.module("language_model", |cx| {
            self.text
                .padded(cx, embeddings.clone(), ids, padding, cache)
        });
        drop((places, names));
        (hidden, heard)
    }

    /// Of Qwen2-Audio: what is no sound in a window is masked, and has no place among the tokens.
    fn of_masked_windows(
        &self,
        cx: &Cx,
        tower: windows::Tower,
        ids: &Tensor,
        features: &Tensor,
    ) -> Heard {
        let (windows, places) = (features.size(0), tower.places());
        let shape = [windows, places];
        let lengths = [(); 2].map(|()| features.constant("lengths", &[windows], DType::I64));
        let beyond = features.constant("ge", &shape, DType::Bool);
        let visible = features.constant("to", &shape, DType::I64);
        let stand_in = features.constant("zeros", &[windows, places, 1], features.dtype());
        let all = windows.saturating_mul(tower.frames());
        let sound = (ids.size(0).saturating_mul(self.frames.get())).min(all);
        let mask = if sound == all {
            let padding = visible.constant("to", &shape, DType::Bool);
            drop(padding.constant("all", &[0; 0], DType::Bool));
            AttentionMask::None
        } else {
            masks::bidirectional_mask(cx, places, Some(&visible), features.dtype())
        };
        let last = cx.module("audio_tower", |cx| tower.hear(cx, features, &mask));
        let projected = cx.module("multi_modal_projector", |cx| {
            cx.linear("linear", &last, self.text.hidden, true)
        });
        let tokens = ids.constant("eq", ids.shape(), DType::Bool);
        drop(ids.constant("bitwise_and", ids.shape(), DType::Bool));
        let of_sound = projected.constant("lt", &[windows, projected.size(1)], DType::Bool);
        // Each sound's places are halved twice, rounded as the convolution and the pool round them.
        let kept = (sound / windows.max(1)).div_ceil(2).saturating_sub(2) / 2 + 1;
        let heard = projected.rows_where(&of_sound, kept.saturating_mul(windows));
        drop(projected);
        let places = ids.constant("eq", ids.shape(), DType::Bool).unsqueeze(-1);
        let mut names = vec![beyond, visible, stand_in, last, tokens, of_sound];
        names.extend(lengths);
        if let AttentionMask::Given(mask) = mask {
            names.push(mask);
        }
        Heard {
            features: heard,
            places,
            names,
        }
    }

    /// Of Voxtral: rows of several tokens of the tower become one of the text.
    fn of_windows(
        &self,
        cx: &Cx,
        tower: windows::Tower,
        [ids, embeddings]: [&Tensor; 2],
        features: &Tensor,
    ) -> Heard {
        let last = cx.module("audio_tower", |cx| {
            tower.hear(cx, features, &AttentionMask::None)
        });
        let width = tower.ffn().max(1);
        let rows = last.reshape(&[last.numel() / width, width]);
        drop(last);
        let heard = cx.module("multi_modal_projector", |cx| {
            let mut x = cx.linear("linear_1", &rows, self.text.hidden, false);
            drop(rows);
            x = x.gelu();
            cx.linear("linear_2", &x, self.text.hidden, false)
        });
        let places = read_places(ids, embeddings, &heard);
        Heard {
            features: heard,
            places,
            names: Vec::new(),
        }
    }

    /// Of Qwen3-ASR: sounds are padded to whole chunks.
    fn of_chunks(
        &self,
        cx: &Cx,
        tower: pieces::Tower,
        [ids, embeddings]: [&Tensor; 2],
        features: &Tensor,
    ) -> Heard {
        let (sounds, mel) = (features.size(0), features.size(1));
        let chunks = {
            let chunk = tower.padded(1);
            let count = sounds.saturating_mul(features.size(2) / chunk);
            features.constant("reshape", &[count, mel, chunk], features.dtype())
        };
        let last = cx.module("audio_tower", |cx| {
            tower.hear(cx, &chunks, [sounds, self.frames.get()])
        });
        drop(chunks);
        let heard = cx.module("multi_modal_projector", |cx| {
            let mut x = cx.linear("linear_1", &last, tower.hidden(), true);
            drop(last);
            x = x.gelu();
            cx.linear("linear_2", &x, self.text.hidden, true)
        });
        let places = read_places(ids, embeddings, &heard);
        Heard {
            features: heard,
            places,
            names: Vec::new(),
        }
    }

    /// `Qwen2AudioForConditionalGeneration.forward` from the last hidden states on: the logits that the mask leaves are read
    /// before the loss, which casts nothing up.
    fn masked_output(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let cache = cache(cx);
        let (Some(labels), Some(states)) = (batch.get(1), self.states(cx, batch, &cache)) else {
            return Output::empty(cx);
        };
        let logits = self.text.logits(cx, &states.hidden);
        let (n, s) = (labels.size(0), labels.size(1).saturating_sub(1));
        let count = n.saturating_mul(s);
        let loss = cx.module("loss", |_| {
            let visible = labels.constant("ne", &[n, s], DType::Bool);
            let rows = logits.narrow(1, s).rows_where(&visible, count);
            drop(visible);
            let targets = labels.constant("index", &[count], DType::I64);
            rows.cross_entropy(&targets)
        });
        let mut held = vec![logits, states.hidden];
        held.extend(cache.map(|cache| cache.take()).unwrap_or_default());
        Output { loss, held }
    }
}

/// What a tower and its projector make of sounds, the places that it takes, and the names of the forward pass that live on.
struct Heard {
    features: Tensor,
    places: Tensor,
    names: Vec<Tensor>,
}

/// `get_placeholder_mask` of Voxtral: reads the numbers in the places of sound, only to count them.
fn read_places(ids: &Tensor, embeddings: &Tensor, heard: &Tensor) -> Tensor {
    let mask = ids.constant("eq", ids.shape(), DType::Bool);
    let count = ids.constant("sum", &[0; 0], DType::I64);
    ids.tape()
        .workspace("sum", ids.numel() * DType::I64.bytes());
    let found = heard.numel();
    let indices = {
        let whole = mask.constant("nonzero", embeddings.shape(), DType::Bool);
        let indices = mask.constant("nonzero", &[found, 3], DType::I64);
        drop(whole);
        indices
    };
    let numbers = embeddings.constant("index", &[found], embeddings.dtype());
    drop((count, indices, numbers));
    mask.unsqueeze(-1)
}
