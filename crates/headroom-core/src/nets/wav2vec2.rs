//! wav2vec 2.0, HuBERT, UniSpeech-SAT and WavLM with a CTC head or one for classes: convolutions over samples of sound, and a
//! transformer (transformers/models/{wav2vec2,hubert,unispeech_sat,wavlm}/modeling_*.py). `samples` is the length of a sample of
//! the batch, tokens of its transcript the sequence. Neither SpecAugment's masks nor layers dropped at random are run.

mod bert;
mod gated;

pub(crate) use bert::build as bert;

use super::attention::{Eager, attend};
use super::parakeet::ctc_loss;
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// `conv_kernel` and `conv_stride`.
const CONVOLUTIONS: [(u64, u64); 7] = [(10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)];
/// Ten seconds.
const SAMPLES: u64 = 160_000;

#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a yes or no of a configuration.
struct Wav2Vec2 {
    prefix: &'static str,
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    vocab: u64,
    /// Channels of the convolutions.
    channels: u64,
    /// `feat_extract_norm="layer"`: a norm behind each convolution, else one behind the first.
    normed: bool,
    conv_bias: bool,
    /// `do_stable_layer_norm`: norms before sublayers.
    norms_first: bool,
    /// `masked_spec_embed`, which only SpecAugment reads.
    masked: bool,
    pos_kernel: u64,
    pos_groups: u64,
    samples: u64,
    /// Buckets of relative positions, whose bias is gated in each layer (WavLM).
    buckets: u64,
    /// `…ForSequenceClassification`: the width of its projector and its classes.
    classes: Option<[u64; 2]>,
}

pub(crate) fn wav2vec2(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, "wav2vec2", 0)
}

pub(crate) fn hubert(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, "hubert", 0)
}

pub(crate) fn unispeech_sat(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, "unispeech_sat", 0)
}

pub(crate) fn wavlm(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, "wavlm", sizes.or("buckets", 320).max(1))
}

fn build(sizes: &Sizes, prefix: &'static str, buckets: u64) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    let classifies = sizes.is_set("audio_classes");
    Ok(Box::new(Wav2Vec2 {
        prefix,
        layers: sizes.need("layers")?,
        hidden,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.or("ffn", hidden.saturating_mul(4)),
        vocab: sizes.or("vocab", 32),
        channels: sizes.or("channels", 512),
        normed: sizes.is_set("conv_norms"),
        conv_bias: sizes.is_set("conv_bias"),
        norms_first: sizes.is_set("norms_first"),
        masked: sizes.or("mask_embed", 1) != 0,
        pos_kernel: sizes.or("pos_kernel", 128).max(1),
        pos_groups: sizes.or("pos_groups", 16).max(1),
        samples: sizes.or("samples", SAMPLES),
        buckets,
        classes: classifies.then(|| [sizes.or("cls_width", 256), sizes.or("audio_classes", 2)]),
    }))
}

