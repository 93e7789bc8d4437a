//! ESM Cambrian, a language model of proteins (transformers/models/esmc/modeling_esmc.py): norms over whole queries and keys,
//! gated MLPs, residuals that are divided by a number.

use super::attention::{Eager, attend, heads};
use super::decoder::{full_tables, rotate_half, rotated};
use super::encoder::{self, Config};
use super::inputs::token_ids_and_labels;
use super::masks::bidirectional_mask;
use super::{Cx, ModelError, Net, Output, Sizes, TextEncoder};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Esmc {
    config: Config,
    head_dim: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let sizes = sizes.with_defaults([("vocab", 64), ("ctx", 2048)]);
    let config = Config::new(&sizes)?;
    Ok(Box::new(Esmc {
        head_dim: sizes.or("head_dim", config.hidden / config.heads),
        config,
    }))
}

impl Net for Esmc {
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
        let sequence = self.encode(cx, ids, batch.get(2));
        let logits = self.lm_head(cx, &sequence);
        // `ForMaskedLMLoss` casts the logits up.
        let loss = cx.module("loss", |_| {
            let classes = logits.size(-1);
            let wide = logits.to(DType::F32);
            let rows = wide.view(&[wide.numel() / classes.max(1), classes]);
            rows.cross_entropy(&labels.view(&[labels.numel()]))
        });
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl TextEncoder for Esmc {
    fn encode(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        cx.module("esmc", |cx| self.model(cx, ids, padding))
    }

    fn sequence_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        encoder::classification_head(cx, hidden, classes)
    }

    /// `GenericForTokenClassification`.
    fn token_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        let dropped = cx.dropout(hidden, 0.1);
        cx.linear("score", &dropped, classes, true)
    }
}

/// `EsmcLayerNorm.forward`: a layer norm in the type of its input whatever autocast says.
fn norm(cx: &Cx, name: &'static str, x: &Tensor, bias: bool) -> Tensor {
    cx.module(name, |cx| {
        let weight = cx.param("weight", [x.size(-1)]).tensor();
        let bias = bias.then(|| cx.param("bias", [x.size(-1)]).tensor());
        x.layer_norm(Some(&weight), bias.as_ref())
            .pipe(|normed| normed.to(x.dtype()))
    })
}

impl Esmc {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let Config { hidden, vocab, .. } = self.config;
        let embedded = cx.input_embedding("embed_tokens", ids, vocab, hidden);
        let positions = ids
            .constant("arange", &[ids.size(1)], DType::I64)
            .unsqueeze(0);
        let names = ["inv_freq", "original_inv_freq"];
        let tables = full_tables(cx, &positions, self.head_dim, embedded.dtype(), names);
        let mask = bidirectional_mask(cx, ids.size(1), padding, embedded.dtype());
        let this = *self;
        let layer = move |cx: &Cx, hidden: &Tensor| this.layer(cx, hidden, &mask, &tables);
        let last = cx.equal_stack("layers", self.config.layers, embedded, layer);
        let normed = norm(cx, "norm", &last, false);
        drop(positions);
        normed
    }

    /// `EsmcLayer.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor, mask: &AttentionMask, tables: &[Tensor; 2]) -> Tensor {
        let (attended, weights) = norm(cx, "input_layernorm", input, true)
            .pipe(|normed| cx.module("self_attn", |cx| self.attention(cx, normed, mask, tables)));
        let hidden = attended.mul_scalar().pipe(|scaled| input.add(scaled));
        let out = norm(cx, "post_attention_layernorm", &hidden, true)
            .pipe(|normed| cx.module("mlp", |cx| self.mlp(cx, normed)))
            .pipe(Tensor::mul_scalar)
            .pipe(|scaled| hidden.add(scaled));
        drop((attended, weights));
        out
    }

    fn mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let product = {
            let mut gate = cx.linear("gate_proj", x, self.config.ffn, false);
            gate = gate.silu();
            let up = cx.linear("up_proj", x, self.config.ffn, false);
            gate.mul(&up)
        };
        cx.linear("down_proj", &product, self.config.hidden, false)
    }

    fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        mask: &AttentionMask,
        tables: &[Tensor; 2],
    ) -> (Tensor, Option<Tensor>) {
        let h = self.config.heads;
        let width = h * self.head_dim;
        let normed = |name, norm_name| {
            cx.linear(name, x, width, false)
                .pipe(|projected| norm(cx, norm_name, projected, false))
                .to(x.dtype())
        };
        let mut q = normed("q_proj", "q_norm");
        let mut k = normed("k_proj", "k_norm");
        let mut v = cx.linear("v_proj", x, width, false);
        q = heads(&q, h);
        k = heads(&k, h);
        v = heads(&v, h);
        let tables = tables.each_ref().map(|table| table.unsqueeze(1));
        [q, k] = [&q, &k].map(|x| rotated(x, &tables, rotate_half));
        let (mut out, weights) = attend(cx, [&q, &k, &v], mask, 0.0, Eager::default());
        out = out.reshape(&[x.size(0), x.size(1), width]);
        (
            cx.linear("o_proj", &out, self.config.hidden, false),
            weights,
        )
    }

    /// `EsmcMaskedLMHead`; nothing is tied.
    fn lm_head(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        let Config { hidden, vocab, .. } = self.config;
        cx.module("lm_head", |cx| {
            let mut x = cx.linear("dense", sequence, hidden, true);
            x = x.gelu();
            x = cx.layer_norm("layer_norm", &x);
            cx.linear("decoder", &x, vocab, true)
        })
    }
}
