//! BERT, RoBERTa, ELECTRA, ERNIE and LayoutLM (transformers/models/{bert,roberta,electra,ernie,layoutlm}/modeling_*.py).

use super::attention::{Eager, attend, heads};
use super::encoder::{self, Config, add_and_norm, feed_forward};
use super::masks::bidirectional_mask;
use super::{Cx, ModelError, Net, Output, Sizes, TextEncoder};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Architecture {
    Bert,
    Roberta,
    Electra,
    /// BERT with embeddings of tasks where it has them.
    Ernie,
    /// BERT with embeddings of each token's box.
    LayoutLm,
}

impl Architecture {
    /// The name of the base model within a model with a head (`base_model_prefix`).
    fn prefix(self) -> &'static str {
        match self {
            Self::Bert => "bert",
            Self::Roberta => "roberta",
            Self::Electra => "electra",
            Self::Ernie => "ernie",
            Self::LayoutLm => "layoutlm",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    MaskedLm,
    /// ELECTRA's: whether each token is the one that was written.
    Discriminator,
    SequenceClassification,
    /// `BertModel` by itself, which ends in its pooler.
    None,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Bert {
    architecture: Architecture,
    head: Head,
    config: Config,
    /// Width of the embeddings.
    embedding: u64,
    types: u64,
    classes: u64,
    /// `task_type_vocab_size`, where task embeddings are used.
    task_types: u64,
    /// `max_2d_position_embeddings`.
    places: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build_as(sizes, Architecture::Bert)
}

pub(crate) fn roberta(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build_as(sizes, Architecture::Roberta)
}

pub(crate) fn electra(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build_as(sizes, Architecture::Electra)
}

pub(crate) fn ernie(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build_as(sizes, Architecture::Ernie)
}

pub(crate) fn layoutlm(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build_as(sizes, Architecture::LayoutLm)
}

/// BERT as a part of another model.
pub(crate) fn tower(sizes: &Sizes) -> Result<Bert, ModelError> {
    new(sizes, Architecture::Bert)
}

fn build_as(sizes: &Sizes, architecture: Architecture) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(new(sizes, architecture)?))
}

fn new(sizes: &Sizes, architecture: Architecture) -> Result<Bert, ModelError> {
    let config = Config::new(sizes)?;
    Ok(Bert {
        architecture,
        head: if sizes.is_set("head=cls") {
            Head::SequenceClassification
        } else if architecture == Architecture::Electra {
            Head::Discriminator
        } else if sizes.is_set("head=none") {
            Head::None
        } else {
            Head::MaskedLm
        },
        embedding: match architecture {
            Architecture::Electra => sizes.or("embedding", config.hidden),
            _ => config.hidden,
        },
        types: sizes.or("types", 2),
        classes: sizes.or("classes", 2),
        task_types: sizes.or("task_types", 0),
        places: sizes.or("places", 1024),
        config,
    })
}

impl Net for Bert {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let shape = [data.micro_batch, data.sequence];
        let ids = cx.tape.empty("input_ids", shape, DType::I64);
        let labels = match self.head {
            Head::MaskedLm | Head::Discriminator => cx.tape.empty("labels", shape, DType::I64),
            Head::SequenceClassification | Head::None => {
                cx.tape.empty("labels", [data.micro_batch], DType::I64)
            }
        };
        let positions = cx.tape.empty("position_ids", shape, DType::I64);
        let mut batch = vec![ids, labels, positions];
        if data.padding_mask {
            batch.push(cx.tape.empty("attention_mask", shape, DType::I64));
        }
        batch
    }

    fn text_encoder(&self) -> Option<&dyn TextEncoder> {
        Some(self)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, positions, ..] = batch else {
            return Output::empty(cx);
        };
        let prefix = self.architecture.prefix();
        let sequence = cx.module(prefix, |cx| self.model(cx, ids, positions, batch.get(3)));
        match self.head {
            Head::MaskedLm => encoder::output(cx, self.mlm_head(cx, &sequence), labels),
            Head::Discriminator => {
                let logits = self.discriminator_predictions(cx, &sequence);
                let loss = cx.module("loss", |_| {
                    let labels = labels.constant("to", labels.shape(), DType::F32);
                    logits.bce_with_logits(&labels)
                });
                Output {
                    loss,
                    held: vec![logits],
                }
            }
            Head::SequenceClassification => {
                // The output object holds the pooler's output too, until the loss exists.
                let (logits, _pooled) = self.classified(cx, &sequence, self.classes);
                encoder::output(cx, logits, labels)
            }
            Head::None => encoder::output(cx, self.pooler(cx, &sequence), labels),
        }
    }
}

