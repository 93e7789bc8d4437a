//! Qwen2-VL, Qwen2.5-VL and Qwen3-VL: a tower over the patches of all pictures in one row, and a Qwen whose tokens have places in
//! three dimensions (transformers/models/{qwen2_vl,qwen2_5_vl,qwen3_vl,qwen3_vl_moe}/modeling_*.py).

use super::super::{Cx, LanguageModel, ModelError, Net, Output, Sizes, inputs};
use super::config::Stacked;
use super::family::Family;
use super::pictures::{self, Pictures};
use super::qwen_vision::{Kind, TowerOutput, VisionTransformer};
use super::reading::{self, Reads, States};
use super::{Decoder, ModelInputs};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Debug)]
struct QwenVl {
    tower: VisionTransformer,
    text: Decoder,
    /// Patches along the sides of each picture.
    pictures: Pictures,
}

pub(super) fn build(sizes: &Sizes, family: Family, kind: Kind) -> Result<Box<dyn Net>, ModelError> {
    let text = Decoder::new(sizes, family)?;
    Ok(Box::new(QwenVl {
        tower: VisionTransformer::new(sizes, text.hidden, kind)?,
        text,
        pictures: Pictures::default(),
    }))
}

impl Net for QwenVl {
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

impl Reads for QwenVl {
    fn text(&self) -> &Decoder {
        &self.text
    }

    /// The placeholders of pictures are part of the sequence.
    fn pictures(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let grids = self.tower.grids(data);
        self.pictures.keep(&grids);
        let images = n.saturating_mul(grids.len() as u64);
        let types = [n, data.sequence];
        vec![
            self.tower.pixels(cx, n, &grids),
            cx.tape.empty("image_grid_thw", [images, 3], DType::I64),
            cx.tape.empty("mm_token_type_ids", types, DType::I64),
        ]
    }

    fn states(&self, cx: &Cx, batch: &[Tensor], cache: &super::Cache) -> Option<States> {
        let [ids, _labels, pixels, _grid, _types, ..] = batch else {
            return None;
        };
        let padding = batch.get(5);
        let hidden = cx.module("model", |cx| self.model(cx, [ids, pixels], padding, cache));
        Some(States::of(hidden, None))
    }
}

/// What a forward pass keeps of its pictures until the language model returns.
pub(super) struct Placed {
    seen: TowerOutput,
    #[expect(dead_code, reason = "a variable of the forward pass")]
    features: Tensor,
    masks: [Tensor; 2],
}

impl QwenVl {
    fn model(
        &self,
        cx: &Cx,
        [ids, pixels]: [&Tensor; 2],
        padding: Option<&Tensor>,
        cache: &super::Cache,
    ) -> Tensor {
        let before = cx.tape.construction_point();
        let mut embeddings = cx.module("language_model", |cx| self.text.embeddings(cx, ids));
        let after = cx.tape.construction_point();
        let seen = (!self.pictures.are_none() || cx.tape.declaring()).then(|| {
            let grids = self.pictures.of_batch(ids.size(0));
            cx.module("visual", |cx| self.tower.see(cx, pixels, &grids))
        });
        cx.tape.construct_here(before, after);
        let placed = seen.map(|seen| {
            let (placed, with_pictures) = place(ids, seen, &embeddings);
            embeddings = with_pictures;
            placed
        });
        let stacked = placed.as_ref().and_then(stacked);
        let places = [3, ids.size(0), ids.size(1)];
        let positions = ids.constant("zeros", &places, DType::I64);
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
        drop((placed, positions));
        hidden
    }
}

/// Puts the features of pictures into their places among the embeddings.
pub(super) fn place(ids: &Tensor, seen: TowerOutput, embeddings: &Tensor) -> (Placed, Tensor) {
    // How many tokens each image has is computed on the device; there is one part for each, and they are joined again.
    let scalars = ["prod", "floor_divide"].map(|op| {
        let count = [ids.size(0)];
        ids.constant(op, &count, DType::I64)
    });
    drop(scalars);
    let features = seen.merged.cat_list().to(embeddings.dtype());
    let masks = pictures::placeholders(ids, true);
    let [image, _] = &masks;
    let with_pictures = embeddings.masked_scatter(image, &features);
    let placed = Placed {
        seen,
        features,
        masks,
    };
    (placed, with_pictures)
}

/// What the first layers of the language model add to their outputs (`_deepstack_process`).
pub(super) fn stacked(placed: &Placed) -> Option<Stacked> {
    let [image, _] = &placed.masks;
    let features = placed.seen.stacked.iter().map(Tensor::cat_list);
    let stacked = Stacked {
        mask: image.squeeze(-1),
        features: features.collect(),
    };
    Some(stacked).filter(|stacked| !stacked.features.is_empty())
}
