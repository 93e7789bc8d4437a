//! SigLIP: CLIP's encoders without a class token, pooled by attention, and a loss of pairs
//! (transformers/models/{siglip,siglip2}/modeling_*.py). SigLIP 2's pictures come as rows of patches, of which each has as many as
//! its own sides say.

use super::clip::{Tower, normalized};
use super::masks::bidirectional_mask;
use super::multi_head::multi_head;
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// `SiglipVisionTransformer`.
#[derive(Clone, Copy, Debug)]
pub(super) struct VisionModel {
    tower: Tower,
    image: u64,
    patch: u64,
    /// `num_patches` of SigLIP 2: rows of the table of positions, which is resized for each picture.
    table: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Siglip {
    vision: VisionModel,
    text: Tower,
    vocab: u64,
    context: u64,
    projection: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build_as(sizes, None)
}

pub(crate) fn second(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build_as(sizes, Some(sizes.or("patches", 256)))
}

fn build_as(sizes: &Sizes, table: Option<u64>) -> Result<Box<dyn Net>, ModelError> {
    let text = Tower {
        quick_gelu: false,
        ..Tower::of_texts(sizes)?
    };
    Ok(Box::new(Siglip {
        vision: match table {
            Some(rows) => VisionModel::resized(sizes, rows)?,
            None => VisionModel::new(sizes)?,
        },
        text,
        vocab: sizes.need("vocab")?,
        context: sizes.or("ctx", 64),
        projection: sizes.or("proj", text.hidden),
    }))
}

impl Net for Siglip {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let ids = cx.tape.empty("input_ids", [n, self.context], DType::I64);
        let mut all = vec![ids, self.vision.pixels(cx, n)];
        if self.vision.table.is_some() {
            let count = self.vision.side() * self.vision.side();
            all.push(
                cx.tape
                    .empty("pixel_attention_mask", [n, count], DType::I32),
            );
            all.push(cx.tape.empty("spatial_shapes", [n, 2], DType::I64));
        }
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, image, ..] = batch else {
            return Output::empty(cx);
        };
        let scale = cx.param("logit_scale", [1]).tensor();
        let bias = cx.param("logit_bias", [1]).tensor();
        let [vision_last, image_features] = cx.module("vision_model", |cx| {
            self.vision.forward(cx, image, batch.get(2))
        });
        let [text_last, text_features] = cx.module("text_model", |cx| self.text_model(cx, ids));
        let image_embeds = normalized(&image_features);
        let text_embeds = normalized(&text_features);
        let mut logits = text_embeds.linear(&image_embeds, None);
        logits = {
            let scaled = scale.exp().pipe(|scale| logits.mul(scale));
            scaled.add(&bias)
        };
        let loss = cx.module("loss", |_| sigmoid_loss(&logits));
        let held = vec![
            logits,
            text_embeds,
            image_embeds,
            text_last,
            text_features,
            vision_last,
            image_features,
        ];
        Output { loss, held }
    }
}

