//! Whisper, BART, LED, mBART, Marian, Pegasus, M2M-100 and Blenderbot: an encoder, and a decoder that attends to it
//! (transformers/models/{whisper,bart,led,mbart,marian,pegasus,m2m_100,blenderbot}/modeling_*.py).

use super::attention::{Eager, attend};
use super::inputs::{additive, allowed, causal_mask};
use super::losses::class_loss;
use super::sliding_chunks::{SlidingChunks, padded_length};
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::{Attention, Data};

#[derive(Clone, Copy, Debug)]
struct Seq2Seq {
    model: Model,
    layers: u64,
    decoder_layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    vocab: u64,
    mel: u64,
    frames: u64,
    positions: u64,
    relu: bool,
    /// Labels of `…ForSequenceClassification`; zero for the class that generates.
    classes: u64,
    /// `attention_window` and `max_encoder_position_embeddings` of LED.
    window: u64,
    encoder_positions: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    /// Audio in.
    Whisper,
    Bart,
    /// The same with an encoder that attends within windows, and positions without an offset.
    Led,
    /// Norms before each sublayer and at the end, like Whisper.
    MBart,
    /// Fixed positions, and no norm of the embeddings.
    Marian,
    /// The same with norms as mBART has them.
    Pegasus,
    /// Fixed positions that are no parameter, and no bias of logits.
    M2m100,
    /// Learned positions without an offset, and no norm of the embeddings.
    Blenderbot,
}

pub(crate) fn whisper(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, Model::Whisper)
}

pub(crate) fn bart(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, Model::Bart)
}

pub(crate) fn led(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, Model::Led)
}

pub(crate) fn mbart(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, Model::MBart)
}

pub(crate) fn marian(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, Model::Marian)
}

pub(crate) fn pegasus(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, Model::Pegasus)
}

pub(crate) fn m2m_100(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, Model::M2m100)
}

pub(crate) fn blenderbot(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, Model::Blenderbot)
}

fn build(sizes: &Sizes, model: Model) -> Result<Box<dyn Net>, ModelError> {
    let (layers, hidden) = (sizes.need("layers")?, sizes.need("hidden")?);
    Ok(Box::new(Seq2Seq {
        model,
        layers,
        decoder_layers: sizes.or("decoder_layers", layers),
        hidden,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.or("ffn", 4 * hidden),
        vocab: sizes.need("vocab")?,
        mel: sizes.or("mel", 80),
        frames: sizes.or("audio_ctx", 1500),
        positions: sizes.or("ctx", 1024),
        relu: sizes.is_set("relu"),
        classes: sizes.or("sequence_classes", 0),
        window: sizes.or("window", 512).max(2),
        encoder_positions: sizes.or("encoder_ctx", 16_384),
    }))
}

impl Net for Seq2Seq {
    /// Whisper's sequence is the transcript; BART's targets have a quarter of its length.
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        if self.whisper() {
            let features = [n, self.mel, 2 * self.frames];
            let labels = [n, data.sequence];
            return vec![
                cx.tape.empty("labels", labels, DType::I64),
                cx.tape.empty("input_features", features, cx.env.weights),
            ];
        }
        let ids = cx.tape.empty("input_ids", [n, data.sequence], DType::I64);
        let labels = match self.classes {
            0 => vec![n, data.sequence / 4],
            _ => vec![n],
        };
        vec![cx.tape.empty("labels", &labels[..], DType::I64), ids]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [labels, input] = batch else {
            return Output::empty(cx);
        };
        // Both stacks read the whole sequence where it is classified.
        let ids = shift_tokens_right(if self.classes > 0 { input } else { labels });
        let (encoded, decoded) = cx.module("model", |cx| {
            let embedding = self.embed_tokens(cx);
            let encoded = cx.module("encoder", |cx| self.encode(cx, input, &embedding));
            let decoded = cx.module("decoder", |cx| self.decode(cx, &ids, &encoded, &embedding));
            (encoded, decoded)
        });
        if self.classes > 0 {
            let logits = self.sequence_logits(cx, input, &decoded);
            return Output {
                loss: class_loss(cx, &logits, labels),
                held: vec![logits, encoded],
            };
        }
        let embedding = cx.module("model", |cx| self.embed_tokens(cx));
        let mut logits = cx.tied_linear("lm_head", &decoded, &embedding);
        if !matches!(self.model, Model::Whisper | Model::M2m100) {
            let bias = cx.buffer("final_logits_bias", [1, self.vocab], cx.env.weights);
            logits = logits.add(&bias);
        }
        let loss = class_loss(cx, &logits, labels);
        Output {
            loss,
            held: vec![logits, encoded],
        }
    }
}

