//! ESM-2, a language model of proteins (transformers/models/esm/modeling_esm.py).

use super::attention::{Eager, attend, heads};
use super::encoder::{self, Config};
use super::inputs::token_ids_and_labels;
use super::masks::bidirectional_mask;
use super::{Cx, ModelError, Net, Output, Sizes, TextEncoder};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Esm {
    config: Config,
    /// `hidden_dropout_prob` and `attention_probs_dropout_prob`, which published models have at zero.
    dropout: f64,
}

/// The arguments of every layer besides its hidden states.
#[derive(Clone)]
struct LayerInputs {
    mask: AttentionMask,
    /// Cosines and sines of the rotary embedding, shared by all heads.
    rotary: [Tensor; 2],
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let sizes = sizes.with_defaults([("vocab", 33), ("ctx", 1026)]);
    let config = Config::new(&sizes)?;
    let dropout = if sizes.is_set("drop") { 0.1 } else { 0.0 };
    Ok(Box::new(Esm { config, dropout }))
}

impl Net for Esm {
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
        let sequence = cx.module("esm", |cx| self.model(cx, ids, batch.get(2)));
        encoder::output(cx, self.lm_head(cx, &sequence), labels)
    }
}

impl TextEncoder for Esm {
    fn encode(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        cx.module("esm", |cx| self.model(cx, ids, padding))
    }

    fn unread(&self, cx: &Cx) {
        cx.module("esm", |cx| {
            cx.module("pooler", |cx| {
                encoder::unread_dense(cx, "dense", self.config.hidden);
            });
        });
    }

    fn sequence_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        encoder::classification_head(cx, hidden, classes)
    }
}

