//! ESM-2, a language model of proteins (transformers/models/esm/modeling_esm.py).

use super::attention::{Eager, attend, heads};
use super::bidirectional::bidirectional_mask;
use super::inputs::token_ids_and_labels;
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::scenario::Data;
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
struct Esm {
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    vocab: u64,
    positions: u64,
}

/// What all layers are given.
#[derive(Clone)]
struct Shared {
    mask: AttentionMask,
    /// Cosines and sines of the rotary embedding, one for all heads.
    rope: [Tensor; 2],
}

pub fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    Ok(Box::new(Esm {
        layers: sizes.need("layers")?,
        hidden,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.or("ffn", 4 * hidden),
        vocab: sizes.or("vocab", 33),
        positions: sizes.or("ctx", 1026),
    }))
}

impl Net for Esm {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        token_ids_and_labels(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let sequence = cx.within("esm", |cx| self.model(cx, ids, batch.get(2)));
        let table = cx.within("esm", |cx| {
            cx.within("embeddings", |cx| {
                cx.within("word_embeddings", |cx| {
                    cx.param("weight", [self.vocab, self.hidden])
                })
            })
        });
        let logits = cx.within("lm_head", |cx| {
            let bias = cx.param("bias", [self.vocab]);
            let mut x = cx.linear("dense", &sequence, self.hidden, true);
            x = gelu(&x);
            x = cx.layer_norm("layer_norm", &x);
            x.linear(&table.tensor(), None)
                .then(|logits| logits.add(&bias.tensor()))
        });
        let loss = cx.within("loss", |_| {
            let rows = labels.numel();
            logits
                .view(&[rows, self.vocab])
                .cross_entropy(&labels.view(&[rows]))
        });
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl Esm {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let embedded = cx.within("embeddings", |cx| self.embeddings(cx, ids, padding));
        // The head that reads contacts off attention is there and trained by nothing here.
        cx.within("contact_head", |cx| {
            cx.within("regression", |cx| {
                cx.param("weight", [1, self.layers * self.heads]);
                cx.param("bias", [1]);
            });
        });
        let shared = Shared {
            mask: bidirectional_mask(cx, ids.size(1), padding, embedded.dtype()),
            rope: self.rope(cx, ids, embedded.dtype()),
        };
        let this = *self;
        cx.within("encoder", |cx| {
            let state = vec![embedded.clone()];
            let last = cx.layers("layer", self.layers, state, move |cx, state, _| {
                state.iter().map(|x| this.layer(cx, x, &shared)).collect()
            });
            let normed = last
                .first()
                .map(|it| cx.layer_norm("emb_layer_norm_after", it));
            normed.unwrap_or_else(|| embedded.clone())
        })
    }

    /// Masked tokens count as dropped ones: they are zeroed and the rest is scaled up.
    fn embeddings(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let (b, s) = (ids.size(0), ids.size(1));
        cx.buffer("position_ids", [1, self.positions], DType::I64);
        let words = cx.input_embedding("word_embeddings", ids, self.vocab, self.hidden);
        let is_mask = || ids.constant("eq", &[b, s, 1], DType::Bool);
        let mut embedded = is_mask().then(|mask| words.masked_fill(mask));
        let _lengths = padding.map(|mask| mask.constant("sum", &[b], DType::I64));
        let observed = is_mask().then(|_| ids.constant("div", &[b], DType::F32));
        let rest = observed.then(|it| it.constant("rsub", &[b, 1, 1], DType::F32));
        embedded = embedded.scale().then(|scaled| scaled.div(&rest));
        embedded = embedded.to(words.dtype());
        if let Some(mask) = padding {
            embedded = embedded.mul(&mask.unsqueeze(-1));
            embedded = embedded.to(words.dtype());
        }
        embedded
    }

    fn rope(&self, cx: &Cx, ids: &Tensor, dtype: DType) -> [Tensor; 2] {
        let d = self.hidden / self.heads;
        cx.within("rotary_embeddings", |cx| {
            cx.tape.no_grad(|| {
                let frequencies = cx.buffer("inv_freq", [d / 2], DType::F32);
                let positions = ids.constant("arange", &[1, ids.size(1), 1], DType::I64);
                let angles = positions
                    .to(DType::F32)
                    .then(|positions| positions.mul(&frequencies));
                let both = Tensor::cat(&angles, &[&angles], -1);
                let cos = both.cos().then(Tensor::scale);
                let sin = both.sin().then(Tensor::scale);
                [cos, sin].map(|it| it.to(dtype).unsqueeze(1))
            })
        })
    }

    fn layer(&self, cx: &Cx, input: &Tensor, shared: &Shared) -> Tensor {
        let attended = cx.within("attention", |cx| {
            let normed = cx.layer_norm("LayerNorm", input);
            let (out, _weights) = cx.within("self", |cx| self.attention(cx, &normed, shared));
            cx.within("output", |cx| {
                let x = cx.linear("dense", &out, self.hidden, true);
                x.add(input)
            })
        });
        let normed = cx.layer_norm("LayerNorm", &attended);
        let fed = cx.within("intermediate", |cx| {
            let x = cx.linear("dense", &normed, self.ffn, true);
            gelu(&x)
        });
        cx.within("output", |cx| {
            let x = cx.linear("dense", &fed, self.hidden, true);
            x.add(&attended)
        })
    }

    fn attention(&self, cx: &Cx, x: &Tensor, shared: &Shared) -> (Tensor, Option<Tensor>) {
        let [mut q, mut k, v] = ["query", "key", "value"]
            .map(|name| heads(&cx.linear(name, x, self.hidden, true), self.heads));
        q = q.scale();
        let (dtype, turned) = (q.dtype(), [turn(&q, &shared.rope), turn(&k, &shared.rope)]);
        let [turned_q, turned_k] = turned;
        q = turned_q.to(dtype);
        k = turned_k.to(dtype);
        drop((turned_q, turned_k));
        let (out, weights) = attend(cx, [&q, &k, &v], &shared.mask, 0.0, Eager::default());
        (out.reshape(&[x.size(0), x.size(1), self.hidden]), weights)
    }
}

/// `apply_rotary_pos_emb`, in fp32.
fn turn(x: &Tensor, [cos, sin]: &[Tensor; 2]) -> Tensor {
    let straight = x.to(DType::F32).then(|x| x.mul(cos));
    let crossed = x
        .to(DType::F32)
        .then(rotate_half)
        .then(|rotated| rotated.mul(sin));
    straight.add(&crossed)
}

fn rotate_half(x: &Tensor) -> Tensor {
    let half = x.size(-1) / 2;
    let (first, second) = (x.narrow(-1, half), x.narrow(-1, half));
    let negative = second.neg();
    Tensor::cat(&negative, &[&first], -1)
}

/// `x * 0.5 * (1.0 + torch.erf(x / sqrt(2)))`, an operation at a time.
fn gelu(x: &Tensor) -> Tensor {
    let half = x.scale();
    let gate = x.scale().then(Tensor::erf).then(Tensor::shift);
    half.mul(&gate)
}
