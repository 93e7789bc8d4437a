//! DeBERTa, the first version: relative positions without buckets, projections of their own for them, and norms in Python
//! (transformers/models/deberta/modeling_deberta.py).

use super::encoder::{self, Config};
use super::inputs::token_ids_and_labels;
use super::{Cx, ModelError, Net, Output, Sizes, TextEncoder};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Deberta {
    config: Config,
    /// `max_relative_positions`.
    reach: u64,
    types: u64,
}

/// The arguments of every layer besides its hidden states.
#[derive(Clone)]
struct LayerInputs {
    /// Which token attends to which, `[B, 1, S, S]`.
    mask: Tensor,
    /// Distances, `[1, S, S]`.
    relative_pos: Tensor,
    rel_embeddings: Tensor,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let config = Config::new(sizes)?;
    Ok(Box::new(Deberta {
        reach: sizes.or("reach", config.positions),
        types: sizes.or("types", 0),
        config,
    }))
}

impl Net for Deberta {
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
        encoder::output(cx, self.mlm_head(cx, &sequence), labels)
    }
}

impl TextEncoder for Deberta {
    fn encode(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        cx.module("deberta", |cx| self.model(cx, ids, padding))
    }

    /// Behind `ContextPooler`, which drops nothing out.
    fn sequence_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        let pooled = cx.module("pooler", |cx| {
            cx.linear("dense", &hidden.select(1), self.config.hidden, true)
                .pipe(Tensor::gelu)
        });
        let dropped = cx.dropout(&pooled, 0.1);
        cx.linear("classifier", &dropped, classes, true)
    }
}