impl VisionModel {
    pub(super) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        let tower = Tower {
            quick_gelu: false,
            ..Tower::of_images(sizes)?
        };
        Ok(Self {
            tower,
            image: sizes.or("img", 224),
            patch: sizes.need("patch")?.max(1),
            table: None,
        })
    }

    /// The same with a table of so many rows that is resized for each picture (SigLIP 2).
    pub(super) fn resized(sizes: &Sizes, rows: u64) -> Result<Self, ModelError> {
        Ok(Self {
            table: Some(rows),
            ..Self::new(sizes)?
        })
    }

    pub(super) fn pixels(&self, cx: &Cx, count: u64) -> Tensor {
        if self.table.is_some() {
            let patches = [
                count,
                self.side() * self.side(),
                3 * self.patch * self.patch,
            ];
            return cx.tape.empty("pixel_values", patches, cx.env.weights);
        }
        let shape = [count, 3, self.image, self.image];
        cx.tape.empty("pixel_values", shape, cx.env.weights)
    }

    /// Patches along an image's side.
    pub(super) fn side(&self) -> u64 {
        self.image / self.patch
    }

    /// `last_hidden_state` and, from it, `pooler_output`.
    fn forward(&self, cx: &Cx, image: &Tensor, patches: Option<&Tensor>) -> [Tensor; 2] {
        let last = match patches {
            Some(patches) => {
                let side = self.side();
                let embedded = cx.module("embeddings", |cx| {
                    let embedded = cx.linear("patch_embedding", image, self.tower.hidden, true);
                    self.with_places(cx, &embedded, &[[side, side]])
                });
                let mask = bidirectional_mask(cx, image.size(1), Some(patches), embedded.dtype());
                let states = self.tower.encode(cx, &embedded, &mask);
                cx.layer_norm("post_layernorm", &states)
            }
            None => self.last_hidden_state(cx, image),
        };
        let pooled = cx.module("head", |cx| self.pooling_head(cx, &last));
        [last, pooled]
    }

    pub(super) fn last_hidden_state(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let [_, last] = self.last_states(cx, image);
        last
    }

    /// `hidden_states[-1]`, which no norm has passed, and `last_hidden_state`.
    pub(super) fn last_states(&self, cx: &Cx, image: &Tensor) -> [Tensor; 2] {
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, image));
        let states = self.tower.encode(cx, &embedded, &AttentionMask::None);
        let last = cx.layer_norm("post_layernorm", &states);
        [states, last]
    }

    /// The side of the pictures that it sees.
    pub(super) fn image(&self) -> u64 {
        self.image
    }

    /// `SiglipVisionEmbeddings.forward`.
    fn embeddings(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let (n, hidden) = (image.size(0), self.tower.hidden);
        let conv = Conv::stride(self.patch);
        let grid = cx.conv2d("patch_embedding", image, hidden, self.patch, conv, true);
        let grid = cx.asks_for_gradient(grid);
        let count = grid.size(2) * grid.size(3);
        let patches = grid.reshape(&[n, hidden, count]).transpose(1, 2);
        drop(grid);
        let position_ids = cx.buffer("position_ids", [1, count], DType::I64);
        let positions = cx.embedding("position_embedding", &position_ids, count, hidden);
        patches.add(&positions)
    }

    /// `Siglip2VisionModel.forward` for pictures of so many patches along their sides, repeated for all samples, each padded to the
    /// same number: its last hidden states.
    pub(super) fn padded_states(
        &self,
        cx: &Cx,
        pixels: &Tensor,
        mask: &Tensor,
        sides: &[[u64; 2]],
    ) -> Tensor {
        let embedded = cx.module("embeddings", |cx| {
            let hidden = self.tower.hidden;
            let patches = cx.linear("patch_embedding", pixels, hidden, true);
            self.with_places(cx, &cx.asks_for_gradient(patches), sides)
        });
        let room = pixels.size(1);
        let mask = if sides.iter().all(|[height, width]| height * width == room) {
            let all = mask.constant("to", mask.shape(), DType::Bool);
            drop(all.constant("all", &[0; 0], DType::Bool));
            AttentionMask::None
        } else {
            bidirectional_mask(cx, room, Some(mask), embedded.dtype())
        };
        let states = self.tower.encode(cx, &embedded, &mask);
        cx.layer_norm("post_layernorm", &states)
    }

    /// `Siglip2VisionEmbeddings.forward` behind the patches: the table is resized picture by picture, which have these sides in
    /// turn, and written into one tensor, its first place behind the last.
    fn with_places(&self, cx: &Cx, embedded: &Tensor, sides: &[[u64; 2]]) -> Tensor {
        let (hidden, room) = (self.tower.hidden, embedded.size(1));
        let rows = self.table.unwrap_or(1);
        let table = cx.module("position_embedding", |cx| {
            cx.param("weight", [rows, hidden]).tensor()
        });
        let own = rows.isqrt();
        let grid = table
            .narrow(0, own * own)
            .reshape(&[own, own, hidden])
            .permute(&[2, 0, 1])
            .unsqueeze(0);
        let shape = [embedded.size(0), room, hidden];
        let mut places = cx.tape.empty("empty", shape, table.dtype());
        let count = usize::try_from(embedded.size(0)).unwrap_or(usize::MAX);
        for [height, width] in sides.iter().cycle().take(count) {
            if cx.tape.is_over_budget() {
                break;
            }
            let resized = grid.interpolate(*height, *width);
            let rows = resized.reshape(&[hidden, height * width]).transpose(0, 1);
            let rows = rows.to(table.dtype());
            places = places.copy_into_slice_(&rows);
            if height * width < room {
                places = places.copy_into_slice_(&rows.select(0));
            }
        }
        embedded.add(&places)
    }

    /// `SiglipMultiheadAttentionPoolingHead`: one learned query over all patches.
    pub(super) fn pooling_head(&self, cx: &Cx, states: &Tensor) -> Tensor {
        let Tower {
            hidden, heads, ffn, ..
        } = self.tower;
        let probe = cx.param("probe", [1, 1, hidden]).tensor();
        let probe = probe.tiled(states.size(0));
        let (residual, weights) =
            cx.module("attention", |cx| multi_head(cx, &probe, states, heads, 0.0));
        drop(weights);
        let mut x = cx.layer_norm("layernorm", &residual);
        x = cx.module("mlp", |cx| {
            let mut y = cx.linear("fc1", &x, ffn, true);
            y = y.gelu();
            cx.linear("fc2", &y, hidden, true)
        });
        residual.add(&x).select(1)
    }
}

impl Siglip {
    /// `SiglipTextModel`: last hidden states and the projection of the last token's.
    fn text_model(&self, cx: &Cx, ids: &Tensor) -> [Tensor; 2] {
        let hidden = self.text.hidden;
        let embedded = cx.module("embeddings", |cx| {
            let words = cx.input_embedding("token_embedding", ids, self.vocab, hidden);
            let position_ids = cx.buffer("position_ids", [1, self.context], DType::I64);
            let positions = cx.embedding("position_embedding", &position_ids, self.context, hidden);
            words.add(&positions)
        });
        let mask = bidirectional_mask(cx, ids.size(1), None, embedded.dtype());
        let mut last = self.text.encode(cx, &embedded, &mask);
        last = cx.layer_norm("final_layer_norm", &last);
        let pooled = cx.linear("head", &last.select(1), self.projection, true);
        [last, pooled]
    }
}

/// Every image with every text: a pair on the diagonal, none elsewhere.
fn sigmoid_loss(logits: &Tensor) -> Tensor {
    let n = logits.size(0);
    let signs = {
        let eye = logits.constant("eye", &[n, n], DType::F32);
        let ones = logits.constant("ones_like", &[n, n], logits.dtype());
        let negative = ones.pipe(Tensor::neg);
        eye.pipe(Tensor::mul_scalar)
            .pipe(|twice| negative.add(twice))
    };
    let signed = signs.mul(logits);
    let likelihood = signed.softplus();
    let sums = likelihood.sum(&[-1]).pipe(Tensor::neg);
    sums.mean_all()
}