impl Seq2Seq {
    fn whisper(&self) -> bool {
        self.model == Model::Whisper
    }

    /// `BartForSequenceClassification.forward` from the decoder on: the states of the last end of a sequence.
    fn sequence_logits(&self, cx: &Cx, ids: &Tensor, decoded: &Tensor) -> Tensor {
        let n = ids.size(0);
        let ends = ids.constant("eq", ids.shape(), DType::Bool);
        let rows = decoded.rows_where(&ends, n);
        drop(ends);
        cx.module("classification_head", |cx| {
            let x = cx
                .linear("dense", &rows, self.hidden, true)
                .pipe(Tensor::tanh);
            cx.linear("out_proj", &x, self.classes, true)
        })
    }

    /// Norms stand before sublayers, and one more at the end.
    fn norms_first(&self) -> bool {
        !matches!(self.model, Model::Bart | Model::Led | Model::Marian)
    }

    /// The weight of the token embeddings, to which the head is tied.
    fn embed_tokens(&self, cx: &Cx) -> Tensor {
        let path: &[&str] = if self.whisper() {
            &["decoder", "embed_tokens"]
        } else {
            &["shared"]
        };
        cx.embedding_weight(path, self.vocab, self.hidden)
    }

    /// `nn.functional.dropout` at the model's rate; Whisper is configured without.
    fn dropout(&self, cx: &Cx, x: &Tensor) -> Tensor {
        cx.dropout(x, if self.whisper() { 0.0 } else { 0.1 })
    }

    /// `WhisperEncoder.forward`, `BartEncoder.forward`.
    fn encode(&self, cx: &Cx, input: &Tensor, embedding: &Tensor) -> Tensor {
        // The function's own names live to its end.
        let (embedded, _names) = if self.whisper() {
            self.audio_embeddings(cx, input)
        } else {
            self.token_embeddings(cx, input, embedding)
        };
        let mut hidden = embedded;
        hidden = self.dropout(cx, &hidden);
        let this = *self;
        let whole = hidden.size(1);
        if self.model == Model::Led {
            // `_pad_to_window_size`.
            let padded = padded_length(whole, self.window);
            if padded > whole {
                hidden = hidden.pad_to(&[hidden.size(0), padded, self.hidden]);
            }
        }
        let last = cx.equal_stack("layers", self.layers, hidden, move |cx, hidden| {
            this.layer(cx, hidden, &AttentionMask::None, None)
        });
        let last = self.final_norm(cx, last);
        if last.size(1) == whole {
            last
        } else {
            last.narrow(1, whole)
        }
    }

    /// Encoder and decoder end in a norm where norms come first.
    fn final_norm(&self, cx: &Cx, last: Tensor) -> Tensor {
        if self.norms_first() {
            cx.layer_norm("layer_norm", &last)
        } else {
            last
        }
    }

    /// The sum of BART's embeddings, and the summands.
    fn token_embeddings(&self, cx: &Cx, ids: &Tensor, embedding: &Tensor) -> (Tensor, [Tensor; 2]) {
        let words = self.scaled(cx, embedding.embedding(ids));
        let index = ids.constant("arange", &[ids.size(1)], DType::I64);
        let positions = match self.other_positions(cx, ids, &index, self.encoder_positions) {
            Some(positions) => positions,
            None => {
                let moved = ids.constant("add", ids.shape(), DType::I64);
                cx.embedding("embed_positions", &moved, self.positions + 2, self.hidden)
            }
        };
        drop(index);
        let mut sum = words.add(&positions);
        if matches!(self.model, Model::Bart | Model::Led | Model::MBart) {
            sum = cx.layer_norm("layernorm_embedding", &sum);
        }
        (sum, [words, positions])
    }

