//! BERT, RoBERTa and ELECTRA (transformers/models/{bert,roberta,electra}/modeling_*.py).

use super::attention::{Eager, attend, heads};
use super::bidirectional::bidirectional_mask;
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::scenario::Data;
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bert,
    Roberta,
    Electra,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Bert => "bert",
            Self::Roberta => "roberta",
            Self::Electra => "electra",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    /// A token for every position, the table of embeddings its weight.
    MaskedLanguageModel,
    /// Whether each token is the one that was written: ELECTRA's.
    Discriminator,
    Classifier,
    /// `BertModel` by itself, which ends in its pooler.
    None,
}

#[derive(Clone, Copy, Debug)]
struct Bert {
    kind: Kind,
    head: Head,
    layers: u64,
    hidden: u64,
    /// Width of the embeddings.
    embedding: u64,
    heads: u64,
    ffn: u64,
    vocab: u64,
    positions: u64,
    types: u64,
    classes: u64,
}

pub fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    of_kind(sizes, Kind::Bert)
}

pub fn roberta(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    of_kind(sizes, Kind::Roberta)
}

pub fn electra(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    of_kind(sizes, Kind::Electra)
}

fn of_kind(sizes: &Sizes, kind: Kind) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    Ok(Box::new(Bert {
        kind,
        head: if sizes.is_set("head=cls") {
            Head::Classifier
        } else if kind == Kind::Electra {
            Head::Discriminator
        } else if sizes.is_set("head=none") {
            Head::None
        } else {
            Head::MaskedLanguageModel
        },
        layers: sizes.need("layers")?,
        hidden,
        embedding: match kind {
            Kind::Electra => sizes.or("embedding", hidden),
            _ => hidden,
        },
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.or("ffn", 4 * hidden),
        vocab: sizes.need("vocab")?,
        positions: sizes.or("ctx", 512),
        types: sizes.or("types", 2),
        classes: sizes.or("classes", 2),
    }))
}

