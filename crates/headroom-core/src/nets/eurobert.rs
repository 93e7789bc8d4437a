//! EuroBERT (transformers/models/eurobert/modeling_eurobert.py): Llama's blocks with attention in both directions.

use super::decoder::{attention_function, full_tables, rotate_half, rotated};
use super::encoder::Config;
use super::inputs::token_ids_and_labels;
use super::masks::bidirectional_mask;
use super::{Cx, ModelError, Net, Output, Sizes, TextEncoder};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct EuroBert {
    config: Config,
    key_value_heads: u64,
    head_dim: u64,
    tied: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let config = Config::new(sizes)?;
    Ok(Box::new(EuroBert {
        key_value_heads: sizes.or("kv", config.heads).max(1),
        head_dim: sizes.or("head_dim", config.hidden / config.heads),
        tied: sizes.is_set("tied"),
        config,
    }))
}

impl Net for EuroBert {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        token_ids_and_labels(cx, data)
    }

    fn text_encoder(&self) -> Option<&dyn TextEncoder> {
        Some(self)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let Config { hidden, vocab, .. } = self.config;
        let sequence = self.encode(cx, ids, batch.get(2));
        let logits = if self.tied {
            let weight = cx.embedding_weight(&["model", "embed_tokens"], vocab, hidden);
            cx.module("lm_head", |cx| {
                drop(cx.weight_until_tied([vocab, hidden]));
            });
            sequence.linear(&weight, None)
        } else {
            cx.linear("lm_head", &sequence, vocab, false)
        };
        // `ForMaskedLMLoss` casts the logits up.
        let loss = cx.module("loss", |_| {
            let wide = logits.to(DType::F32);
            let rows = wide.view(&[wide.numel() / vocab.max(1), vocab]);
            rows.cross_entropy(&labels.view(&[labels.numel()]))
        });
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl TextEncoder for EuroBert {
    fn encode(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        cx.module("model", |cx| self.model(cx, ids, padding))
    }

    /// `classifier_pooling` is `late`: each token is classified, then their mean is taken.
    fn sequence_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        let inner = cx
            .linear("dense", hidden, self.config.hidden, true)
            .pipe(Tensor::gelu);
        cx.linear("classifier", &inner, classes, true)
            .mean(&[1])
            .squeeze(1)
    }

    fn token_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        cx.linear("classifier", hidden, classes, true)
    }
}

impl EuroBert {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let Config { hidden, vocab, .. } = self.config;
        let embedded = cx.input_embedding("embed_tokens", ids, vocab, hidden);
        let positions = ids
            .constant("arange", &[ids.size(1)], DType::I64)
            .unsqueeze(0);
        let mask = bidirectional_mask(cx, ids.size(1), padding, embedded.dtype());
        let names = ["inv_freq", "original_inv_freq"];
        let tables = full_tables(cx, &positions, self.head_dim, embedded.dtype(), names);
        let this = *self;
        let layer = move |cx: &Cx, hidden: &Tensor| this.layer(cx, hidden, &mask, &tables);
        let last = cx.equal_stack("layers", self.config.layers, embedded.clone(), layer);
        let normed = cx.rms_norm("norm", &last);
        drop((embedded, positions));
        normed
    }

    /// `EuroBertDecoderLayer.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor, mask: &AttentionMask, tables: &[Tensor; 2]) -> Tensor {
        let mut hidden = cx.rms_norm("input_layernorm", input);
        let (attended, weights) =
            cx.module("self_attn", |cx| self.attention(cx, &hidden, mask, tables));
        hidden = attended;
        hidden = input.add(&hidden);
        let residual = hidden.clone();
        hidden = cx.rms_norm("post_attention_layernorm", &hidden);
        hidden = cx.module("mlp", |cx| {
            let product = {
                let mut gate = cx.linear("gate_proj", &hidden, self.config.ffn, false);
                gate = gate.silu();
                let up = cx.linear("up_proj", &hidden, self.config.ffn, false);
                gate.mul(&up)
            };
            cx.linear("down_proj", &product, self.config.hidden, false)
        });
        hidden = residual.add(&hidden);
        drop(weights);
        hidden
    }

    fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        mask: &AttentionMask,
        tables: &[Tensor; 2],
    ) -> (Tensor, Option<Tensor>) {
        let (b, s, d) = (x.size(0), x.size(1), self.head_dim);
        let (h, kv) = (self.config.heads, self.key_value_heads);
        let heads = |name, n: u64| {
            let projected = cx.linear(name, x, n * d, false);
            projected.view(&[b, s, n, d]).transpose(1, 2)
        };
        let mut q = heads("q_proj", h);
        let mut k = heads("k_proj", kv);
        let v = heads("v_proj", kv);
        let tables = tables.each_ref().map(|table| table.unsqueeze(1));
        [q, k] = [&q, &k].map(|x| rotated(x, &tables, rotate_half));
        let (mut out, weights) = attention_function(cx, [&q, &k, &v], mask, h / kv, false, 0.0);
        out = out.reshape(&[b, s, h * d]).contiguous();
        (
            cx.linear("o_proj", &out, self.config.hidden, false),
            weights,
        )
    }
}
