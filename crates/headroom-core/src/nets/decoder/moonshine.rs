//! Moonshine: raw sound through three convolutions, an encoder, and a decoder that attends to it, both with partial rotation
//! (transformers/models/moonshine/modeling_moonshine.py). Frames of sound are `data.audio_frames`, a hundred a second; the
//! sequence is the transcript.

use super::super::attention::{Eager, attend};
use super::super::seq2seq::shift_tokens_right;
use super::super::{Cx, ModelError, Net, Output, Sizes, inputs};
use super::family::Rope;
use super::rope;
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// Ten seconds, where the run says no length.
const FRAMES: u64 = 1000;
/// Samples of a frame: sixteen thousand a second.
const SAMPLES: u64 = 160;

#[derive(Clone, Copy, Debug)]
struct Moonshine {
    layers: u64,
    decoder_layers: u64,
    hidden: u64,
    heads: u64,
    decoder_heads: u64,
    ffn: u64,
    vocab: u64,
    rotary_dim: u64,
    /// Heads are padded to a multiple of this.
    multiple: u64,
}

pub(super) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let (layers, hidden) = (sizes.need("layers")?, sizes.need("hidden")?);
    let heads = sizes.need("heads")?.max(1);
    Ok(Box::new(Moonshine {
        layers,
        decoder_layers: sizes.or("decoder_layers", layers),
        hidden,
        heads,
        decoder_heads: sizes.or("decoder_heads", heads).max(1),
        ffn: sizes.or("ffn", 4 * hidden),
        vocab: sizes.need("vocab")?,
        rotary_dim: sizes.or("rotary", hidden / heads).min(hidden / heads),
        multiple: sizes.or("pad", 1).max(1),
    }))
}

/// What a layer attends with, besides its own states.
#[derive(Clone)]
struct Around {
    tables: [Tensor; 2],
    mask: AttentionMask,
    heads: u64,
}

impl Net for Moonshine {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let frames = match data.audio_frames {
            0 => FRAMES,
            frames => frames,
        };
        let (n, samples) = (data.micro_batch, frames.saturating_mul(SAMPLES));
        vec![
            cx.tape.empty("labels", [n, data.sequence], DType::I64),
            cx.tape.empty("input_values", [n, samples], cx.env.weights),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [labels, sound] = batch else {
            return Output::empty(cx);
        };
        let ids = shift_tokens_right(labels);
        let (encoded, decoded) = cx.module("model", |cx| {
            let encoded = cx.module("encoder", |cx| self.encode(cx, sound));
            let decoded = cx.module("decoder", |cx| self.decode(cx, &ids, &encoded));
            (encoded, decoded)
        });
        let table = cx.module("model", |cx| {
            cx.embedding_weight(&["decoder", "embed_tokens"], self.vocab, self.hidden)
        });
        let logits = cx.tied_linear("proj_out", &decoded, &table);
        let loss = cx.module("loss", |_| {
            let wide = logits.to(DType::F32);
            let rows = wide.view(&[labels.numel(), self.vocab]);
            rows.cross_entropy(&labels.view(&[labels.numel()]))
        });
        Output {
            loss,
            held: vec![logits, encoded],
        }
    }
}

impl Moonshine {
    /// `MoonshineEncoder.forward`.
    fn encode(&self, cx: &Cx, sound: &Tensor) -> Tensor {
        let conv = |name, x: &Tensor, out, kernel, stride, bias| {
            cx.convolution(name, x, out, &[kernel], Conv::stride(stride), bias)
        };
        let mut x = conv("conv1", &sound.unsqueeze(1), self.hidden, 127, 64, false)
            .pipe(|x| cx.asks_with_adapters(x.clone()))
            .pipe(Tensor::tanh);
        x = cx.group_norm("groupnorm", &x, 1);
        x = conv("conv2", &x, 2 * self.hidden, 7, 3, true).pipe(Tensor::gelu);
        x = conv("conv3", &x, self.hidden, 3, 2, true).pipe(Tensor::gelu);
        x = x.permute(&[0, 2, 1]);
        let positions = x.constant("arange", &[x.size(1)], DType::I64).unsqueeze(0);
        let around = Around {
            tables: self.tables(cx, &positions, x.dtype()),
            mask: AttentionMask::None,
            heads: self.heads,
        };
        let this = *self;
        let last = cx.equal_stack("layers", self.layers, x, move |cx, hidden| {
            let hidden = sublayer(cx, hidden, "input_layernorm", |x| {
                cx.module("self_attn", |cx| this.attention(cx, x, None, &around))
            });
            sublayer(cx, &hidden, "post_attention_layernorm", |x| {
                cx.module("mlp", |cx| {
                    let mut inner = cx.linear("fc1", x, this.ffn, true);
                    inner = inner.gelu();
                    cx.linear("fc2", &inner, this.hidden, true)
                })
            })
        });
        drop(positions);
        norm(cx, "layer_norm", &last)
    }