    /// Positions of models that have them unlike BART.
    fn other_positions(&self, cx: &Cx, ids: &Tensor, index: &Tensor, rows: u64) -> Option<Tensor> {
        let (b, s) = (ids.size(0), ids.size(1));
        match self.model {
            Model::Marian | Model::Pegasus => Some(self.fixed_positions(cx, index)),
            Model::Led => Some(cx.embedding("embed_positions", index, rows, self.hidden)),
            Model::Blenderbot => {
                Some(cx.embedding("embed_positions", index, self.positions, self.hidden))
            }
            // `M2M100SinusoidalPositionalEmbedding.forward`.
            Model::M2m100 => Some(cx.module("embed_positions", |cx| {
                let shape = [self.positions + 2, self.hidden];
                let table = cx.buffer("weights", shape, cx.env.weights);
                let places = ids.constant("add", ids.shape(), DType::I64);
                let rows = cx.tape.no_grad(|| table.rows_at(&places.view(&[b * s])));
                rows.view(&[b, s, self.hidden])
            })),
            Model::Whisper | Model::Bart | Model::MBart => None,
        }
    }

    /// `MarianSinusoidalPositionalEmbedding`: rows of a table that is not trained.
    fn fixed_positions(&self, cx: &Cx, index: &Tensor) -> Tensor {
        cx.module("embed_positions", |cx| {
            let shape = [self.positions, self.hidden];
            let weight = cx.param_as("weight", shape, cx.env.weights, |_| false);
            weight.tensor().embedding(index)
        })
    }

    /// Two convolutions over the spectrogram, the second with stride two, and fixed positions.
    fn audio_embeddings(&self, cx: &Cx, input: &Tensor) -> (Tensor, [Tensor; 2]) {
        let conv = |stride| Conv::stride(stride).padded(1);
        let mut x = cx
            .convolution("conv1", input, self.hidden, &[3], conv(1), true)
            .pipe(|x| cx.asks_with_adapters(x.clone()))
            .pipe(Tensor::gelu);
        x = cx
            .convolution("conv2", &x, self.hidden, &[3], conv(2), true)
            .pipe(Tensor::gelu);
        x = x.permute(&[0, 2, 1]);
        let index = input.constant("arange", &[self.frames], DType::I64);
        let positions = cx.module("embed_positions", |cx| {
            let shape = [self.frames, self.hidden];
            let weight = cx.param_as("weight", shape, cx.env.weights, |_| false);
            weight.tensor().embedding(&index)
        });
        (x.add(&positions), [x, index])
    }

    /// `WhisperDecoder.forward`, `BartDecoder.forward`.
    fn decode(&self, cx: &Cx, ids: &Tensor, encoded: &Tensor, embedding: &Tensor) -> Tensor {
        let (b, s) = (ids.size(0), ids.size(1));
        let words = if self.whisper() {
            cx.asks_with_adapters(embedding.embedding(ids))
        } else {
            self.scaled(cx, embedding.embedding(ids))
        };
        let mut index = ids
            .constant("arange", &[s], DType::I64)
            .pipe(Tensor::add_scalar);
        if self.whisper() {
            index = index.constant("repeat", &[b, s], DType::I64);
        }
        let positions = if self.whisper() {
            cx.module("embed_positions", |cx| {
                let weight = cx.param("weight", [self.positions, self.hidden]).tensor();
                weight.rows(&index).view(&[b, s, self.hidden])
            })
        } else if let Some(positions) = self.other_positions(cx, ids, &index, self.positions) {
            positions
        } else {
            let moved = index.unsqueeze(0).add_scalar();
            cx.embedding("embed_positions", &moved, self.positions + 2, self.hidden)
        };
        let mut hidden = words.add(&positions);
        if matches!(self.model, Model::Bart | Model::Led | Model::MBart) {
            hidden = cx.layer_norm("layernorm_embedding", &hidden);
        }
        hidden = self.dropout(cx, &hidden);
        let mask = self.decoder_mask(cx, ids, words.dtype());
        let (this, encoded) = (*self, encoded.clone());
        let last = cx.equal_stack("layers", self.decoder_layers, hidden, move |cx, hidden| {
            this.layer(cx, hidden, &mask, Some(&encoded))
        });
        let last = self.final_norm(cx, last);
        drop((words, positions, index));
        last
    }

    fn decoder_mask(&self, cx: &Cx, ids: &Tensor, dtype: DType) -> AttentionMask {
        match cx.env.training.attention {
            _ if self.whisper() => causal_mask(cx, ids, None, dtype),
            Attention::Sdpa | Attention::Flash2 => AttentionMask::Causal,
            Attention::Eager => {
                let allowed = allowed(ids, None, false);
                AttentionMask::Given(additive(&allowed, ids.size(0), dtype))
            }
        }
    }

