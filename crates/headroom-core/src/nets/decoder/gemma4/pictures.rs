//! Gemma 4 with pictures: the tower's tokens, a norm and a product, and the language model. The tower of sounds is there and runs
//! on nothing.

use super::tower::Tower;
use super::{Gemma4, families};
use crate::nets::decoder::pictures::Pictures;
use crate::nets::decoder::{cache, norm};
use crate::nets::{Cx, ModelError, Net, Output, Sizes, inputs, masks};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Debug)]
struct WithPictures {
    tower: Tower,
    text: Gemma4,
    /// `use_bidirectional_attention: vision`: tokens of a picture see each other.
    blockwise: bool,
    /// Layers of the tower of sounds.
    sound_layers: u64,
    /// Patches along the sides of each picture.
    pictures: Pictures,
}

pub(in crate::nets::decoder) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let mut text = Gemma4::new(sizes)?;
    text.text.family.names = &families::llama::INSIDE_VISION_MODEL;
    Ok(Box::new(WithPictures {
        tower: Tower::new(sizes)?,
        text,
        blockwise: sizes.is_set("blockwise"),
        sound_layers: sizes.or("a_layers", 0),
        pictures: Pictures::default(),
    }))
}

impl Net for WithPictures {
    /// The placeholders of pictures are part of the sequence. All pictures are padded to the most patches.
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let grids = self.grids(data);
        self.pictures.keep(&grids);
        let n = data.micro_batch;
        let images = n.saturating_mul(grids.len() as u64);
        let patches = self.tower.patches();
        let values = 3 * self.tower.patch * self.tower.patch;
        let mut all = inputs::token_ids_and_labels(cx, data);
        let pixels = [images, patches, values];
        all.insert(2, cx.tape.empty("pixel_values", pixels, cx.env.weights));
        let places = [images, patches, 2];
        all.insert(3, cx.tape.empty("image_position_ids", places, DType::I64));
        let types = [n, data.sequence];
        all.insert(4, cx.tape.empty("mm_token_type_ids", types, DType::I64));
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, pixels, _places, types, ..] = batch else {
            return Output::empty(cx);
        };
        let cache = cache(cx);
        let padding = batch.get(5);
        let run = |cx: &Cx| self.model(cx, [ids, pixels, types], padding, &cache);
        let (hidden, features) = cx.module("model", run);
        self.text
            .text
            .output_with(cx, &hidden, labels, cache, features)
    }
}

impl WithPictures {
    /// Patches along the height and width of each picture of a sample: scaled so that they fill as many as there may be
    /// (`get_aspect_ratio_preserving_size` of the processor), or as they are if they are smaller and given in squares of patches.
    fn grids(&self, data: &Data) -> Vec<[u64; 2]> {
        let square = self.tower.patch * self.tower.pool;
        let side = (self.tower.most.isqrt()).max(1) * square;
        let fitted = |[height, width]: [u64; 2]| {
            let area = (height as f64 * width as f64).max(1.0);
            let room = self.tower.most as f64 * (square * square) as f64;
            let ratio = (room / area).sqrt().min(1.0);
            [height, width].map(|side| {
                let squares = (side as f64 * ratio / square as f64) as u64;
                squares.max(1) * self.tower.pool
            })
        };
        data.pictures([side, side])
            .into_iter()
            .map(fitted)
            .collect()
    }

