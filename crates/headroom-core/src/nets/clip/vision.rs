//! CLIP's image encoder (`CLIPVisionTransformer`).

use super::Tower;
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
pub(crate) struct VisionModel {
    tower: Tower,
    image: u64,
    patch: u64,
}

impl VisionModel {
    pub(crate) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        Ok(Self {
            tower: Tower::of_images(sizes)?,
            image: sizes.or("img", 224),
            patch: sizes.need("patch")?.max(1),
        })
    }

    pub(crate) fn pixels(&self, cx: &Cx, count: u64) -> Tensor {
        let shape = [count, 3, self.image, self.image];
        cx.tape.empty("pixel_values", shape, cx.env.weights)
    }

    /// The side of the pictures that it sees.
    pub(crate) fn image(&self) -> u64 {
        self.image
    }

    /// How many patches an image has.
    pub(crate) fn patches(&self) -> u64 {
        let side = self.image / self.patch;
        side.saturating_mul(side)
    }

    /// `last_hidden_state` and `pooler_output`.
    pub(crate) fn forward(&self, cx: &Cx, image: &Tensor) -> [Tensor; 2] {
        let mut hidden = cx.module("embeddings", |cx| self.embeddings(cx, image));
        hidden = cx.layer_norm("pre_layrnorm", &hidden);
        let last = self.tower.encode(cx, &hidden, &AttentionMask::None);
        let pooled = cx.layer_norm("post_layernorm", &last.select(1));
        [last, pooled]
    }

    /// `hidden_states[-2]`, `last_hidden_state` and `pooler_output`, for models that read the state before the last.
    pub(crate) fn last_states(&self, cx: &Cx, image: &Tensor) -> [Tensor; 3] {
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, image));
        let hidden = embedded.pipe(|embedded| cx.layer_norm("pre_layrnorm", embedded));
        let before = self.tower.layers.saturating_sub(1);
        let tower = self.tower;
        let layer = move |cx: &Cx, state: &[Tensor]| -> Vec<Tensor> {
            let layer = |x| tower.layer(cx, x, &AttentionMask::None);
            state.iter().map(layer).collect()
        };
        let (second_last, last) = cx.module("encoder", |cx| {
            let second_last = cx.equal_layers("layers", before, vec![hidden.clone()], layer);
            let last = cx.layer("layers", before as usize, second_last.clone(), layer);
            (second_last, last)
        });
        let first = |state: Vec<Tensor>| state.into_iter().next().unwrap_or_else(|| image.clone());
        let (second_last, last) = (first(second_last), first(last));
        let pooled = cx.layer_norm("post_layernorm", &last.select(1));
        drop(hidden);
        [second_last, last, pooled]
    }

    /// `CLIPVisionEmbeddings.forward`: a class token and the patches, with their positions.
    fn embeddings(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let (n, hidden) = (image.size(0), self.tower.hidden);
        let count = self.patches();
        let class = cx.param("class_embedding", [hidden]);
        let conv = Conv::stride(self.patch);
        let grid = cx.conv2d("patch_embedding", image, hidden, self.patch, conv, false);
        let grid = cx.asks_for_gradient(grid);
        let patches = grid.reshape(&[n, hidden, count]).transpose(1, 2);
        drop(grid);
        let class = class.tensor().expand(&[n, 1, hidden]);
        let embedded = Tensor::cat(&class, &[&patches], 1);
        let start = cx.tape.construction_point();
        let position_ids = cx.buffer("position_ids", [1, count + 1], DType::I64);
        let made = cx.tape.construction_point();
        let positions = cx.embedding("position_embedding", &position_ids, count + 1, hidden);
        cx.tape.construct_here(start, made);
        embedded.add(&positions)
    }
}
