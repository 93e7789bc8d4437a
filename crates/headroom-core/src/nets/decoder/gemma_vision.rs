//! Gemma 3, PaliGemma and PaliGemma 2 with images: SigLIP's tower, a projector and a Gemma, in which an image's tokens see each
//! other (transformers/models/{gemma3,paligemma}/modeling_*.py).

use super::super::siglip::VisionModel;
use super::super::{Cx, LanguageModel, ModelError, Net, Output, Sizes, inputs, masks};
use super::family::Family;
use super::norm::gemma;
use super::pictures::Pictures;
use super::reading::{self, Reads, States};
use super::{Decoder, ModelInputs};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Debug)]
struct Gemma3 {
    vision: VisionModel,
    text: Decoder,
    projector: Projector,
    /// Patches along the side of a square whose mean is a token.
    square: u64,
    pictures: Pictures,
}

/// What makes tokens of patches.
#[derive(Clone, Copy, Debug)]
pub(super) enum Projector {
    /// `Gemma3MultiModalProjector`: means over squares of patches, so many a side, a norm and a product.
    Pooled,
    /// `PaliGemmaMultiModalProjector`.
    Linear,
}

pub(super) fn build(
    sizes: &Sizes,
    family: Family,
    projector: Projector,
) -> Result<Box<dyn Net>, ModelError> {
    let vision = VisionModel::new(sizes)?;
    let side = sizes.or("image_tokens", 256).isqrt().max(1);
    Ok(Box::new(Gemma3 {
        square: (vision.side() / side).max(1),
        vision,
        text: Decoder::new(sizes, family)?,
        projector,
        pictures: Pictures::default(),
    }))
}

impl Net for Gemma3 {
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

impl Reads for Gemma3 {
    fn text(&self) -> &Decoder {
        &self.text
    }

    /// Pictures are scaled to the tower's size; their tokens are part of the sequence.
    fn pictures(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let pictures = self.of_sample(data);
        self.pictures.keep(&pictures);
        let count = data.micro_batch.saturating_mul(pictures.len() as u64);
        let types = [data.micro_batch, data.sequence];
        vec![
            self.vision.pixels(cx, count),
            cx.tape.empty("token_type_ids", types, DType::I64),
        ]
    }

    fn states(&self, cx: &Cx, batch: &[Tensor], cache: &super::Cache) -> Option<States> {
        let [ids, _labels, pixels, types, ..] = batch else {
            return None;
        };
        let padding = batch.get(4);
        let (hidden, features) = cx.module("model", |cx| {
            self.model(cx, [ids, pixels, types], padding, cache)
        });
        Some(States::of(hidden, features))
    }
}

impl Gemma3 {
    fn of_sample(&self, data: &Data) -> Vec<[u64; 2]> {
        data.pictures([self.vision.side(); 2])
    }

    fn model(
        &self,
        cx: &Cx,
        [ids, pixels, types]: [&Tensor; 3],
        padding: Option<&Tensor>,
        cache: &super::Cache,
    ) -> (Tensor, Option<Tensor>) {
        let before = cx.tape.construction_point();
        let mut embeddings = cx.module("language_model", |cx| self.text.embeddings(cx, ids));
        let after = cx.tape.construction_point();
        // PaliGemma counts places from one, and before it looks at images.
        let positions = match self.projector {
            Projector::Pooled => None,
            Projector::Linear => Some(inputs::positions(ids).pipe(Tensor::add_scalar)),
        };
        let seen = (!self.pictures.are_none() || cx.tape.declaring()).then(|| {
            let tower = |cx: &Cx| self.vision.last_hidden_state(cx, pixels);
            let states = cx.module("vision_tower", tower);
            let projected = cx.module("multi_modal_projector", |cx| match self.projector {
                Projector::Pooled => self.pooled(cx, &states),
                Projector::Linear => cx.linear("linear", &states, self.text.hidden, true),
            });
            (states, projected)
        });
        cx.tape.construct_here(before, after);
        let features = (seen.as_ref()).map(|(_, projected)| projected.to(embeddings.dtype()));
        if let Some(features) = &features {
            let image = counted_image_tokens(ids);
            embeddings = embeddings.masked_scatter(&image, features);
        }
        let cached = cache.is_some();
        // Where SDPA has not what the text needs, the tower still has it.
        let eager = self.text.eager_part(cx);
        let cx = eager.as_ref().unwrap_or(cx);
        let (blocks, masks) = self.masks(cx, types, padding, embeddings.dtype(), cached);
        let hidden = cx.module("language_model", |cx| {
            let inputs = ModelInputs {
                padding_mask: None,
                attention_masks: Some(masks.clone()),
                position_ids: positions.clone(),
                stacked: None,
            };
            self.text.run(cx, embeddings.clone(), ids, inputs, cache)
        });
        drop((seen, positions, blocks, masks));
        (hidden, features)
    }

    /// Which block each token belongs to, and the masks made from that.
    fn masks(
        &self,
        cx: &Cx,
        types: &Tensor,
        padding: Option<&Tensor>,
        dtype: DType,
        cached: bool,
    ) -> (Tensor, [AttentionMask; 2]) {
        match self.projector {
            Projector::Pooled => {
                let blocks = masks::image_blocks(types);
                let whole = masks::blockwise_mask(cx, &blocks, padding, dtype, false);
                if let Some(padding) = padding {
                    // Cast once more to ask how long a window's mask must be.
                    drop(padding.constant("to", padding.shape(), DType::Bool));
                }
                let windowed = masks::blockwise_mask(cx, &blocks, padding, dtype, true);
                (blocks, [whole, windowed])
            }
            Projector::Linear => {
                let blocks = masks::prefix_blocks(types);
                if padding.is_none() && !cached {
                    inputs::packed_sequence_probe(types);
                }
                let whole = masks::blockwise_mask(cx, &blocks, padding, dtype, false);
                let windowed = match self.text.full_attention_interval {
                    0 | 1 => AttentionMask::None,
                    _ => masks::blockwise_mask(cx, &blocks, padding, dtype, true),
                };
                (blocks, [whole, windowed])
            }
        }
    }

    /// `Gemma3MultiModalProjector.forward`.
    fn pooled(&self, cx: &Cx, states: &Tensor) -> Tensor {
        let (b, width, side) = (states.size(0), states.size(2), self.vision.side());
        let weight = cx.param("mm_input_projection_weight", [width, self.text.hidden]);
        let mut squares = states.transpose(1, 2).reshape(&[b, width, side, side]);
        squares = squares.contiguous();
        let mut pooled = squares.avg_pool2d(self.square, Conv::stride(self.square));
        let count = pooled.size(2) * pooled.size(3);
        pooled = pooled.reshape(&[b, width, count]).transpose(1, 2);
        let normed = cx.module("mm_soft_emb_norm", |cx| {
            gemma(&pooled, &cx.param("weight", [width]).tensor())
        });
        let projected = normed.matmul_by(&weight.tensor());
        projected.to(states.dtype())
    }
}

/// `get_placeholder_mask`: which tokens are an image's, counted to compare with its features.
fn counted_image_tokens(ids: &Tensor) -> Tensor {
    let mask = ids.constant("eq", ids.shape(), DType::Bool).unsqueeze(-1);
    let scalar = |op, dtype| ids.constant(op, &[0; 0], dtype);
    let count = scalar("sum", DType::I64);
    ids.tape()
        .workspace("sum", ids.numel() * DType::I64.bytes());
    let elements = scalar("mul", DType::I64);
    let equal = scalar("eq", DType::Bool);
    drop((count, elements, equal));
    mask
}