impl Deberta {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let (b, s) = (ids.size(0), ids.size(1));
        let mask = padding.map_or_else(|| cx.tape.empty("ones", [b, s], DType::F32), Tensor::clone);
        let _token_types = cx.tape.empty("zeros", [b, s], DType::I64);
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, ids, &mask));
        cx.module("encoder", |cx| {
            let mask = mask.constant("mul", &[b, 1, s, s], mask.dtype());
            let relative_pos = mask.constant("sub", &[1, s, s], DType::I64);
            let rel_embeddings = cx.module("rel_embeddings", |cx| {
                cx.param("weight", [2 * self.reach, self.config.hidden])
                    .tensor()
            });
            let inputs = LayerInputs {
                mask,
                relative_pos,
                rel_embeddings,
            };
            // All hidden states are returned, so they live to the end of the model.
            let (this, mut states) = (*self, vec![embedded.clone()]);
            for i in 0..self.config.layers as usize {
                let state = states.last().cloned().into_iter().collect();
                let inputs = inputs.clone();
                let outputs = cx.layer("layer", i, state, move |cx, state| {
                    state.iter().map(|x| this.layer(cx, x, &inputs)).collect()
                });
                states.extend(outputs);
                if cx.tape.is_over_budget() {
                    break;
                }
            }
            states.pop().unwrap_or(embedded)
        })
    }

    fn embeddings(&self, cx: &Cx, ids: &Tensor, mask: &Tensor) -> Tensor {
        let Config {
            hidden,
            vocab,
            positions,
            ..
        } = self.config;
        cx.buffer("position_ids", [1, positions], DType::I64);
        let words = cx.input_embedding("word_embeddings", ids, vocab, hidden);
        // Without `position_biased_input` positions are not added; their zeros are made all the same.
        let zeros = words.constant("zeros_like", words.shape(), words.dtype());
        let mut embeddings = words.clone();
        if self.types > 0 {
            let types = ids.constant("zeros", ids.shape(), DType::I64);
            let kinds = cx.embedding("token_type_embeddings", &types, self.types, hidden);
            embeddings = embeddings.add(&kinds);
        }
        embeddings = norm(cx, "LayerNorm", &embeddings);
        let mask = mask.unsqueeze(2).to(embeddings.dtype());
        embeddings = embeddings.mul(&mask);
        let out = cx.dropout(&embeddings, 0.1);
        drop((words, zeros));
        out
    }

    /// `DebertaLayer.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor, inputs: &LayerInputs) -> Tensor {
        let Config { hidden, ffn, .. } = self.config;
        let finished = |cx: &Cx, x: &Tensor, residual: &Tensor| {
            let mut x = cx.linear("dense", x, hidden, true);
            x = cx.dropout(&x, 0.1);
            x.add(residual).pipe(|sum| norm(cx, "LayerNorm", sum))
        };
        let attended = cx.module("attention", |cx| {
            let out = cx.module("self", |cx| self.attention(cx, input, inputs));
            cx.module("output", |cx| finished(cx, &out, input))
        });
        let inner = cx.module("intermediate", |cx| {
            cx.linear("dense", &attended, ffn, true).pipe(Tensor::gelu)
        });
        cx.module("output", |cx| finished(cx, &inner, &attended))
    }

    /// `DisentangledSelfAttention.forward`, whose names live to its end.
    fn attention(&self, cx: &Cx, x: &Tensor, inputs: &LayerInputs) -> Tensor {
        let Config { hidden, heads, .. } = self.config;
        let (b, s, d) = (x.size(0), x.size(1), hidden / heads);
        let biases = ["q_bias", "v_bias"].map(|name| cx.param(name, [hidden]).tensor());
        let all = cx
            .linear("in_proj", x, 3 * hidden, false)
            .view(&[b, s, heads, 3 * d])
            .permute(&[0, 2, 1, 3]);
        let parts: Result<[Tensor; 3], _> = all.chunk(3, -1).try_into();
        let Ok([mut q, k, mut v]) = parts else {
            return x.clone();
        };
        let wide = |bias: &Tensor| bias.view(&[1, heads, 1, d]);
        q = q.add(&wide(&biases[0]));
        v = v.add(&wide(&biases[1]));
        q = q.mul_scalar();
        let mut scores = q.matmul(&k.transpose(-1, -2));
        let rel_embeddings = cx.dropout(&inputs.rel_embeddings, 0.1);
        let bias = self.position_bias(cx, [&q, &k], &inputs.relative_pos, &rel_embeddings);
        scores = scores.add(&bias);
        let mask = inputs.mask.constant("to", inputs.mask.shape(), DType::Bool);
        scores = {
            let masked = mask.constant("bitwise_not", mask.shape(), DType::Bool);
            scores.masked_fill(&masked)
        };
        let mut shares = scores.softmax(None);
        shares = cx.dropout(&shares, 0.1);
        let mut out = shares.matmul(&v);
        out = out.permute(&[0, 2, 1, 3]).contiguous();
        drop((all, q, k, v, rel_embeddings, bias, mask, scores, shares));
        out.view(&[b, s, hidden])
    }

    /// `disentangled_att_bias`: from content to positions and from positions to content.
    fn position_bias(
        &self,
        cx: &Cx,
        [q, k]: [&Tensor; 2],
        relative_pos: &Tensor,
        rel_embeddings: &Tensor,
    ) -> Tensor {
        let Config { hidden, heads, .. } = self.config;
        let (b, s, d) = (q.size(0), q.size(2), hidden / heads);
        let span = self.reach.min(s);
        let near = rel_embeddings.narrow(0, 2 * span).unsqueeze(0);
        let split = |x: Tensor| x.view(&[1, 2 * span, heads, d]).permute(&[0, 2, 1, 3]);
        let places = || {
            let moved = relative_pos.constant("add", &[1, 1, s, s], DType::I64);
            moved.pipe(|_| relative_pos.constant("clamp", &[1, 1, s, s], DType::I64))
        };
        let index = |places: &Tensor| places.expand(&[b, heads, s, s]);

        let pos_key = split(cx.linear("pos_proj", &near, hidden, false));
        let mut c2p_att = q.matmul(&pos_key.transpose(-1, -2));
        let c2p_pos = places();
        c2p_att = c2p_att.gather(&index(&c2p_pos));

        let pos_query =
            split(cx.linear("pos_q_proj", &near, hidden, true)).pipe(Tensor::mul_scalar);
        let p2c_pos = places();
        let mut p2c_att = k.matmul(&pos_query.transpose(-1, -2));
        p2c_att = p2c_att.gather(&index(&p2c_pos)).transpose(-1, -2);
        let score = c2p_att.add(&p2c_att);
        drop((pos_key, pos_query, c2p_pos, p2c_pos, c2p_att, p2c_att));
        score
    }

    /// `LegacyDebertaOnlyMLMHead`, whose decoder is tied to the word embeddings.
    fn mlm_head(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        let Config { hidden, vocab, .. } = self.config;
        let path = ["deberta", "embeddings", "word_embeddings"];
        let weight = cx.embedding_weight(&path, vocab, hidden);
        cx.module("cls", |cx| {
            cx.module("predictions", |cx| {
                let bias = cx.param("bias", [vocab]).tensor();
                drop(cx.weight_until_tied([vocab, hidden]));
                let x = cx.module("transform", |cx| {
                    let x = cx
                        .linear("dense", sequence, hidden, true)
                        .pipe(Tensor::gelu);
                    cx.layer_norm("LayerNorm", &x)
                });
                x.linear(&weight, Some(&bias))
            })
        })
    }
}

/// `DebertaLayerNorm.forward`, an operation at a time in fp32.
fn norm(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    cx.module(name, |cx| {
        let [weight, bias] = ["weight", "bias"].map(|name| cx.param(name, [x.size(-1)]).tensor());
        if cx.tape.declaring() {
            return x.clone();
        }
        let mut hidden = x.to(DType::F32);
        let mean = hidden.mean(&[-1]);
        let variance = {
            let centred = hidden.sub(&mean);
            let squares = centred.pow();
            drop(centred);
            squares.mean(&[-1])
        };
        hidden = {
            let centred = hidden.sub(&mean);
            let deviation = variance.add_scalar().pipe(Tensor::sqrt);
            centred.div(&deviation)
        };
        hidden = hidden.to(x.dtype());
        let out = weight.mul(&hidden).pipe(|scaled| scaled.add(&bias));
        drop((mean, variance));
        out
    })
}
