//! Wav2Vec2-BERT with a CTC head: a Conformer over frames of a filter bank
//! (transformers/models/wav2vec2_bert/modeling_wav2vec2_bert.py). `frames` is the length of a sample, tokens of its transcript the
//! sequence. Neither SpecAugment's masks nor layers dropped at random are run.

use crate::nets::attention::{Eager, attend, heads};
use crate::nets::parakeet::ctc_loss;
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::{Attention, Data};

#[derive(Clone, Copy, Debug)]
struct Wav2Vec2Bert {
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    vocab: u64,
    /// `feature_projection_input_dim`.
    features: u64,
    frames: u64,
    /// `conv_depthwise_kernel_size`.
    kernel: u64,
    /// Distances that have an embedding (`relative_key`).
    distances: u64,
    /// `masked_spec_embed`, which only SpecAugment reads.
    masked: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    Ok(Box::new(Wav2Vec2Bert {
        layers: sizes.need("layers")?,
        hidden,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.or("ffn", hidden.saturating_mul(4)),
        vocab: sizes.or("vocab", 32),
        features: sizes.or("features", 160),
        frames: sizes.or("frames", 500),
        kernel: sizes.or("kernel", 31).max(1),
        distances: sizes.or("distances", 73),
        masked: sizes.or("mask_embed", 1) != 0,
    }))
}

impl Net for Wav2Vec2Bert {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let b = data.micro_batch;
        let sound = [b, self.frames, self.features];
        vec![
            cx.tape.empty("input_features", sound, cx.env.weights),
            cx.tape.empty("labels", [b, data.sequence], DType::I64),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [sound, labels] = batch else {
            return Output::empty(cx);
        };
        let (hidden, features) = cx.module("wav2vec2_bert", |cx| self.model(cx, sound));
        let hidden = cx.dropout(&hidden, 0.1);
        let logits = cx.linear("lm_head", &hidden, self.vocab, true);
        let loss = cx.module("loss", |_| {
            let heard = sound.constant("ones", &[sound.size(0), sound.size(1)], DType::I64);
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

impl Wav2Vec2Bert {
    /// The last hidden states, and the normed features, which the output holds.
    fn model(&self, cx: &Cx, sound: &Tensor) -> (Tensor, Tensor) {
        if self.masked {
            cx.param("masked_spec_embed", [self.hidden]);
        }
        let (hidden, normed) = cx.module("feature_projection", |cx| {
            let normed = cx.layer_norm("layer_norm", sound);
            (cx.linear("projection", &normed, self.hidden, true), normed)
        });
        let this = *self;
        let last = cx.module("encoder", |cx| {
            cx.equal_stack("layers", self.layers, hidden, move |cx, x| {
                this.layer(cx, x)
            })
        });
        (last, normed)
    }

    /// `Wav2Vec2BertEncoderLayer.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor) -> Tensor {
        let halved = |cx: &Cx, norm, name, input: &Tensor| {
            let mut x = cx.layer_norm(norm, input);
            x = cx.module(name, |cx| {
                let inner = cx
                    .linear("intermediate_dense", &x, self.ffn, true)
                    .pipe(Tensor::silu);
                cx.linear("output_dense", &inner, self.hidden, true)
            });
            x.mul_scalar().pipe(|half| half.add(input))
        };
        let mut hidden = halved(cx, "ffn1_layer_norm", "ffn1", input);
        let residual = hidden.clone();
        hidden = cx.layer_norm("self_attn_layer_norm", &hidden);
        hidden = cx.module("self_attn", |cx| self.attention(cx, &hidden));
        hidden = hidden.add(&residual);
        let residual = hidden.clone();
        hidden = cx.module("conv_module", |cx| self.convolved(cx, &hidden));
        hidden = residual.add(&hidden);
        drop(residual);
        hidden = halved(cx, "ffn2_layer_norm", "ffn2", &hidden);
        cx.layer_norm("final_layer_norm", &hidden)
    }

    /// `Wav2Vec2BertSelfAttention.forward` with `relative_key`: the scores of distances are a bias with a gradient.
    fn attention(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let [q, k, v] = ["linear_q", "linear_k", "linear_v"]
            .map(|name| heads(&cx.linear(name, x, self.hidden, true), self.heads));
        let s = x.size(1);
        let bias = {
            let index = |shape: &[u64]| x.constant("arange", shape, DType::I64);
            let distance = (index(&[s, 1]), index(&[1, s]), index(&[s, s]));
            let places = index(&[s, s]);
            let width = self.hidden / self.heads;
            let embedded = cx.embedding("distance_embedding", &places, self.distances, width);
            let embedded = embedded.to(q.dtype());
            drop((distance, places));
            q.einsum("bhld", &embedded, "lrd", "bhlr")
                .pipe(Tensor::mul_scalar)
        };
        let start = cx.tape.construction_point();
        let eager = cx.env.training.attention == Attention::Eager;
        let mask = AttentionMask::Given(if eager {
            bias.clone()
        } else {
            bias.to(q.dtype())
        });
        let (mut out, weights) = attend(cx, [&q, &k, &v], &mask, 0.0, Eager::default());
        out = out.reshape(x.shape());
        out = cx.linear("linear_out", &out, self.hidden, true);
        let made = cx.tape.construction_point();
        cx.tape.construct_here(start, made);
        drop((bias, weights));
        out
    }

    /// `Wav2Vec2BertConvolutionModule.forward`: padded at the front, so that no frame reads later ones.
    fn convolved(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let point = Conv::default();
        let mut hidden = cx.layer_norm("layer_norm", x);
        hidden = hidden.transpose(1, 2);
        let wide = 2 * self.hidden;
        hidden = cx.convolution("pointwise_conv1", &hidden, wide, &[1], point, false);
        hidden = hidden.glu(1);
        hidden = hidden.padded_at_end(2, self.kernel - 1);
        let conv = Conv::stride(1).grouped(self.hidden);
        let (name, width) = ("depthwise_conv", self.hidden);
        hidden = cx.convolution(name, &hidden, width, &[self.kernel], conv, false);
        hidden = cx.layer_norm("depthwise_layer_norm", &hidden.transpose(1, 2));
        hidden = hidden.transpose(1, 2).pipe(Tensor::silu);
        hidden = cx.convolution("pointwise_conv2", &hidden, width, &[1], point, false);
        hidden = cx.dropout(&hidden, 0.1);
        hidden.transpose(1, 2)
    }
}