impl Net for Wav2Vec2 {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let b = data.micro_batch;
        let labels = match self.classes {
            Some(_) => cx.tape.empty("labels", [b], DType::I64),
            None => cx.tape.empty("labels", [b, data.sequence], DType::I64),
        };
        let sound = [b, self.samples];
        vec![cx.tape.empty("input_values", sound, cx.env.weights), labels]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [sound, labels] = batch else {
            return Output::empty(cx);
        };
        let (hidden, features) = cx.module(self.prefix, |cx| self.model(cx, sound));
        if let Some([width, classes]) = self.classes {
            let mut hidden = cx.linear("projector", &hidden, width, true);
            hidden = hidden.mean(&[1]).squeeze(1);
            let logits = cx.linear("classifier", &hidden, classes, true);
            let loss = cx.module("loss", |_| logits.cross_entropy(labels));
            drop(features);
            return Output {
                loss,
                held: vec![logits],
            };
        }
        let hidden = cx.dropout(&hidden, 0.1);
        let logits = cx.linear("lm_head", &hidden, self.vocab, true);
        let loss = cx.module("loss", |_| {
            let heard = sound.constant("ones_like", sound.shape(), DType::I64);
            let lengths = heard.constant("sum", &[sound.size(0)], DType::I64);
            let loss = ctc_loss(&logits, labels);
            drop((heard, lengths));
            loss
        });
        drop((hidden, features));
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl Wav2Vec2 {
    /// `Wav2Vec2Model.forward`: the last hidden states, and the normed features, which its output holds.
    fn model(&self, cx: &Cx, sound: &Tensor) -> (Tensor, Tensor) {
        if self.masked {
            cx.param("masked_spec_embed", [self.hidden]);
        }
        let extracted = cx.module("feature_extractor", |cx| self.features(cx, sound));
        let extracted = extracted.transpose(1, 2);
        let (hidden, features) = cx.module("feature_projection", |cx| {
            let normed = cx.layer_norm("layer_norm", &extracted);
            let projected = cx.linear("projection", &normed, self.hidden, true);
            (projected, normed)
        });
        drop(extracted);
        let last = cx.module("encoder", |cx| self.encoder(cx, hidden));
        (last, features)
    }

    /// `Wav2Vec2FeatureEncoder.forward`.
    fn features(&self, cx: &Cx, sound: &Tensor) -> Tensor {
        let mut hidden = sound.unsqueeze(1);
        for (i, (kernel, stride)) in CONVOLUTIONS.into_iter().enumerate() {
            hidden = cx.list_item("conv_layers", i, |cx| {
                let conv = Conv::stride(stride);
                let mut x = cx.convolution(
                    "conv",
                    &hidden,
                    self.channels,
                    &[kernel],
                    conv,
                    self.conv_bias,
                );
                if self.normed {
                    x = x.transpose(-2, -1);
                    x = cx.layer_norm("layer_norm", &x);
                    x = x.transpose(-2, -1);
                } else if i == 0 {
                    x = cx.module("layer_norm", |cx| {
                        let weight = cx.param("weight", [self.channels]).tensor();
                        let bias = cx.param("bias", [self.channels]).tensor();
                        x.group_norm(self.channels, &weight, &bias)
                    });
                }
                x.gelu()
            });
        }
        hidden
    }

    fn encoder(&self, cx: &Cx, hidden: Tensor) -> Tensor {
        let mut hidden = {
            let positions = cx.module("pos_conv_embed", |cx| self.positions(cx, &hidden));
            hidden.add(&positions)
        };
        if !self.norms_first {
            hidden = cx.layer_norm("layer_norm", &hidden);
        }
        hidden = cx.dropout(&hidden, 0.1);
        let this = *self;
        hidden = if self.buckets > 0 {
            self.gated_layers(cx, hidden)
        } else {
            cx.equal_stack("layers", self.layers, hidden, move |cx, hidden| {
                this.layer(cx, hidden, |cx, x| this.attention(cx, x))
            })
        };
        if self.norms_first {
            hidden = cx.layer_norm("layer_norm", &hidden);
        }
        hidden
    }

    /// `Wav2Vec2PositionalConvEmbedding.forward`: a grouped convolution whose weight is a direction and a length.
    fn positions(&self, cx: &Cx, hidden: &Tensor) -> Tensor {
        let x = hidden.transpose(1, 2);
        let length = x.size(2);
        let mut out = cx.module("conv", |cx| {
            let bias = cx.param("bias", [self.hidden]).tensor();
            let [lengths, directions] = cx.module("parametrizations", |cx| {
                cx.module("weight", |cx| {
                    let shape = [self.hidden, self.hidden / self.pos_groups, self.pos_kernel];
                    [
                        cx.param("original0", [1, 1, self.pos_kernel]).tensor(),
                        cx.param("original1", shape).tensor(),
                    ]
                })
            });
            let weight = directions.mul(&lengths);
            let conv = Conv::stride(1)
                .padded(self.pos_kernel / 2)
                .grouped(self.pos_groups);
            x.convolution(&weight, Some(&bias), conv)
        });
        // `Wav2Vec2SamePadLayer`.
        out = out.narrow(2, length);
        out = out.gelu();
        out.transpose(1, 2)
    }

    /// `Wav2Vec2EncoderLayer.forward`, `Wav2Vec2EncoderLayerStableLayerNorm.forward`.
    fn layer(
        &self,
        cx: &Cx,
        input: &Tensor,
        attention: impl FnOnce(&Cx, &Tensor) -> (Tensor, Option<Tensor>),
    ) -> Tensor {
        let mut hidden = input.clone();
        if self.norms_first {
            hidden = cx.layer_norm("layer_norm", &hidden);
        }
        let (attended, weights) = cx.module("attention", |cx| attention(cx, &hidden));
        hidden = cx.dropout(&attended, 0.1);
        drop((attended, weights));
        hidden = input.add(&hidden);
        if self.norms_first {
            let normed = cx.layer_norm("final_layer_norm", &hidden);
            let more = cx.module("feed_forward", |cx| self.feed_forward(cx, normed));
            return hidden.add(&more);
        }
        hidden = cx.layer_norm("layer_norm", &hidden);
        let more = cx.module("feed_forward", |cx| self.feed_forward(cx, hidden.clone()));
        hidden = hidden.add(&more);
        drop(more);
        cx.layer_norm("final_layer_norm", &hidden)
    }

    fn feed_forward(&self, cx: &Cx, x: Tensor) -> Tensor {
        let mut hidden = cx.linear("intermediate_dense", &x, self.ffn, true);
        drop(x);
        hidden = hidden.gelu();
        hidden = cx.dropout(&hidden, 0.1);
        hidden = cx.linear("output_dense", &hidden, self.hidden, true);
        cx.dropout(&hidden, 0.1)
    }

    /// `Wav2Vec2Attention.forward`.
    fn attention(&self, cx: &Cx, x: &Tensor) -> (Tensor, Option<Tensor>) {
        let (b, s, d) = (x.size(0), x.size(1), self.hidden / self.heads);
        let [q, k, v] = ["q_proj", "k_proj", "v_proj"].map(|name| {
            let projected = cx.linear(name, x, self.hidden, true);
            projected.view(&[b, s, self.heads, d]).transpose(1, 2)
        });
        let none = AttentionMask::None;
        let (mut out, weights) = attend(cx, [&q, &k, &v], &none, 0.1, Eager::default());
        out = out.reshape(&[b, s, self.hidden]);
        (cx.linear("out_proj", &out, self.hidden, true), weights)
    }
}