impl Net for Bert {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let shape = [data.micro_batch, data.sequence];
        let ids = cx.tape.empty("input_ids", shape, DType::I64);
        let labels = match self.head {
            Head::MaskedLanguageModel | Head::Discriminator => {
                cx.tape.empty("labels", shape, DType::I64)
            }
            Head::Classifier | Head::None => {
                cx.tape.empty("labels", [data.micro_batch], DType::I64)
            }
        };
        let positions = cx.tape.empty("position_ids", shape, DType::I64);
        let mut all = vec![ids, labels, positions];
        if data.padding_mask {
            all.push(cx.tape.empty("attention_mask", shape, DType::I64));
        }
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, positions, ..] = batch else {
            return Output::empty(cx);
        };
        let name = self.kind.name();
        let sequence = cx.within(name, |cx| self.model(cx, ids, positions, batch.get(3)));
        let (logits, _pooled) = match self.head {
            Head::None => (self.pooled(cx, name, &sequence), None),
            Head::Classifier if self.kind == Kind::Bert => self.pooled_classes(cx, name, &sequence),
            Head::Classifier => (self.classes_of_first(cx, &sequence), None),
            Head::MaskedLanguageModel => (self.tokens(cx, name, &sequence), None),
            Head::Discriminator => (self.replaced(cx, &sequence), None),
        };
        let loss = if self.head == Head::Discriminator {
            cx.within("loss", |_| {
                let labels = labels.constant("to", labels.shape(), DType::F32);
                logits.bce_with_logits(&labels)
            })
        } else {
            super::losses::class_loss(cx, &logits, labels)
        };
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl Bert {
    fn model(&self, cx: &Cx, ids: &Tensor, positions: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let mut embedded = cx.within("embeddings", |cx| self.embeddings(cx, ids, positions));
        if self.embedding != self.hidden {
            embedded = cx.linear("embeddings_project", &embedded, self.hidden, true);
        }
        let mask = bidirectional_mask(cx, ids.size(1), padding, embedded.dtype());
        let this = *self;
        cx.within("encoder", |cx| {
            // The caller holds the embeddings to the end.
            let state = vec![embedded.clone()];
            let last = cx.equal_layers("layer", self.layers, state, move |cx, state| {
                vec![this.layer(cx, &state[0], &mask)]
            });
            last.into_iter().next().unwrap_or_else(|| embedded.clone())
        })
    }

    fn embeddings(&self, cx: &Cx, ids: &Tensor, positions: &Tensor) -> Tensor {
        let _position_ids = cx.buffer("position_ids", [1, self.positions], DType::I64);
        let zeros = cx.buffer("token_type_ids", [1, self.positions], DType::I64);
        let types = zeros.constant("gather", positions.shape(), DType::I64);
        let words = cx.input_embedding("word_embeddings", ids, self.vocab, self.embedding);
        if self.kind != Kind::Roberta {
            cx.within("position_embeddings", |cx| {
                cx.param("weight", [self.positions, self.embedding])
            });
        }
        let of_types = cx.embedding("token_type_embeddings", &types, self.types, self.embedding);
        let mut all = words.add(&of_types);
        let start = cx.tape.made();
        let places = cx.embedding(
            "position_embeddings",
            positions,
            self.positions,
            self.embedding,
        );
        let made = cx.tape.made();
        all = all.add(&places);
        all = cx.layer_norm("LayerNorm", &all);
        // `RobertaEmbeddings` makes it after its norm.
        cx.tape.make_now(start, made);
        cx.dropout(&all, 0.1)
    }

    fn layer(&self, cx: &Cx, input: &Tensor, mask: &AttentionMask) -> Tensor {
        let (attended, _weights) = cx.within("attention", |cx| {
            let (out, weights) = cx.within("self", |cx| self.attention(cx, input, mask));
            let out = cx.within("output", |cx| self.joined(cx, &out, input));
            (out, weights)
        });
        let fed = cx.within("intermediate", |cx| {
            cx.linear("dense", &attended, self.ffn, true)
                .then(Tensor::gelu)
        });
        cx.within("output", |cx| self.joined(cx, &fed, &attended))
    }

    fn attention(&self, cx: &Cx, x: &Tensor, mask: &AttentionMask) -> (Tensor, Option<Tensor>) {
        let [q, k, v] = ["query", "key", "value"]
            .map(|name| heads(&cx.linear(name, x, self.hidden, true), self.heads));
        let (out, weights) = attend(cx, [&q, &k, &v], mask, 0.1, Eager::default());
        let out = out.reshape(&[x.size(0), x.size(1), self.hidden]);
        (out, weights)
    }

    /// `BertSelfOutput` and `BertOutput`: a layer back to the model's width, and the norm of its sum with the input.
    fn joined(&self, cx: &Cx, x: &Tensor, residual: &Tensor) -> Tensor {
        let mut x = cx.linear("dense", x, self.hidden, true);
        x = cx.dropout(&x, 0.1);
        let sum = x.add(residual);
        cx.layer_norm("LayerNorm", &sum)
    }

    /// `BertOnlyMLMHead`, `RobertaLMHead`.
    fn tokens(&self, cx: &Cx, name: &'static str, sequence: &Tensor) -> Tensor {
        let table = cx.within(name, |cx| {
            cx.within("embeddings", |cx| {
                cx.within("word_embeddings", |cx| {
                    cx.param("weight", [self.vocab, self.hidden])
                })
            })
        });
        let transform = |cx: &Cx, norm: &'static str| {
            let mut x = cx.linear("dense", sequence, self.hidden, true);
            x = x.gelu();
            cx.layer_norm(norm, &x)
        };
        let (x, bias) = if self.kind == Kind::Roberta {
            cx.within("lm_head", |cx| {
                let bias = cx.param("bias", [self.vocab]);
                (transform(cx, "layer_norm"), bias)
            })
        } else {
            cx.within("cls", |cx| {
                cx.within("predictions", |cx| {
                    let bias = cx.param("bias", [self.vocab]);
                    let x = cx.within("transform", |cx| transform(cx, "LayerNorm"));
                    (x, bias)
                })
            })
        };
        cx.within(
            if self.kind == Kind::Roberta {
                "lm_head"
            } else {
                "cls"
            },
            |cx| {
                drop(cx.tied_later([self.vocab, self.hidden]));
            },
        );
        x.linear(&table.tensor(), Some(&bias.tensor()))
    }

    /// The pooler and the classifier over it; also what the pooler left, which the outputs hold.
    fn pooled_classes(
        &self,
        cx: &Cx,
        name: &'static str,
        sequence: &Tensor,
    ) -> (Tensor, Option<Tensor>) {
        let pooled = self.pooled(cx, name, sequence);
        let dropped = cx.dropout(&pooled, 0.1);
        let logits = cx.linear("classifier", &dropped, self.classes, true);
        (logits, Some(pooled))
    }

    /// `BertPooler`.
    fn pooled(&self, cx: &Cx, name: &'static str, sequence: &Tensor) -> Tensor {
        cx.within(name, |cx| {
            cx.within("pooler", |cx| {
                cx.linear("dense", &sequence.select(1), self.hidden, true)
                    .then(Tensor::tanh)
            })
        })
    }

    /// `ElectraDiscriminatorPredictions`.
    fn replaced(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        cx.within("discriminator_predictions", |cx| {
            let mut x = cx.linear("dense", sequence, self.hidden, true);
            x = x.gelu();
            cx.linear("dense_prediction", &x, 1, true).squeeze(-1)
        })
    }

    /// `RobertaClassificationHead`, `ElectraClassificationHead`.
    fn classes_of_first(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        cx.within("classifier", |cx| {
            let mut x = sequence.select(1);
            x = cx.dropout(&x, 0.1);
            x = cx.linear("dense", &x, self.hidden, true);
            x = match self.kind {
                Kind::Electra => x.gelu(),
                _ => x.tanh(),
            };
            x = cx.dropout(&x, 0.1);
            cx.linear("out_proj", &x, self.classes, true)
        })
    }
}
