//! MPNet (transformers/models/mpnet/modeling_mpnet.py).

use super::attention::heads;
use super::encoder::{self, Config};
use super::inputs::scan_scratch;
use super::masks::bidirectional_mask;
use super::t5::relative_position_bucket;
use super::{Cx, ModelError, Net, Output, Sizes, TextEncoder};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::{Attention, Data};

#[derive(Clone, Copy, Debug)]
struct MpNet {
    config: Config,
    /// `relative_attention_num_buckets`.
    buckets: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(MpNet {
        config: Config::new(sizes)?,
        buckets: sizes.or("buckets", 32),
    }))
}

impl Net for MpNet {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        super::inputs::token_ids_and_labels(cx, data)
    }

    fn text_encoder(&self) -> Option<&dyn TextEncoder> {
        Some(self)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let sequence = self.encode(cx, ids, batch.get(2));
        encoder::output(cx, self.head(cx, &sequence), labels)
    }
}

impl TextEncoder for MpNet {
    fn encode(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        // Its attention is always eager.
        let eager = cx.part(cx.env.weights, |training| {
            training.attention = Attention::Eager;
        });
        eager.module("mpnet", |cx| self.model(cx, ids, padding))
    }

    fn unread(&self, cx: &Cx) {
        cx.module("mpnet", |cx| {
            cx.module("pooler", |cx| {
                encoder::unread_dense(cx, "dense", self.config.hidden);
            });
        });
    }

    fn sequence_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        encoder::classification_head(cx, hidden, classes)
    }
}

impl MpNet {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, ids));
        let mask = bidirectional_mask(cx, ids.size(1), padding, embedded.dtype());
        cx.module("encoder", |cx| {
            let bias = self.position_bias(cx, ids);
            let mut hidden = embedded.clone();
            for i in 0..self.config.layers as usize {
                // Its layers cannot be checkpointed.
                hidden = cx.list_item("layer", i, |cx| self.layer(cx, &hidden, &mask, &bias));
            }
            hidden
        })
    }

    fn embeddings(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let Config {
            hidden,
            vocab,
            positions,
            ..
        } = self.config;
        let _position_ids = cx.buffer("position_ids", [1, positions], DType::I64);
        let places = position_ids(ids);
        let words = cx.input_embedding("word_embeddings", ids, vocab, hidden);
        let position_embeddings = cx.embedding("position_embeddings", &places, positions, hidden);
        let mut embedded = words.add(&position_embeddings);
        embedded = cx.layer_norm("LayerNorm", &embedded);
        cx.dropout(&embedded, 0.1)
    }

    /// `compute_position_bias`: a copy for each sample, which all layers share.
    fn position_bias(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let (b, s, h) = (ids.size(0), ids.size(1), self.config.heads);
        let index = || ids.constant("arange", &[s], DType::I64);
        let (context, memory) = (index(), index());
        let relative = ids.constant("sub", &[s, s], DType::I64);
        let buckets = relative_position_bucket(&relative, true);
        let values = cx.embedding("relative_attention_bias", &buckets, self.buckets, h);
        drop((context, memory, relative, buckets));
        let bias = values
            .permute(&[2, 0, 1])
            .unsqueeze(0)
            .expand(&[b, h, s, s]);
        drop(values);
        bias.contiguous()
    }

    /// `MPNetLayer.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor, mask: &AttentionMask, bias: &Tensor) -> Tensor {
        let attended = cx.module("attention", |cx| {
            let out = cx.module("attn", |cx| self.attention(cx, input, mask, bias));
            let sum = cx.dropout(&out, 0.1).pipe(|dropped| dropped.add(input));
            let normed = cx.layer_norm("LayerNorm", &sum);
            drop(out);
            normed
        });
        encoder::feed_forward(cx, &attended, self.config.ffn)
    }

    fn attention(&self, cx: &Cx, x: &Tensor, mask: &AttentionMask, bias: &Tensor) -> Tensor {
        let (b, s, hidden) = (x.size(0), x.size(1), self.config.hidden);
        let [q, k, v] =
            ["q", "k", "v"].map(|name| heads(&cx.linear(name, x, hidden, true), self.config.heads));
        let mut scores = q.matmul(&k.transpose(-1, -2));
        scores = scores.mul_scalar();
        scores = scores.add_(bias);
        if let AttentionMask::Given(mask) = mask {
            scores = scores.add(mask);
        }
        let mut shares = scores.softmax(None);
        shares = cx.dropout(&shares, 0.1);
        let mut context = shares.matmul(&v);
        context = context
            .permute(&[0, 2, 1, 3])
            .contiguous()
            .view(&[b, s, hidden]);
        let out = cx.linear("o", &context, hidden, true);
        drop((q, k, v, scores, shares, context));
        out
    }

    /// `MPNetLMHead`, whose decoder is tied to the word embeddings.
    fn head(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        let Config { vocab, hidden, .. } = self.config;
        let weight =
            cx.embedding_weight(&["mpnet", "embeddings", "word_embeddings"], vocab, hidden);
        cx.module("lm_head", |cx| {
            let bias = cx.param("bias", [vocab]);
            let mut x = cx.linear("dense", sequence, hidden, true);
            x = x.gelu();
            x = cx.layer_norm("layer_norm", &x);
            drop(cx.weight_until_tied([vocab, hidden]));
            x.linear(&weight, Some(&bias.tensor()))
        })
    }
}

/// `create_position_ids_from_input_ids`: a running count of what is no padding.
fn position_ids(ids: &Tensor) -> Tensor {
    let make = |op, dtype| ids.constant(op, ids.shape(), dtype);
    let mask = {
        let differs = make("ne", DType::Bool);
        let mask = make("to", DType::I32);
        drop(differs);
        mask
    };
    let sums = make("cumsum", DType::I64);
    scan_scratch(ids);
    let small = make("to", DType::I32);
    drop(sums);
    let counted = make("mul", DType::I32);
    drop((small, mask));
    let wide = make("to", DType::I64);
    drop(counted);
    let places = make("add", DType::I64);
    drop(wide);
    places
}
