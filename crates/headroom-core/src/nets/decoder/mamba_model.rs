//! Mamba 2 (transformers/models/mamba2/modeling_mamba2.py): layers of its mixer alone, chunk by chunk in plain PyTorch.

use super::families::llama::LLAMA;
use super::{Decoder, head};
use crate::nets::{Cx, ModelError, Net, Output, Sizes, inputs};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Mamba2Model {
    text: Decoder,
}

pub(super) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let named = [
        ("m_heads", sizes.or("heads", 128)),
        ("m_head_dim", sizes.or("head_dim", 64)),
        ("m_groups", sizes.or("groups", 8).max(1)),
        ("m_state", sizes.or("state", 128)),
        ("m_conv", sizes.or("conv", 4)),
        ("m_chunk", sizes.or("chunk", 256)),
        ("ffn", 1),
    ];
    let text = Decoder::new(&sizes.with_defaults(named), LLAMA)?;
    Ok(Box::new(Mamba2Model { text }))
}

impl Net for Mamba2Model {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        inputs::token_ids_and_labels(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let (vocab, width) = (self.text.vocab, self.text.hidden);
        let hidden = cx.module("backbone", |cx| self.model(cx, ids, batch.get(2)));
        let weight = || {
            if self.text.tied {
                cx.embedding_weight(&["backbone", "embeddings"], vocab, width)
            } else {
                cx.embedding_weight(&["lm_head"], vocab, width)
            }
        };
        head::loss(cx, &hidden, labels, false, weight, |hidden| {
            let narrow = hidden.to(cx.env.weights);
            let logits = narrow.pipe(|hidden| hidden.linear(&weight(), None));
            logits.pipe(|logits| logits.to(DType::F32))
        })
    }
}

impl Mamba2Model {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let (vocab, width) = (self.text.vocab, self.text.hidden);
        let embedded = cx.input_embedding("embeddings", ids, vocab, width);
        let (this, padding) = (*self, padding.cloned());
        let last = cx.equal_stack("layers", self.text.layers, embedded, move |cx, hidden| {
            this.block(cx, hidden, padding.as_ref())
        });
        cx.rms_norm("norm_f", &last)
    }

    /// `Mamba2Block.forward` with `residual_in_fp32`.
    fn block(&self, cx: &Cx, input: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let normed = {
            let narrow = input.to(cx.env.weights);
            cx.rms_norm("norm", &narrow)
        };
        let residual = input.to(DType::F32);
        let mixed = cx.module("mixer", |cx| self.text.mamba2(cx, &normed, padding));
        drop(normed);
        residual.add(&mixed)
    }
}
