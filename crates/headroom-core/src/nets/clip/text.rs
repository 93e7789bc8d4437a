//! CLIP's text encoder (`CLIPTextTransformer`), which diffusion models condition on.

use super::Tower;
use crate::nets::inputs::{additive, allowed};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::{Attention, Data};

#[derive(Clone, Copy, Debug)]
pub(crate) struct TextModel {
    pub tower: Tower,
    pub vocab: u64,
    /// Tokens of each text (`max_position_embeddings`).
    pub context: u64,
}

impl TextModel {
    pub(crate) fn new(sizes: &Sizes, tower: Tower) -> Result<Self, ModelError> {
        Ok(Self {
            tower,
            vocab: sizes.need("vocab")?,
            context: sizes.or("ctx", 77),
        })
    }

    pub(crate) fn ids(&self, cx: &Cx, count: u64) -> Tensor {
        cx.tape
            .empty("input_ids", [count, self.context], DType::I64)
    }

    /// `last_hidden_state`, and of it each text's end-of-text token (`pooler_output`).
    pub(crate) fn forward(&self, cx: &Cx, ids: &Tensor) -> [Tensor; 2] {
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, ids));
        let mask = match cx.env.training.attention {
            Attention::Sdpa | Attention::Flash2 => AttentionMask::Causal,
            Attention::Eager => AttentionMask::Given(additive(
                &allowed(ids, None, false),
                ids.size(0),
                embedded.dtype(),
            )),
        };
        // The encoder's output is held to the end.
        let encoded = self.tower.encode(cx, &embedded, &mask);
        let last = cx.layer_norm("final_layer_norm", &encoded);
        let rows = ids.constant("arange", &[ids.size(0)], DType::I64);
        let columns = {
            let small = ids.constant("to", ids.shape(), DType::I32);
            let ends = ids.constant("eq", ids.shape(), DType::Bool);
            drop(small);
            let ends = ends.pipe(|_| ids.constant("to", ids.shape(), DType::I32));
            let first = ids.constant("argmax", &[ids.size(0)], DType::I64);
            drop(ends);
            first
        };
        let pooled = last.picked(&rows, &columns);
        [last, pooled]
    }

    /// `CLIPTextEmbeddings.forward`.
    fn embeddings(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let hidden = self.tower.hidden;
        let words = cx.input_embedding("token_embedding", ids, self.vocab, hidden);
        let start = cx.tape.construction_point();
        let position_ids = cx.buffer("position_ids", [1, self.context], DType::I64);
        let made = cx.tape.construction_point();
        let positions = cx.embedding("position_embedding", &position_ids, self.context, hidden);
        cx.tape.construct_here(start, made);
        words.add(&positions)
    }
}

/// The text encoder alone.
#[derive(Clone, Copy, Debug)]
struct ClipText {
    text: TextModel,
    /// The width its output is projected to, if it is.
    projection: Option<u64>,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let tower = Tower::new(sizes, ["hidden", "layers", "heads", "ffn"])?;
    Ok(Box::new(ClipText {
        text: TextModel::new(sizes, tower)?,
        projection: sizes.get("proj"),
    }))
}

impl Net for ClipText {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        vec![self.text.ids(cx, data.micro_batch)]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids] = batch else {
            return Output::empty(cx);
        };
        let [last, mut pooled] = self.text.forward(cx, ids);
        if let Some(width) = self.projection {
            pooled = cx.linear("text_projection", &pooled, width, false);
        }
        Output {
            loss: pooled.mean_all(),
            held: vec![last, pooled],
        }
    }
}