    /// `MoonshineDecoder.forward`.
    fn decode(&self, cx: &Cx, ids: &Tensor, encoded: &Tensor) -> Tensor {
        let words = cx.embedding("embed_tokens", ids, self.vocab, self.hidden);
        let words = cx.asks_with_adapters(words);
        let positions = inputs::positions(ids);
        let mask = inputs::causal_mask(cx, ids, None, words.dtype());
        let around = Around {
            tables: self.tables(cx, &positions, words.dtype()),
            mask,
            heads: self.decoder_heads,
        };
        let (this, encoded) = (*self, encoded.clone());
        let layers = self.decoder_layers;
        let last = cx.equal_stack("layers", layers, words.clone(), move |cx, hidden| {
            let mut x = sublayer(cx, hidden, "input_layernorm", |x| {
                cx.module("self_attn", |cx| this.attention(cx, x, None, &around))
            });
            x = sublayer(cx, &x, "post_attention_layernorm", |x| {
                cx.module("encoder_attn", |cx| {
                    this.attention(cx, x, Some(&encoded), &around)
                })
            });
            sublayer(cx, &x, "final_layernorm", |x| {
                cx.module("mlp", |cx| this.gated(cx, x))
            })
        });
        drop((words, positions));
        norm(cx, "norm", &last)
    }

    fn tables(&self, cx: &Cx, positions: &Tensor, dtype: DType) -> [Tensor; 2] {
        let buffers = ["inv_freq", "original_inv_freq"];
        let form = Rope::PartialInterleaved;
        rope::tables(cx, positions, self.rotary_dim, dtype, form, buffers)
    }

    /// `MoonshineDecoderMLP.forward`.
    fn gated(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let both = cx.linear("fc1", x, 2 * self.ffn, true);
        let mut halves = both.chunk(2, -1);
        drop(both);
        let (Some(gate), Some(hidden)) = (halves.pop(), halves.pop()) else {
            return x.clone();
        };
        let product = gate.silu().pipe(|gate| gate.mul(&hidden));
        cx.linear("fc2", &product, self.hidden, true)
    }

    /// `MoonshineAttention.forward`: to other states without rotation.
    fn attention(&self, cx: &Cx, x: &Tensor, other: Option<&Tensor>, around: &Around) -> Tensor {
        let (b, s, d) = (x.size(0), x.size(1), self.hidden / around.heads);
        let heads = |name, x: &Tensor| {
            let y = cx.linear(name, x, self.hidden, false);
            y.view(&[b, x.size(1), around.heads, d]).transpose(1, 2)
        };
        let source = other.unwrap_or(x);
        let mut q = heads("q_proj", x);
        let mut k = heads("k_proj", source);
        let mut v = heads("v_proj", source);
        let mut held = Vec::new();
        if other.is_none() {
            (q, k, held) = rope::apply(&q, &k, &around.tables, Rope::PartialInterleaved);
        }
        let room = d.next_multiple_of(self.multiple) - d;
        if room > 0 {
            [q, k, v] = [q, k, v].map(|x| x.padded_at_end(-1, room));
        }
        let none = AttentionMask::None;
        let mask = if other.is_some() { &none } else { &around.mask };
        let form = Eager { in_fp32: true };
        let (mut out, weights) = attend(cx, [&q, &k, &v], mask, 0.0, form);
        if room > 0 {
            out = out.narrow(-1, d);
        }
        out = out.reshape(&[b, s, self.hidden]);
        out = cx.linear("o_proj", &out, self.hidden, false);
        drop((q, k, v, held, weights));
        out
    }
}

/// `nn.LayerNorm(bias=False)`.
fn norm(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    cx.module(name, |cx| {
        let weight = cx.param("weight", [x.size(-1)]).tensor();
        x.layer_norm(Some(&weight), None)
    })
}

/// What a norm and a part of a layer add to the states.
fn sublayer(
    cx: &Cx,
    input: &Tensor,
    name: &'static str,
    body: impl FnOnce(&Tensor) -> Tensor,
) -> Tensor {
    let normed = norm(cx, name, input);
    let out = normed.pipe(body);
    input.add(&out)
}
