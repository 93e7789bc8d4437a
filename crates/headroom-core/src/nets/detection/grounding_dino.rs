//! Grounding DINO (transformers/models/grounding_dino/modeling_grounding_dino.py): a Swin's maps and BERT's words read each other, and
//! queries look for what is named. Pictures are square, with as many objects as `objects` says; the text has `tokens`.

mod decoder;
mod encoder;
mod loss;
mod proposals;

use super::deformable::Maps;
use super::{Pictures, joined};
use crate::nets::bert::{self, Bert};
use crate::nets::swin::Swin;
use crate::nets::vision::index_name;
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Debug)]
struct GroundingDino {
    backbone: Swin,
    text: Bert,
    hidden: u64,
    layers: u64,
    decoder_layers: u64,
    heads: u64,
    decoder_heads: u64,
    ffn: u64,
    decoder_ffn: u64,
    queries: u64,
    /// `max_text_len`: columns of the scores.
    columns: u64,
    /// Points of each map that a query looks at.
    points: u64,
    /// `decoder_n_points`.
    decoder_points: u64,
    tokens: u64,
    /// Stochastic depth of what maps and words read of each other (`fusion_droppath`).
    drops: bool,
    pictures: Pictures,
}

/// The first stage whose map is read.
const FIRST_STAGE: usize = 1;
const GROUPS: u64 = 32;

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let mut text = Sizes::from([("types", sizes.or("types", 2))]);
    for name in ["vocab", "ctx"] {
        text.set(name, sizes.need(name)?);
    }
    for name in ["layers", "hidden", "heads", "ffn"] {
        text.set(name, sizes.need(&format!("t_{name}"))?);
    }
    Ok(Box::new(GroundingDino {
        backbone: Swin::backbone(sizes)?,
        text: bert::tower(&text)?,
        hidden: sizes.need("hidden")?,
        layers: sizes.or("layers", 6),
        decoder_layers: sizes.or("decoder_layers", 6),
        heads: sizes.or("encoder_heads", 8).max(2),
        decoder_heads: sizes.or("decoder_heads", 8).max(1),
        ffn: sizes.or("ffn", 2048),
        decoder_ffn: sizes.or("decoder_ffn", 2048),
        queries: sizes.or("queries", 900),
        columns: sizes.or("text_len", 256),
        points: sizes.or("points", 4),
        decoder_points: sizes.or("decoder_points", 4),
        tokens: sizes.or("tokens", 10),
        drops: sizes.or("paths", 1) != 0,
        pictures: Pictures::of(sizes, 640),
    }))
}

impl Net for GroundingDino {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let mut all = self.pictures.batch(cx, data.micro_batch);
        let ids = [data.micro_batch, self.tokens];
        all.push(cx.tape.empty("input_ids", ids, DType::I64));
        all.push(cx.tape.empty("attention_mask", ids, DType::I64));
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, _labels, boxes, ids, mask] = batch else {
            return Output::empty(cx);
        };
        let words_seen = mask.constant("to", mask.shape(), DType::Bool);
        let found = cx.module("model", |cx| self.model(cx, image, [ids, &words_seen]));
        let (mut scores, mut places) = (Vec::new(), Vec::new());
        for _ in 0..self.decoder_layers {
            if cx.tape.is_over_budget() {
                break;
            }
            let own = found.states.select(1);
            scores.push(self.scores(&own, &found.words, &words_seen));
            // One head for all layers.
            let moved = self.box_head(cx, &own);
            let before = found
                .references
                .constant("logit", moved.shape(), moved.dtype());
            places.push(moved.add(&before).pipe(Tensor::sigmoid));
        }
        let stacked = |all: &[Tensor]| Tensor::stack(all, 0).unwrap_or_else(|| image.clone());
        let (all_scores, all_places) = (stacked(&scores), stacked(&places));
        let loss = cx.module("loss", |cx| {
            let last = [all_scores.select(0), all_places.select(0)];
            self.loss(cx, &last, &found.first, boxes)
        });
        drop((scores, places));
        let mut held = found.held;
        held.extend([all_scores, all_places, found.states, found.words]);
        held.extend(found.first);
        Output { loss, held }
    }
}

/// What the model without heads returns.
struct Found {
    /// Normed states behind each layer `[B, layers, Q, H]`.
    states: Tensor,
    references: Tensor,
    words: Tensor,
    /// Scores and boxes of the encoder's best places.
    first: [Tensor; 2],
    held: Vec<Tensor>,
}

