//! DeBERTa-v3: content and positions attend to each other (transformers/models/deberta_v2/modeling_deberta_v2.py).

use super::{Cx, ModelError, Net, Output, Sizes};
use crate::scenario::Data;
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
struct Deberta {
    headless: bool,
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    vocab: u64,
    positions: u64,
    /// Relative positions are told apart in as many buckets to each side.
    buckets: u64,
}

/// What all layers are given.
#[derive(Clone)]
struct Shared {
    /// Who may attend to whom, `[B, 1, S, S]`.
    mask: Tensor,
    /// Buckets of relative positions, `[1, S, S]`.
    places: Tensor,
    /// The table of relative positions after its norm.
    table: Tensor,
}

pub fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    Ok(Box::new(Deberta {
        headless: sizes.is_set("head=none"),
        layers: sizes.need("layers")?,
        hidden,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.or("ffn", 4 * hidden),
        vocab: sizes.need("vocab")?,
        positions: sizes.or("ctx", 512),
        buckets: sizes.or("buckets", 256),
    }))
}

impl Net for Deberta {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        super::inputs::token_ids_and_labels(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let sequence = cx.within("deberta", |cx| self.model(cx, ids, batch.get(2)));
        let logits = if self.headless {
            sequence
        } else {
            self.tokens(cx, &sequence)
        };
        let loss = super::losses::class_loss(cx, &logits, labels);
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl Deberta {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let shape = *ids.shape();
        let mask = padding.map_or_else(|| cx.tape.empty("ones", shape, DType::F32), Tensor::clone);
        let _types = cx.tape.empty("zeros", shape, DType::I64);
        let embedded = cx.within("embeddings", |cx| self.embeddings(cx, ids, &mask));
        cx.within("encoder", |cx| self.encode(cx, &embedded, &mask))
    }

    fn embeddings(&self, cx: &Cx, ids: &Tensor, mask: &Tensor) -> Tensor {
        cx.buffer("position_ids", [1, self.positions], DType::I64);
        let words = cx.input_embedding("word_embeddings", ids, self.vocab, self.hidden);
        // Positions have no part in the input; zeros are made for them all the same.
        let _positions = words.constant("zeros_like", words.shape(), words.dtype());
        let mut all = cx.layer_norm("LayerNorm", &words);
        let mask = mask.unsqueeze(2).to(all.dtype());
        all = all.mul(&mask);
        cx.dropout(&all, 0.1)
    }

    /// The model's own list holds what each layer leaves until it returns.
    fn encode(&self, cx: &Cx, embedded: &Tensor, mask: &Tensor) -> Tensor {
        let (b, s) = (mask.size(0), mask.size(1));
        let mask = mask.constant("mul", &[b, 1, s, s], mask.dtype());
        let places = {
            let _ids = [(); 2].map(|()| mask.constant("arange", &[s], DType::I64));
            places(mask.constant("sub", &[s, s], DType::I64))
        };
        let table = cx.within("rel_embeddings", |cx| {
            cx.param("weight", [2 * self.buckets, self.hidden]).tensor()
        });
        let shared = Shared {
            mask,
            places,
            table: cx.layer_norm("LayerNorm", &table),
        };
        let this = *self;
        let state = vec![embedded.clone()];
        let last = cx.equal_layers("layer", self.layers, state, move |cx, state| {
            state.iter().map(|x| this.layer(cx, x, &shared)).collect()
        });
        last.into_iter().next().unwrap_or_else(|| embedded.clone())
    }

    fn layer(&self, cx: &Cx, input: &Tensor, shared: &Shared) -> Tensor {
        let attended = cx.within("attention", |cx| {
            let out = cx.within("self", |cx| self.attention(cx, input, shared));
            cx.within("output", |cx| self.joined(cx, &out, input))
        });
        let fed = cx.within("intermediate", |cx| {
            cx.linear("dense", &attended, self.ffn, true)
                .then(Tensor::gelu)
        });
        cx.within("output", |cx| self.joined(cx, &fed, &attended))
    }

    fn joined(&self, cx: &Cx, x: &Tensor, residual: &Tensor) -> Tensor {
        let mut x = cx.linear("dense", x, self.hidden, true);
        x = cx.dropout(&x, 0.1);
        let sum = x.add(residual);
        cx.layer_norm("LayerNorm", &sum)
    }

    /// `DisentangledSelfAttention`. Its names live to its end.
    fn attention(&self, cx: &Cx, x: &Tensor, shared: &Shared) -> Tensor {
        let (b, s) = (x.size(0), x.size(1));
        let q = self.projected(cx, "query_proj", x);
        let k = self.projected(cx, "key_proj", x);
        let v = self.projected(cx, "value_proj", x);
        let mut scores = k.transpose(-1, -2).scale().then(|keys| q.bmm(keys));
        let table = cx.dropout(&shared.table, 0.1);
        let bias = self.position_scores(cx, &q, &k, &shared.places, &table);
        scores = scores.add(&bias);
        scores = scores.view(&[b, self.heads, s, s]);
        let mask = shared.mask.constant("to", shared.mask.shape(), DType::Bool);
        scores = {
            let unseen = mask.constant("bitwise_not", mask.shape(), DType::Bool);
            scores.masked_fill(&unseen)
        };
        let mut weights = scores.softmax(None);
        weights = cx.dropout(&weights, 0.1);
        let mut out = weights.view(&[b * self.heads, s, s]).bmm(&v);
        out = out
            .view(&[b, self.heads, s, self.hidden / self.heads])
            .permute(&[0, 2, 1, 3])
            .contiguous();
        drop((table, bias, mask, scores, weights));
        out.view(&[b, s, self.hidden])
    }

    /// `transpose_for_scores`: `[B, S, H]` as `[B × heads, S, D]`, which is a copy.
    fn projected(&self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        let (b, s, width) = (x.size(0), x.size(1), self.hidden / self.heads);
        cx.linear(name, x, self.hidden, true).then(|wide| {
            wide.view(&[b, s, self.heads, width])
                .permute(&[0, 2, 1, 3])
                .contiguous()
                .view(&[b * self.heads, s, width])
        })
    }

    /// `disentangled_attention_bias`: what content says of positions and positions of content. The projections are those
    /// of content (`share_att_key`).
    fn position_scores(
        &self,
        cx: &Cx,
        q: &Tensor,
        k: &Tensor,
        places: &Tensor,
        table: &Tensor,
    ) -> Tensor {
        let (rows, s) = (q.size(0), q.size(1));
        let rel = table.unsqueeze(0);
        let each = |name| {
            self.projected(cx, name, &rel)
                .then(|all| all.tiled(rows / self.heads))
        };
        let of_queries = each("query_proj");
        let of_keys = each("key_proj");
        let bounded =
            |from: Tensor| from.then(|sum| sum.constant("clamp", &[1, 1, s, s], DType::I64));
        let index = |at: &Tensor| at.squeeze(0).expand(&[rows, s, s]);
        let added = || places.constant("add", &[1, 1, s, s], DType::I64);

        let mut to_positions = q.bmm(&of_keys.transpose(-1, -2));
        let of_content = bounded(added());
        to_positions = to_positions.gather(&index(&of_content));
        let score = to_positions.scale().then(Tensor::shift);

        let negative = places.constant("neg", &[1, 1, s, s], DType::I64);
        let of_places = bounded(negative.then(|_| added()));
        let mut to_content = k.bmm(&of_queries.transpose(-1, -2));
        to_content = to_content.gather(&index(&of_places)).transpose(-1, -2);
        let score = to_content.scale().then(|part| score.add_(part));
        drop((to_positions, to_content, of_content, of_places));
        score
    }

    /// `LegacyDebertaV2OnlyMLMHead`, whose last layer is the table of words.
    fn tokens(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        let words = cx.within("deberta", |cx| {
            cx.within("embeddings", |cx| {
                cx.within("word_embeddings", |cx| {
                    cx.param("weight", [self.vocab, self.hidden]).tensor()
                })
            })
        });
        cx.within("cls", |cx| {
            cx.within("predictions", |cx| {
                let bias = cx.param("bias", [self.vocab]).tensor();
                drop(cx.tied_later([self.vocab, self.hidden]));
                let mut x = cx.within("transform", |cx| {
                    let mut x = cx.linear("dense", sequence, self.hidden, true);
                    x = x.gelu();
                    cx.layer_norm("LayerNorm", &x)
                });
                x = x.linear(&words, Some(&bias));
                x
            })
        })
    }
}

/// `make_log_bucket_position` of relative positions `[S, S]`, an operation at a time.
fn places(relative: Tensor) -> Tensor {
    let shape = *relative.shape();
    let make = |op: &'static str, dtype| relative.constant(op, &shape, dtype);
    let step = |from: Tensor, op: &'static str, dtype| {
        let to = make(op, dtype);
        drop(from);
        to
    };
    let sign = make("sign", DType::I64);
    let near = {
        let sides = [make("lt", DType::Bool), make("gt", DType::Bool)];
        let both = make("bitwise_and", DType::Bool);
        drop(sides);
        both
    };
    let middle = relative.constant("type_as", &[0; 0], DType::I64);
    let distance = make("abs", DType::I64);
    let bounded = make("where", DType::I64);
    drop((near, middle, distance));
    let mut logs = make("div", DType::F32);
    for op in ["log", "div", "mul", "ceil", "add"] {
        logs = step(logs, op, DType::F32);
    }
    let is_near = make("le", DType::Bool);
    let plain = make("type_as", DType::F32);
    let signed = make("mul", DType::F32);
    let bucket = make("where", DType::F32);
    drop((is_near, plain, signed, logs, bounded, sign, relative));
    bucket
        .then(|bucket| bucket.constant("to", &shape, DType::I64))
        .unsqueeze(0)
}
