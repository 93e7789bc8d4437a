//! Qwen2-VL and Qwen2.5-VL: a tower over the patches of all images in one row, and a Qwen2 whose tokens have places in three
//! dimensions (transformers/models/{qwen2_vl,qwen2_5_vl}/modeling_*.py).

use super::super::{Cx, ModelError, Net, Output, Sizes, inputs};
use super::family::Family;
use super::qwen_vision::VisionTransformer;
use super::{Decoder, ModelInputs, cache};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Debug)]
struct QwenVl {
    tower: VisionTransformer,
    text: Decoder,
}

pub(super) fn build(
    sizes: &Sizes,
    family: Family,
    windowed: bool,
) -> Result<Box<dyn Net>, ModelError> {
    let text = Decoder::new(sizes, family)?;
    Ok(Box::new(QwenVl {
        tower: VisionTransformer::new(sizes, text.hidden, windowed)?,
        text,
    }))
}

impl Net for QwenVl {
    /// One image a sample; its tokens are part of the sequence.
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let mut all = inputs::token_ids_and_labels(cx, data);
        let types = [n, data.sequence];
        all.insert(2, self.tower.pixels(cx, n));
        all.insert(3, cx.tape.empty("image_grid_thw", [n, 3], DType::I64));
        all.insert(4, cx.tape.empty("mm_token_type_ids", types, DType::I64));
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, pixels, _grid, _types, ..] = batch else {
            return Output::empty(cx);
        };
        let cache = cache(cx);
        let padding = batch.get(5);
        let hidden = cx.module("model", |cx| self.model(cx, [ids, pixels], padding, &cache));
        self.text.output(cx, &hidden, labels, cache)
    }
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
        let (states, merged) = cx.module("visual", |cx| self.tower.see(cx, pixels, ids.size(0)));
        cx.tape.construct_here(before, after);
        // How many tokens each image has is computed on the device; there is one part for each, and they are joined again.
        let scalars = ["prod", "floor_divide"].map(|op| {
            let count = [ids.size(0)];
            ids.constant(op, &count, DType::I64)
        });
        drop(scalars);
        let features = merged.cat_list().to(embeddings.dtype());
        let [image, video] = image_and_video_tokens(ids);
        embeddings = embeddings.masked_scatter(&image, &features);
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
            };
            self.text.run(cx, embeddings.clone(), ids, inputs, cache)
        });
        drop((states, merged, features, image, video, positions));
        hidden
    }
}

/// `get_placeholder_mask`: which tokens are an image's and which a film's; both are counted.
fn image_and_video_tokens(ids: &Tensor) -> [Tensor; 2] {
    let masks = [0; 2].map(|_| ids.constant("eq", ids.shape(), DType::Bool).unsqueeze(-1));
    let scalar = |op, dtype| ids.constant(op, &[0; 0], dtype);
    let count = || {
        let count = scalar("sum", DType::I64);
        ids.tape()
            .workspace("sum", ids.numel() * DType::I64.bytes());
        count
    };
    let images = count();
    drop((scalar("mul", DType::I64), scalar("eq", DType::Bool)));
    drop((images, count()));
    masks
}
