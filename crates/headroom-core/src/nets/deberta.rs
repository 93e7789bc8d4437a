//! DeBERTa-v3: content and positions attend to each other (transformers/models/deberta_v2/modeling_deberta_v2.py).

use super::encoder::{self, Config, add_and_norm, feed_forward};
use super::inputs::token_ids_and_labels;
use super::{Cx, ModelError, Net, Output, Sizes, TextEncoder};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Deberta {
    config: Config,
    /// Buckets of relative positions to either side (`position_buckets`).
    buckets: u64,
    headless: bool,
}

/// The arguments of every layer besides its hidden states.
#[derive(Clone)]
struct LayerInputs {
    /// Which token attends to which, `[B, 1, S, S]`.
    mask: Tensor,
    /// Buckets of relative positions, `[1, S, S]`.
    relative_pos: Tensor,
    /// The embeddings of relative positions after their norm.
    rel_embeddings: Tensor,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Deberta {
        config: Config::new(sizes)?,
        buckets: sizes.or("buckets", 256),
        headless: sizes.is_set("head=none"),
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
        let sequence = cx.module("deberta", |cx| self.model(cx, ids, batch.get(2)));
        if self.headless {
            return encoder::output(cx, sequence, labels);
        }
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
            let first = hidden.select(1);
            cx.linear("dense", &first, self.config.hidden, true)
                .pipe(Tensor::gelu)
        });
        let dropped = cx.dropout(&pooled, 0.1);
        cx.linear("classifier", &dropped, classes, true)
    }
}