impl TextEncoder for Bert {
    fn encode(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let positions = ids.constant("position_ids", ids.shape(), DType::I64);
        let prefix = self.architecture.prefix();
        cx.module(prefix, |cx| self.model(cx, ids, &positions, padding))
    }

    fn unread(&self, cx: &Cx) {
        let own = matches!(
            self.architecture,
            Architecture::Electra | Architecture::LayoutLm
        );
        if !own {
            cx.module(self.architecture.prefix(), |cx| {
                cx.module("pooler", |cx| {
                    encoder::unread_dense(cx, "dense", self.config.hidden);
                });
            });
        }
    }

    fn sequence_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        self.classified(cx, hidden, classes).0
    }
}

impl Bert {
    /// Logits of a sequence, and the pooler's output where BERT has one.
    fn classified(&self, cx: &Cx, sequence: &Tensor, classes: u64) -> (Tensor, Option<Tensor>) {
        if matches!(
            self.architecture,
            Architecture::Roberta | Architecture::Electra
        ) {
            return (self.classification_head(cx, sequence, classes), None);
        }
        let pooled = self.pooler(cx, sequence);
        let dropped = cx.dropout(&pooled, 0.1);
        let logits = cx.linear("classifier", &dropped, classes, true);
        (logits, Some(pooled))
    }

    /// `BertModel.forward` without a pooler.
    pub(crate) fn model(
        &self,
        cx: &Cx,
        ids: &Tensor,
        positions: &Tensor,
        padding: Option<&Tensor>,
    ) -> Tensor {
        let Config { layers, hidden, .. } = self.config;
        let mut embedded = cx.module("embeddings", |cx| {
            if self.architecture == Architecture::LayoutLm {
                self.boxed_embeddings(cx, ids)
            } else {
                self.embeddings(cx, ids, positions)
            }
        });
        if self.embedding != hidden {
            embedded = cx.linear("embeddings_project", &embedded, hidden, true);
        }
        let mask = bidirectional_mask(cx, ids.size(1), padding, embedded.dtype());
        let this = *self;
        // The caller of the encoder holds the embeddings to the end.
        let last = cx.module("encoder", |cx| {
            cx.equal_stack("layer", layers, embedded.clone(), move |cx, hidden| {
                this.layer(cx, hidden, &mask)
            })
        });
        if self.architecture == Architecture::LayoutLm {
            // Its pooler runs whatever head follows.
            cx.module("pooler", |cx| drop(encoder::pooler(cx, "dense", &last)));
        }
        last
    }

    fn embeddings(&self, cx: &Cx, ids: &Tensor, positions: &Tensor) -> Tensor {
        let (config, width) = (self.config, self.embedding);
        let _position_ids = cx.buffer("position_ids", [1, config.positions], DType::I64);
        let zeros = cx.buffer("token_type_ids", [1, config.positions], DType::I64);
        let token_types = zeros.constant("gather", positions.shape(), DType::I64);
        let word_embeddings = cx.input_embedding("word_embeddings", ids, config.vocab, width);
        if self.architecture != Architecture::Roberta {
            cx.module("position_embeddings", |cx| {
                cx.param("weight", [config.positions, width])
            });
        }
        let type_embeddings =
            cx.embedding("token_type_embeddings", &token_types, self.types, width);
        let mut embeddings = word_embeddings.add(&type_embeddings);
        let start = cx.tape.construction_point();
        let position_embeddings =
            cx.embedding("position_embeddings", positions, config.positions, width);
        let made = cx.tape.construction_point();
        embeddings = embeddings.add(&position_embeddings);
        if self.task_types > 0 {
            let zeros = positions.constant("zeros", positions.shape(), DType::I64);
            let tasks = cx.embedding("task_type_embeddings", &zeros, self.task_types, width);
            embeddings = embeddings.add_(&tasks);
        }
        embeddings = cx.layer_norm("LayerNorm", &embeddings);
        // `RobertaEmbeddings` makes its position embeddings after its norm.
        cx.tape.construct_here(start, made);
        cx.dropout(&embeddings, 0.1)
    }