impl Esm {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let Config { layers, heads, .. } = self.config;
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, ids, padding));
        // The head that reads contacts off attention is not run; its parameters are on the device all the same.
        cx.module("contact_head", |cx| {
            cx.module("regression", |cx| {
                cx.param("weight", [1, layers * heads]);
                cx.param("bias", [1]);
            });
        });
        let inputs = LayerInputs {
            mask: bidirectional_mask(cx, ids.size(1), padding, embedded.dtype()),
            rotary: self.rotary_embeddings(cx, ids, embedded.dtype()),
        };
        let this = *self;
        cx.module("encoder", |cx| {
            let last = cx.equal_stack("layer", layers, embedded.clone(), move |cx, hidden| {
                this.layer(cx, hidden, &inputs)
            });
            cx.layer_norm("emb_layer_norm_after", &last)
        })
    }

    /// `EsmEmbeddings.forward` with `token_dropout`: masked tokens are zeroed and the rest is scaled up.
    fn embeddings(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let Config {
            hidden,
            vocab,
            positions,
            ..
        } = self.config;
        let (b, s) = (ids.size(0), ids.size(1));
        cx.buffer("position_ids", [1, positions], DType::I64);
        let words = cx.input_embedding("word_embeddings", ids, vocab, hidden);
        let is_mask = || ids.constant("eq", &[b, s, 1], DType::Bool);
        let mut embedded = is_mask().pipe(|mask| words.masked_fill(mask));
        let _lengths = padding.map(|mask| mask.constant("sum", &[b], DType::I64));
        let mask_ratio = is_mask().pipe(|_| ids.constant("div", &[b], DType::F32));
        let observed = mask_ratio.pipe(|ratio| ratio.constant("rsub", &[b, 1, 1], DType::F32));
        embedded = embedded.mul_scalar().pipe(|scaled| scaled.div(&observed));
        embedded = embedded.to(words.dtype());
        if let Some(mask) = padding {
            embedded = embedded.mul(&mask.unsqueeze(-1));
            embedded = embedded.to(words.dtype());
        }
        embedded
    }

    /// `RotaryEmbedding.forward`.
    fn rotary_embeddings(&self, cx: &Cx, ids: &Tensor, dtype: DType) -> [Tensor; 2] {
        let head_dim = self.config.hidden / self.config.heads;
        cx.module("rotary_embeddings", |cx| {
            cx.tape.no_grad(|| {
                let frequencies = cx.buffer("inv_freq", [head_dim / 2], DType::F32);
                let positions = ids.constant("arange", &[1, ids.size(1), 1], DType::I64);
                let angles = positions
                    .to(DType::F32)
                    .pipe(|positions| positions.mul(&frequencies));
                let both = Tensor::cat(&angles, &[&angles], -1);
                let cos = both.cos().pipe(Tensor::mul_scalar);
                let sin = both.sin().pipe(Tensor::mul_scalar);
                [cos, sin].map(|table| table.to(dtype).unsqueeze(1))
            })
        })
    }

    /// `EsmLayer.forward`, with its norms before attention and feed-forward.
    fn layer(&self, cx: &Cx, input: &Tensor, inputs: &LayerInputs) -> Tensor {
        let Config { hidden, ffn, .. } = self.config;
        let attended = cx.module("attention", |cx| {
            let normed = cx.layer_norm("LayerNorm", input);
            let (out, _weights) = cx.module("self", |cx| self.attention(cx, &normed, inputs));
            cx.module("output", |cx| {
                let mut x = cx.linear("dense", &out, hidden, true);
                x = cx.dropout(&x, self.dropout);
                x.add(input)
            })
        });
        let normed = cx.layer_norm("LayerNorm", &attended);
        let inner = cx.module("intermediate", |cx| {
            let x = cx.linear("dense", &normed, ffn, true);
            gelu(&x)
        });
        cx.module("output", |cx| {
            let mut x = cx.linear("dense", &inner, hidden, true);
            x = cx.dropout(&x, self.dropout);
            x.add(&attended)
        })
    }

    fn attention(&self, cx: &Cx, x: &Tensor, inputs: &LayerInputs) -> (Tensor, Option<Tensor>) {
        let hidden = self.config.hidden;
        let [mut q, mut k, v] = ["query", "key", "value"]
            .map(|name| heads(&cx.linear(name, x, hidden, true), self.config.heads));
        q = q.mul_scalar();
        let [rotated_q, rotated_k] = [&q, &k].map(|x| apply_rotary_pos_emb(x, &inputs.rotary));
        let dtype = q.dtype();
        q = rotated_q.to(dtype);
        k = rotated_k.to(dtype);
        drop((rotated_q, rotated_k));
        let (out, weights) = attend(
            cx,
            [&q, &k, &v],
            &inputs.mask,
            self.dropout,
            Eager::default(),
        );
        (out.reshape(&[x.size(0), x.size(1), hidden]), weights)
    }

    /// `EsmLMHead`, whose decoder is tied to the word embeddings.
    fn lm_head(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        let Config { hidden, vocab, .. } = self.config;
        let path = ["esm", "embeddings", "word_embeddings"];
        let weight = cx.embedding_weight(&path, vocab, hidden);
        cx.module("lm_head", |cx| {
            let bias = cx.param("bias", [vocab]);
            let mut x = cx.linear("dense", sequence, hidden, true);
            x = gelu(&x);
            x = cx.layer_norm("layer_norm", &x);
            x.linear(&weight, None)
                .pipe(|logits| logits.add(&bias.tensor()))
        })
    }
}

/// `apply_rotary_pos_emb`, in fp32.
fn apply_rotary_pos_emb(x: &Tensor, [cos, sin]: &[Tensor; 2]) -> Tensor {
    let by_cos = x.to(DType::F32).pipe(|x| x.mul(cos));
    let by_sin = x
        .to(DType::F32)
        .pipe(rotate_half)
        .pipe(|rotated| rotated.mul(sin));
    by_cos.add(&by_sin)
}

fn rotate_half(x: &Tensor) -> Tensor {
    let half = x.size(-1) / 2;
    let (first, second) = (x.narrow(-1, half), x.narrow(-1, half));
    let negative = second.neg();
    Tensor::cat(&negative, &[&first], -1)
}

/// `x * 0.5 * (1.0 + torch.erf(x / sqrt(2)))`, an operation at a time.
fn gelu(x: &Tensor) -> Tensor {
    let half = x.mul_scalar();
    let gate = x.mul_scalar().pipe(Tensor::erf).pipe(Tensor::add_scalar);
    half.mul(&gate)
}