impl Deberta {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let shape = *ids.shape();
        let mask = padding.map_or_else(|| cx.tape.empty("ones", shape, DType::F32), Tensor::clone);
        let _token_types = cx.tape.empty("zeros", shape, DType::I64);
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, ids, &mask));
        cx.module("encoder", |cx| self.encode(cx, &embedded, &mask))
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
        let _positions = words.constant("zeros_like", words.shape(), words.dtype());
        let mut embeddings = cx.layer_norm("LayerNorm", &words);
        let mask = mask.unsqueeze(2).to(embeddings.dtype());
        embeddings = embeddings.mul(&mask);
        cx.dropout(&embeddings, 0.1)
    }

    /// `DebertaV2Encoder.forward`, which holds its input until it returns.
    fn encode(&self, cx: &Cx, embedded: &Tensor, mask: &Tensor) -> Tensor {
        let (b, s) = (mask.size(0), mask.size(1));
        let mask = mask.constant("mul", &[b, 1, s, s], mask.dtype());
        let relative_pos = {
            let _ids = [(); 2].map(|()| mask.constant("arange", &[s], DType::I64));
            log_bucket_positions(mask.constant("sub", &[s, s], DType::I64))
        };
        let rel_embeddings = cx.module("rel_embeddings", |cx| {
            cx.param("weight", [2 * self.buckets, self.config.hidden])
                .tensor()
        });
        let inputs = LayerInputs {
            mask,
            relative_pos,
            rel_embeddings: cx.layer_norm("LayerNorm", &rel_embeddings),
        };
        let (this, layers) = (*self, self.config.layers);
        cx.equal_stack("layer", layers, embedded.clone(), move |cx, hidden| {
            this.layer(cx, hidden, &inputs)
        })
    }

    fn layer(&self, cx: &Cx, input: &Tensor, inputs: &LayerInputs) -> Tensor {
        let attended = cx.module("attention", |cx| {
            let out = cx.module("self", |cx| self.attention(cx, input, inputs));
            cx.module("output", |cx| add_and_norm(cx, &out, input))
        });
        feed_forward(cx, &attended, self.config.ffn)
    }

    /// `DisentangledSelfAttention.forward`, whose names live to its end.
    fn attention(&self, cx: &Cx, x: &Tensor, inputs: &LayerInputs) -> Tensor {
        let Config { hidden, heads, .. } = self.config;
        let (b, s) = (x.size(0), x.size(1));
        let q = self.projected(cx, "query_proj", x);
        let k = self.projected(cx, "key_proj", x);
        let v = self.projected(cx, "value_proj", x);
        let mut scores = k.transpose(-1, -2).mul_scalar().pipe(|keys| q.bmm(keys));
        let rel_embeddings = cx.dropout(&inputs.rel_embeddings, 0.1);
        let bias = self.disentangled_attention_bias(cx, [&q, &k], inputs, &rel_embeddings);
        scores = scores.add(&bias);
        scores = scores.view(&[b, heads, s, s]);
        let mask = inputs.mask.constant("to", inputs.mask.shape(), DType::Bool);
        scores = {
            let masked = mask.constant("bitwise_not", mask.shape(), DType::Bool);
            scores.masked_fill(&masked)
        };
        let mut probabilities = scores.softmax(None);
        probabilities = cx.dropout(&probabilities, 0.1);
        let mut out = probabilities.view(&[b * heads, s, s]).bmm(&v);
        out = out
            .view(&[b, heads, s, hidden / heads])
            .permute(&[0, 2, 1, 3])
            .contiguous();
        drop((rel_embeddings, bias, mask, scores, probabilities));
        out.view(&[b, s, hidden])
    }

    /// `transpose_for_scores`: `[B, S, H]` as `[B × heads, S, D]`, which is a copy.
    fn projected(&self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        let Config { hidden, heads, .. } = self.config;
        let (b, s, head_dim) = (x.size(0), x.size(1), hidden / heads);
        cx.linear(name, x, hidden, true).pipe(|x| {
            x.view(&[b, s, heads, head_dim])
                .permute(&[0, 2, 1, 3])
                .contiguous()
                .view(&[b * heads, s, head_dim])
        })
    }

    /// `disentangled_attention_bias`: from content to positions (c2p) and from positions to content (p2c). Positions go
    /// through the projections of content (`share_att_key`).
    fn disentangled_attention_bias(
        &self,
        cx: &Cx,
        [q, k]: [&Tensor; 2],
        inputs: &LayerInputs,
        rel_embeddings: &Tensor,
    ) -> Tensor {
        let (rows, s) = (q.size(0), q.size(1));
        let relative_pos = &inputs.relative_pos;
        let rel_embeddings = rel_embeddings.unsqueeze(0);
        let project = |name| {
            self.projected(cx, name, &rel_embeddings)
                .pipe(|positions| positions.tiled(rows / self.config.heads))
        };
        let pos_query = project("query_proj");
        let pos_key = project("key_proj");
        let clamp =
            |from: Tensor| from.pipe(|sum| sum.constant("clamp", &[1, 1, s, s], DType::I64));
        let index = |positions: &Tensor| positions.squeeze(0).expand(&[rows, s, s]);
        let shifted = || relative_pos.constant("add", &[1, 1, s, s], DType::I64);

        let mut c2p_att = q.bmm(&pos_key.transpose(-1, -2));
        let c2p_pos = clamp(shifted());
        c2p_att = c2p_att.gather(&index(&c2p_pos));
        let score = c2p_att.mul_scalar().pipe(Tensor::add_scalar);

        let negative = relative_pos.constant("neg", &[1, 1, s, s], DType::I64);
        let p2c_pos = clamp(negative.pipe(|_| shifted()));
        let mut p2c_att = k.bmm(&pos_query.transpose(-1, -2));
        p2c_att = p2c_att.gather(&index(&p2c_pos)).transpose(-1, -2);
        let score = p2c_att.mul_scalar().pipe(|part| score.add_(part));
        drop((c2p_att, p2c_att, c2p_pos, p2c_pos));
        score
    }

    /// `LegacyDebertaV2OnlyMLMHead`, whose decoder is tied to the word embeddings.
    fn mlm_head(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        let Config { hidden, vocab, .. } = self.config;
        let path = ["deberta", "embeddings", "word_embeddings"];
        let weight = cx.embedding_weight(&path, vocab, hidden);
        cx.module("cls", |cx| {
            cx.module("predictions", |cx| {
                let bias = cx.param("bias", [vocab]).tensor();
                drop(cx.weight_until_tied([vocab, hidden]));
                let mut x = cx.module("transform", |cx| {
                    let mut x = cx.linear("dense", sequence, hidden, true);
                    x = x.gelu();
                    cx.layer_norm("LayerNorm", &x)
                });
                x = x.linear(&weight, Some(&bias));
                x
            })
        })
    }
}

/// `make_log_bucket_position` of relative positions `[S, S]`, an operation at a time.
fn log_bucket_positions(relative: Tensor) -> Tensor {
    let shape = *relative.shape();
    let make = |op: &'static str, dtype| relative.constant(op, &shape, dtype);
    let step = |from: Tensor, op: &'static str, dtype| {
        let to = make(op, dtype);
        drop(from);
        to
    };
    let sign = make("sign", DType::I64);
    let is_small = {
        let bounds = [make("lt", DType::Bool), make("gt", DType::Bool)];
        let both = make("bitwise_and", DType::Bool);
        drop(bounds);
        both
    };
    let mid = relative.constant("type_as", &[0; 0], DType::I64);
    let abs = make("abs", DType::I64);
    let abs_pos = make("where", DType::I64);
    drop((is_small, mid, abs));
    let mut log_pos = make("div", DType::F32);
    for op in ["log", "div", "mul", "ceil", "add"] {
        log_pos = step(log_pos, op, DType::F32);
    }
    let within_mid = make("le", DType::Bool);
    let linear_pos = make("type_as", DType::F32);
    let signed = make("mul", DType::F32);
    let bucket_pos = make("where", DType::F32);
    drop((
        within_mid, linear_pos, signed, log_pos, abs_pos, sign, relative,
    ));
    bucket_pos
        .pipe(|positions| positions.constant("to", &shape, DType::I64))
        .unsqueeze(0)
}