    /// `LayoutLMEmbeddings.forward`: all of the summands live to its end.
    fn boxed_embeddings(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let (config, width, places) = (self.config, self.embedding, self.places);
        let (b, s) = (ids.size(0), ids.size(1));
        let all = cx.buffer("position_ids", [1, config.positions], DType::I64);
        let token_types = ids.constant("zeros", ids.shape(), DType::I64);
        let words = cx.input_embedding("word_embeddings", ids, config.vocab, width);
        let positions = all.narrow(1, s);
        let positions = cx.embedding("position_embeddings", &positions, config.positions, width);
        let boxes = cx.tape.empty("bbox", [b, s, 4], DType::I64);
        let corner = |name| {
            let side = boxes.narrow(-1, 1).squeeze(-1);
            cx.embedding(name, &side, places, width)
        };
        let corners = [
            "x_position_embeddings",
            "y_position_embeddings",
            "x_position_embeddings",
            "y_position_embeddings",
        ]
        .map(corner);
        let lengths = ["h_position_embeddings", "w_position_embeddings"].map(|name| {
            let length = ids.constant("sub", ids.shape(), DType::I64);
            cx.embedding(name, &length, places, width)
        });
        let types = cx.embedding("token_type_embeddings", &token_types, self.types, width);
        let mut embeddings = words.add(&positions);
        for part in corners.iter().chain(&lengths).chain([&types]) {
            embeddings = embeddings.add(part);
        }
        embeddings = cx.layer_norm("LayerNorm", &embeddings);
        cx.dropout(&embeddings, 0.1)
    }

    /// `BertLayer.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor, mask: &AttentionMask) -> Tensor {
        let (attended, _weights) = cx.module("attention", |cx| {
            let (out, weights) = cx.module("self", |cx| self.attention(cx, input, mask));
            let out = cx.module("output", |cx| add_and_norm(cx, &out, input));
            (out, weights)
        });
        feed_forward(cx, &attended, self.config.ffn)
    }

    fn attention(&self, cx: &Cx, x: &Tensor, mask: &AttentionMask) -> (Tensor, Option<Tensor>) {
        let hidden = self.config.hidden;
        let [q, k, v] = ["query", "key", "value"]
            .map(|name| heads(&cx.linear(name, x, hidden, true), self.config.heads));
        let (out, weights) = attend(cx, [&q, &k, &v], mask, 0.1, Eager::default());
        let out = out.reshape(&[x.size(0), x.size(1), hidden]);
        (out, weights)
    }

    /// `BertOnlyMLMHead`, `RobertaLMHead`, whose decoder is tied to the word embeddings.
    fn mlm_head(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        let Config { vocab, hidden, .. } = self.config;
        let path = [self.architecture.prefix(), "embeddings", "word_embeddings"];
        let transform = |cx: &Cx, norm: &'static str| {
            let mut x = cx.linear("dense", sequence, hidden, true);
            x = x.gelu();
            cx.layer_norm(norm, &x)
        };
        let weight = cx.embedding_weight(&path, vocab, hidden);
        let roberta = self.architecture == Architecture::Roberta;
        let name = if roberta { "lm_head" } else { "cls" };
        let (x, bias) = cx.module(name, |cx| {
            if roberta {
                let bias = cx.param("bias", [vocab]);
                return (transform(cx, "layer_norm"), bias);
            }
            cx.module("predictions", |cx| {
                let bias = cx.param("bias", [vocab]);
                let x = cx.module("transform", |cx| transform(cx, "LayerNorm"));
                (x, bias)
            })
        });
        cx.module(name, |cx| drop(cx.weight_until_tied([vocab, hidden])));
        x.linear(&weight, Some(&bias.tensor()))
    }

    /// `BertPooler`.
    fn pooler(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        cx.module(self.architecture.prefix(), |cx| {
            cx.module("pooler", |cx| encoder::pooler(cx, "dense", sequence))
        })
    }

    /// `ElectraDiscriminatorPredictions`.
    fn discriminator_predictions(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        cx.module("discriminator_predictions", |cx| {
            let mut x = cx.linear("dense", sequence, self.config.hidden, true);
            x = x.gelu();
            cx.linear("dense_prediction", &x, 1, true).squeeze(-1)
        })
    }

    /// `RobertaClassificationHead`, `ElectraClassificationHead`: from the first token.
    fn classification_head(&self, cx: &Cx, sequence: &Tensor, classes: u64) -> Tensor {
        cx.module("classifier", |cx| {
            let mut x = sequence.select(1);
            x = cx.dropout(&x, 0.1);
            x = cx.linear("dense", &x, self.config.hidden, true);
            x = match self.architecture {
                Architecture::Electra => x.gelu(),
                _ => x.tanh(),
            };
            x = cx.dropout(&x, 0.1);
            cx.linear("out_proj", &x, classes, true)
        })
    }
}
