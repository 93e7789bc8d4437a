//! What the text encoders descended from BERT share.

use super::losses::class_loss;
use super::{Cx, ModelError, Output, Sizes};
use crate::tape::Tensor;

/// The sizes of a stack of transformer layers over tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub layers: u64,
    pub hidden: u64,
    pub heads: u64,
    /// The width inside the feed-forward network (`intermediate_size`).
    pub ffn: u64,
    pub vocab: u64,
    /// Rows of the position embeddings (`max_position_embeddings`).
    pub positions: u64,
}

impl Config {
    pub(crate) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        let hidden = sizes.need("hidden")?;
        Ok(Self {
            layers: sizes.need("layers")?,
            hidden,
            heads: sizes.need("heads")?.max(1),
            ffn: sizes.or("ffn", 4 * hidden),
            vocab: sizes.need("vocab")?,
            positions: sizes.or("ctx", 512),
        })
    }
}

/// Logits with their cross-entropy.
pub(crate) fn output(cx: &Cx, logits: Tensor, labels: &Tensor) -> Output {
    let loss = class_loss(cx, &logits, labels);
    Output {
        loss,
        held: vec![logits],
    }
}

impl Cx {
    /// The weight of the embedding at `path` below this module, for a head that is tied to it.
    pub fn embedding_weight(&self, path: &[&'static str], rows: u64, width: u64) -> Tensor {
        match path {
            [name, rest @ ..] => self.module(name, |cx| cx.embedding_weight(rest, rows, width)),
            [] => self.param("weight", [rows, width]).tensor(),
        }
    }
}

/// `BertIntermediate` and `BertOutput`.
pub(crate) fn feed_forward(cx: &Cx, x: &Tensor, ffn: u64) -> Tensor {
    let inner = cx.module("intermediate", |cx| {
        cx.linear("dense", x, ffn, true).pipe(Tensor::gelu)
    });
    cx.module("output", |cx| add_and_norm(cx, &inner, x))
}

/// `BertSelfOutput` and `BertOutput`: a layer back to the model's width, and the norm of its sum with the residual.
pub(crate) fn add_and_norm(cx: &Cx, x: &Tensor, residual: &Tensor) -> Tensor {
    let mut x = cx.linear("dense", x, residual.size(-1), true);
    x = cx.dropout(&x, 0.1);
    let sum = x.add(residual);
    cx.layer_norm("LayerNorm", &sum)
}

/// A layer of the width that is made and never run.
pub(crate) fn unread_dense(cx: &Cx, name: &'static str, hidden: u64) {
    cx.module(name, |cx| {
        cx.param("weight", [hidden, hidden]);
        cx.param("bias", [hidden]);
    });
}

/// `RobertaClassificationHead`: from the first token.
pub(crate) fn classification_head(cx: &Cx, sequence: &Tensor, classes: u64) -> Tensor {
    cx.module("classifier", |cx| {
        let mut x = sequence.select(1);
        x = cx.dropout(&x, 0.1);
        x = cx.linear("dense", &x, sequence.size(-1), true).tanh();
        x = cx.dropout(&x, 0.1);
        cx.linear("out_proj", &x, classes, true)
    })
}

/// `BertPooler`: the first token through a layer and tanh.
pub(crate) fn pooler(cx: &Cx, name: &'static str, sequence: &Tensor) -> Tensor {
    cx.linear(name, &sequence.select(1), sequence.size(-1), true)
        .pipe(Tensor::tanh)
}
