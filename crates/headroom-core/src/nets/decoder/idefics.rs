//! Idefics3 and SmolVLM: pictures cut into tiles of the tower's size, the whole picture after them; squares of patches become a
//! token each by their channels (transformers/models/{idefics3,smolvlm}/modeling_*.py).

use std::cell::Cell;

use super::super::clip::Tower;
use super::super::{Cx, LanguageModel, ModelError, Net, Output, Sizes};
use super::Decoder;
use super::family::Family;
use super::pictures;
use super::reading::{self, Reads, States};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Debug)]
struct Idefics {
    tower: Tower,
    text: Decoder,
    /// The side of a tile in pixels.
    tile: u64,
    patch: u64,
    /// Patches along the side of a square that becomes one token.
    merge: u64,
    /// The tiles of a sample.
    tiles: Cell<u64>,
}

pub(super) fn build(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    let tower = Tower {
        quick_gelu: false,
        ..Tower::of_images(sizes)?
    };
    Ok(Box::new(Idefics {
        tower,
        text: Decoder::new(sizes, family)?,
        tile: sizes.or("img", 364),
        patch: sizes.need("patch")?.max(1),
        merge: sizes.or("merge", 2).max(1),
        tiles: Cell::default(),
    }))
}

impl Net for Idefics {
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

impl Reads for Idefics {
    fn text(&self) -> &Decoder {
        &self.text
    }

    fn pictures(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let pictures = data.pictures([self.tile; 2]);
        let tiles = pictures.into_iter().map(|size| Self::cut(data, size));
        let (n, tiles) = (data.micro_batch, tiles.fold(0, u64::saturating_add));
        self.tiles.set(tiles);
        let pixels = [n, tiles, 3, self.tile, self.tile];
        let mask = [n, tiles, self.tile, self.tile];
        vec![
            cx.tape.empty("pixel_values", pixels, cx.env.weights),
            cx.tape.empty("pixel_attention_mask", mask, DType::Bool),
        ]
    }

    fn states(&self, cx: &Cx, batch: &[Tensor], cache: &super::Cache) -> Option<States> {
        let [ids, _labels, pixels, _mask, ..] = batch else {
            return None;
        };
        let run = |cx: &Cx| self.model(cx, [ids, pixels], batch.get(4), cache);
        let (hidden, features) = cx.module("model", run);
        Some(States::of(hidden, features))
    }
}

impl Idefics {
    /// The tiles of a picture: it is scaled so that its longer side has four, and each side is rounded up to whole tiles
    /// (`resize_for_vision_encoder` and `split_images`); the whole picture is one more.
    fn cut(data: &Data, [height, width]: [u64; 2]) -> u64 {
        const ALONG: u64 = 4;
        match data.image_tiles {
            0 if data.cuts_pictures() => {
                let (short, long) = (height.min(width), height.max(width).max(1));
                let across = (ALONG * short).div_ceil(long).max(1);
                ALONG * across + 1
            }
            tiles => tiles.max(1),
        }
    }

    fn model(
        &self,
        cx: &Cx,
        [ids, pixels]: [&Tensor; 2],
        padding: Option<&Tensor>,
        cache: &super::Cache,
    ) -> (Tensor, Option<Tensor>) {
        let inner = self.text.family.names.inner.unwrap_or("text_model");
        let before = cx.tape.construction_point();
        let mut embeddings = cx.module(inner, |cx| self.text.embeddings(cx, ids));
        let after = cx.tape.construction_point();
        let has_pictures = self.tiles.get() > 0 || cx.tape.declaring();
        let seen = has_pictures.then(|| {
            let tiles = self.real_tiles(pixels, ids.size(0));
            let states = cx.module("vision_model", |cx| self.states(cx, &tiles));
            let features = cx.module("connector", |cx| self.connected(cx, &states));
            (states, features)
        });
        cx.tape.construct_here(before, after);
        let features = seen.as_ref().map(|(_, features)| {
            let rows = [features.size(0) * features.size(1), features.size(2)];
            let joined = features.cat_list().view(&rows);
            joined.to(embeddings.dtype())
        });
        let masks = features.as_ref().map(|features| {
            let masks = pictures::placeholders(ids, false);
            embeddings = embeddings.masked_scatter(&masks[0], features);
            masks
        });
        // Only the merging function held it.
        drop(masks);
        let hidden = cx.module(inner, |cx| {
            self.text
                .padded(cx, embeddings.clone(), ids, padding, cache)
        });
        drop(seen);
        (hidden, features)
    }

    /// Tiles without those that pad samples with fewer pictures: a copy of all that are not black.
    fn real_tiles(&self, pixels: &Tensor, samples: u64) -> Tensor {
        let count = samples.saturating_mul(self.tiles.get()).max(1);
        let shape = [count, 3, self.tile, self.tile];
        let black = pixels.constant("eq", &shape, DType::Bool);
        let sums = pixels.constant("sum", &[count], DType::I64);
        drop((black, sums));
        pixels.constant("index", &shape, pixels.dtype())
    }

    /// `Idefics3VisionTransformer.forward`.
    fn states(&self, cx: &Cx, tiles: &Tensor) -> Tensor {
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, tiles));
        let embedded = cx.asks_for_gradient(embedded);
        let states = self.tower.encode(cx, &embedded, &AttentionMask::None);
        cx.layer_norm("post_layernorm", &states)
    }

    /// `Idefics3VisionEmbeddings.forward`: places by the share of a tile that is no padding.
    fn embeddings(&self, cx: &Cx, tiles: &Tensor) -> Tensor {
        let (n, hidden) = (tiles.size(0), self.tower.hidden);
        let conv = Conv::stride(self.patch);
        let grid = cx.conv2d("patch_embedding", tiles, hidden, self.patch, conv, true);
        let count = grid.size(2) * grid.size(3);
        let patches = grid.reshape(&[n, hidden, count]).transpose(1, 2);
        let places = tiles.constant("where", &[n, count], DType::I64);
        let positions = cx.embedding("position_embedding", &places, count, hidden);
        let embedded = patches.add(&positions);
        drop(grid);
        embedded
    }

    /// `Idefics3Connector.forward`: the channels of a square of patches side by side, and a product.
    fn connected(&self, cx: &Cx, states: &Tensor) -> Tensor {
        let (n, count, width, k) = (states.size(0), states.size(1), states.size(2), self.merge);
        let side = count.isqrt();
        let (less, wide) = (side / k, width * k);
        let mut x = states.view(&[n, side, less, wide]).permute(&[0, 2, 1, 3]);
        x = x.reshape(&[n, less, less, wide * k]).permute(&[0, 2, 1, 3]);
        x = x.reshape(&[n, less * less, wide * k]);
        cx.module("modality_projection", |cx| {
            cx.linear("proj", &x, self.text.hidden, false)
        })
    }
}