    fn model(
        &self,
        cx: &Cx,
        [ids, pixels, types]: [&Tensor; 3],
        padding: Option<&Tensor>,
        cache: &crate::nets::decoder::Cache,
    ) -> (Tensor, Option<Tensor>) {
        let before = cx.tape.construction_point();
        // Of pictures, films and sounds, and the first of these with another.
        let kinds = [0; 3].map(|_| ids.constant("eq", ids.shape(), DType::Bool));
        let placed = {
            let first = ids.constant("bitwise_or", ids.shape(), DType::Bool);
            let all = ids.constant("bitwise_or", ids.shape(), DType::Bool);
            drop(first);
            all
        };
        let own_ids = {
            let copied = ids.constant("clone", ids.shape(), DType::I64);
            let own = ids.constant("where", ids.shape(), DType::I64);
            drop(copied);
            own
        };
        let text = &self.text.text;
        let mut embeddings = cx.module("language_model", |cx| text.embeddings(cx, &own_ids));
        let after = cx.tape.construction_point();
        // The embeddings with none in the places of pictures, which only models without token ids read.
        let has_layer_inputs = self.text.layer_width > 0;
        let without = has_layer_inputs.then(|| embeddings.where_mask(&placed.unsqueeze(-1)));
        let per_layer = cx.module("language_model", |cx| {
            self.text.layer_embeddings(cx, &own_ids)
        });
        let has_pictures = !self.pictures.are_none() || cx.tape.declaring();
        let features = has_pictures.then(|| self.features(cx, pixels, ids.size(0)));
        self.sounds(cx);
        cx.tape.construct_here(before, after);
        let features = features.map(|features| features.cat_list().to(embeddings.dtype()));
        if let Some(features) = &features {
            let [image, _, _] = &kinds;
            let image = image.unsqueeze(-1);
            counted(&embeddings, ids, features.size(0));
            embeddings = embeddings.masked_scatter(&image, features);
        }
        let masks = |dtype| self.masks(cx, [ids, types], padding, dtype);
        let hidden = cx.module("language_model", |cx| {
            self.text
                .run(cx, embeddings.clone(), per_layer, ids, &masks, cache)
        });
        drop((kinds, placed, own_ids, without));
        (hidden, features)
    }

    fn masks(
        &self,
        cx: &Cx,
        [ids, types]: [&Tensor; 2],
        padding: Option<&Tensor>,
        dtype: DType,
    ) -> [AttentionMask; 2] {
        if !self.blockwise {
            return self.text.text.attention_masks(cx, ids, padding, dtype);
        }
        // Layers with full attention stay causal.
        let whole = inputs::causal_mask(cx, ids, padding, dtype);
        let blocks = masks::image_blocks(types);
        [
            whole,
            masks::blockwise_mask(cx, &blocks, padding, dtype, true),
        ]
    }

    /// `get_image_features`.
    fn features(&self, cx: &Cx, pixels: &Tensor, samples: u64) -> Tensor {
        let squares = self.tower.pool * self.tower.pool;
        let tokens = self.pictures.of_batch(samples).total() / squares;
        let features = cx.module("vision_tower", |cx| self.tower.features(cx, pixels, tokens));
        cx.module("embed_vision", |cx| {
            let normed = norm::gemma4(&features, None);
            cx.linear(
                "embedding_projection",
                &normed,
                self.text.text.hidden,
                false,
            )
        })
    }

    /// The weights of `Gemma4AudioModel` and of the layer behind it; no sound is in the batch.
    fn sounds(&self, cx: &Cx) {
        if self.sound_layers == 0 {
            return;
        }
        cx.module("audio_tower", |cx| {
            drop(cx.param("subsample_conv_projection", [BEFORE_AND_AFTER]));
            drop(cx.param("layers", [self.sound_layers, LAYER]));
        });
        cx.module("embed_audio", |cx| {
            drop(cx.param("embedding_projection", [self.text.text.hidden, SOUND_WIDTH]));
        });
    }
}

/// Parameters of a layer of `Gemma4AudioModel`, those outside its layers, and the width of what it returns, as all models of the
/// family have them.
const LAYER: u64 = 25_180_288;
const BEFORE_AND_AFTER: u64 = 2_661_152;
const SOUND_WIDTH: u64 = 1536;

/// `inputs_embeds[image_mask].numel()`: the places of all elements, and the elements.
fn counted(embeddings: &Tensor, ids: &Tensor, tokens: u64) {
    let elements = tokens.saturating_mul(embeddings.size(-1));
    drop(ids.constant("sum", &[0; 0], DType::I64));
    let places = ids.constant("nonzero", &[elements, 3], DType::I64);
    drop(embeddings.constant("index", &[elements], embeddings.dtype()));
    drop(places);
}