impl GroundingDino {
    fn model(&self, cx: &Cx, image: &Tensor, [ids, seen]: [&Tensor; 2]) -> Found {
        let (n, hidden) = (image.size(0), self.hidden);
        let among = ids.constant("or", &[n, self.tokens, self.tokens], DType::Bool);
        let positions = ids.constant("clamp", ids.shape(), DType::I64);
        let text = cx.module("text_backbone", |cx| {
            self.text.model(cx, ids, &positions, Some(seen))
        });
        let words = cx.linear("text_projection", &text, hidden, true);
        let (height, width) = (image.size(2), image.size(3));
        let pixel_mask = image.constant("ones", &[n, height, width], DType::I64);
        let features = cx.module("backbone", |cx| {
            cx.module("conv_encoder", |cx| {
                cx.module("model", |cx| self.backbone.features(cx, image, FIRST_STAGE))
            })
        });
        let count = features.len();
        let levels: Vec<Tensor> = (0..=count)
            .filter_map(|i| {
                let map = features.get(i).or_else(|| features.last())?;
                Some(self.level(cx, i, map, i == count))
            })
            .collect();
        let places: Vec<Tensor> = levels.iter().map(sine_positions).collect();
        let grids: Vec<[u64; 2]> = levels
            .iter()
            .map(|map| [map.size(2), map.size(3)])
            .collect();
        let rows = |map: &Tensor| {
            map.reshape(&[n, hidden, map.size(2).saturating_mul(map.size(3))])
                .transpose(1, 2)
        };
        let embedded = cx
            .param("level_embed", [levels.len() as u64, hidden])
            .tensor();
        let flat = {
            let all: Vec<Tensor> = levels.iter().map(rows).collect();
            joined(&all, 1, image)
        };
        let placed = {
            let own = |map: &Tensor| rows(map).add(&embedded.select(0).view(&[1, 1, hidden]));
            let all: Vec<Tensor> = places.iter().map(own).collect();
            joined(&all, 1, image)
        };
        let mask = flat.constant("cat", &[n, flat.size(1), 1], DType::Bool);
        let maps = Maps {
            features: flat,
            grids,
            mask: Some(mask),
        };
        let [encoded, words] = cx.module("encoder", |cx| {
            self.encoder(cx, [&words, &among], &maps, &placed)
        });
        let maps = Maps {
            features: encoded,
            ..maps
        };
        let first = self.first_stage(cx, &maps, [&words, seen]);
        let [states, references] = cx.module("decoder", |cx| {
            self.decoder(cx, &first.target, &first.references, &words, &maps)
        });
        let mut held = first.held;
        held.push(maps.features.clone());
        drop((
            features, levels, places, placed, pixel_mask, text, positions,
        ));
        Found {
            states,
            references,
            words,
            first: [first.scores, first.references],
            held,
        }
    }

    /// A map at the model's width; the last is halved once more.
    fn level(&self, cx: &Cx, i: usize, map: &Tensor, halves: bool) -> Tensor {
        cx.module("input_proj_vision", |cx| {
            cx.module(index_name(i), |cx| {
                let x = if halves {
                    let form = Conv::stride(2).padded(1);
                    cx.conv2d("0", map, self.hidden, 3, form, true)
                } else {
                    cx.conv2d("0", map, self.hidden, 1, Conv::stride(1), true)
                };
                cx.module("1", |cx| {
                    let weight = cx.param("weight", [self.hidden]).tensor();
                    let bias = cx.param("bias", [self.hidden]).tensor();
                    x.group_norm(GROUPS, &weight, &bias)
                })
            })
        })
    }

    /// `GroundingDinoContrastiveEmbedding.forward`: a column for each word, and as many as a text may have.
    fn scores(&self, states: &Tensor, words: &Tensor, seen: &Tensor) -> Tensor {
        let own = states.matmul(&words.transpose(-1, -2));
        let own = own.masked_fill(&seen.unsqueeze(1));
        let shape = [own.size(0), own.size(1), self.columns.max(own.size(2))];
        let all = own.constant("full", &shape, DType::F32);
        all.copy_into_slice_(&own)
    }

    fn box_head(&self, cx: &Cx, states: &Tensor) -> Tensor {
        cx.list_item("bbox_embed", 0, |cx| {
            super::perceptron(cx, states, &[self.hidden, self.hidden, 4])
        })
    }
}

/// `GroundingDinoSinePositionEmbedding.forward`.
fn sine_positions(map: &Tensor) -> Tensor {
    let [n, c, h, w] = [map.size(0), map.size(1), map.size(2), map.size(3)];
    let half = [n, h, w, c / 2];
    let make = |op| map.constant(op, &half, DType::F32);
    let parts = (make("flatten"), make("flatten"));
    let all = map.constant("cat", &[n, h, w, c], DType::F32);
    drop(parts);
    all.permute(&[0, 3, 1, 2]).to(map.dtype())
}