    /// A layer of the encoder or, with the encoder's states to attend to, of the decoder.
    fn layer(
        &self,
        cx: &Cx,
        input: &Tensor,
        mask: &AttentionMask,
        encoded: Option<&Tensor>,
    ) -> Tensor {
        let mut hidden = self.sublayer(cx, input, "self_attn_layer_norm", |x| {
            cx.module("self_attn", |cx| match encoded {
                None if self.model == Model::Led => (self.windowed(cx, &x), None),
                _ => self.attention(cx, &x, None, mask),
            })
        });
        if let Some(encoded) = encoded {
            hidden = self.sublayer(cx, &hidden, "encoder_attn_layer_norm", |x| {
                cx.module("encoder_attn", |cx| {
                    self.attention(cx, &x, Some(encoded), &AttentionMask::None)
                })
            });
        }
        self.sublayer(cx, &hidden, "final_layer_norm", |mut x| {
            x = {
                let inner = cx.linear("fc1", &x, self.ffn, true);
                match self.model {
                    _ if self.relu => inner.relu(),
                    Model::Marian => inner.silu(),
                    _ => inner.gelu(),
                }
            };
            (cx.linear("fc2", &x, self.hidden, true), None)
        })
    }

    /// `embed_scale`, which LED has not.
    fn scaled(&self, cx: &Cx, words: Tensor) -> Tensor {
        if self.model == Model::Led {
            return cx.asks_for_gradient(words);
        }
        cx.asks_for_gradient(words.pipe(Tensor::mul_scalar))
    }

    /// `LEDEncoderAttention.forward`.
    fn windowed(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let chunks = SlidingChunks {
            hidden: self.hidden,
            heads: self.heads,
            reach: (self.window / 2).max(1),
            dropout: 0.0,
            global: false,
        };
        let out = cx.module("longformer_self_attn", |cx| chunks.forward(cx, x));
        cx.linear("output", &out, self.hidden, true)
    }

    /// Attention or feed-forward with its residual and its norm, before it or after.
    fn sublayer(
        &self,
        cx: &Cx,
        input: &Tensor,
        norm: &'static str,
        body: impl FnOnce(Tensor) -> (Tensor, Option<Tensor>),
    ) -> Tensor {
        if self.norms_first() {
            let (mut hidden, _weights) = body(cx.layer_norm(norm, input));
            hidden = self.dropout(cx, &hidden);
            return input.add(&hidden);
        }
        let (mut hidden, _weights) = body(input.clone());
        hidden = self.dropout(cx, &hidden);
        hidden = input.add(&hidden);
        cx.layer_norm(norm, &hidden)
    }

    fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        encoded: Option<&Tensor>,
        mask: &AttentionMask,
    ) -> (Tensor, Option<Tensor>) {
        let (b, s, d) = (x.size(0), x.size(1), self.hidden / self.heads);
        let split = |y: &Tensor| {
            let rows = y.size(1);
            y.view(&[b, rows, self.heads, d]).transpose(1, 2)
        };
        let keys = encoded.unwrap_or(x);
        let (q, k, v) = if self.whisper() {
            let q = {
                let scaled = cx
                    .linear("q_proj", x, self.hidden, true)
                    .pipe(Tensor::mul_scalar);
                split(&scaled).contiguous()
            };
            let k = split(&cx.linear("k_proj", keys, self.hidden, false)).contiguous();
            let v = split(&cx.linear("v_proj", keys, self.hidden, true)).contiguous();
            (q, k, v)
        } else {
            let q = split(&cx.linear("q_proj", x, self.hidden, true));
            let k = cx.linear("k_proj", keys, self.hidden, true);
            let v = cx.linear("v_proj", keys, self.hidden, true);
            (q, split(&k), split(&v))
        };
        let (mut out, weights) = attend(cx, [&q, &k, &v], mask, 0.0, Eager::default());
        out = out.reshape(&[b, s, self.hidden]);
        (cx.linear("out_proj", &out, self.hidden, true), weights)
    }
}

/// `shift_tokens_right`, T5's `_shift_right`.
pub(super) fn shift_tokens_right(labels: &Tensor) -> Tensor {
    let shape = labels.shape();
    let shifted = labels.constant("new_zeros", shape, DType::I64);
    let rest = [labels.size(0), labels.size(1).saturating_sub(1)];
    drop(labels.constant("clone", &rest, DType::I64));
    drop(labels.constant("eq", shape, DType::Bool));
    shifted
}
