//! BLIP for captions: a ViT, and a BERT that writes while it attends to the picture
//! (transformers/models/blip/{modeling_blip,modeling_blip_text}.py).

use super::attention::{Eager, attend, heads};
use super::encoder::{Config, add_and_norm, feed_forward};
use super::inputs::{causal_mask, token_ids_and_labels};
use super::losses::{Entropy, shifted_loss};
use super::vit::patches;
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::{Attention, Data};

#[derive(Clone, Copy, Debug)]
struct Blip {
    tower: Tower,
    text: Config,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Tower {
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    image: u64,
    patch: u64,
    /// BLIP-2's attention is the library's; BLIP's is eager whatever the run requests.
    second: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Blip {
        tower: Tower::new(sizes)?,
        text: Config::new(sizes)?,
    }))
}

impl Net for Blip {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let mut all = token_ids_and_labels(cx, data);
        all.insert(2, self.tower.pixels(cx, data.micro_batch));
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, pixels, ..] = batch else {
            return Output::empty(cx);
        };
        // Its configuration drops nothing out.
        let cx = &cx.part(cx.env.weights, |training| training.dropout = false);
        let [seen, pooled] = cx.module("vision_model", |cx| self.tower.forward(cx, pixels));
        let logits = cx.module("text_decoder", |cx| {
            let hidden = cx.module("bert", |cx| self.decode(cx, ids, &seen, batch.get(3)));
            self.mlm_head(cx, &hidden)
        });
        let loss = cx.module("loss", |_| shifted_loss(&logits, labels, Entropy::Library));
        Output {
            loss,
            held: vec![logits, seen, pooled],
        }
    }
}

impl Tower {
    fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        let hidden = sizes.need("v_hidden")?;
        Ok(Self {
            layers: sizes.need("v_layers")?,
            hidden,
            heads: sizes.need("v_heads")?.max(1),
            ffn: sizes.or("v_ffn", 4 * hidden),
            image: sizes.or("img", 384),
            patch: sizes.or("patch", 16).max(1),
            second: false,
        })
    }

    /// BLIP-2's.
    pub(super) fn second(sizes: &Sizes) -> Result<Self, ModelError> {
        let tower = Self::new(sizes)?;
        Ok(Self {
            second: true,
            ..tower
        })
    }

    pub(super) fn pixels(&self, cx: &Cx, count: u64) -> Tensor {
        let pixels = [count, 3, self.image, self.image];
        cx.tape.empty("pixel_values", pixels, cx.env.weights)
    }

    /// `last_hidden_state` and `pooler_output`.
    pub(super) fn forward(&self, cx: &Cx, pixels: &Tensor) -> [Tensor; 2] {
        let (n, hidden) = (pixels.size(0), self.hidden);
        let embedded = cx.module("embeddings", |cx| {
            let class = cx.param("class_embedding", [1, 1, hidden]);
            let side = self.image / self.patch;
            let places = side.saturating_mul(side).saturating_add(1);
            let positions = cx.param("position_embedding", [1, places, hidden]);
            let grid = patches(cx, "patch_embedding", pixels, hidden, self.patch);
            let class = class.tensor().expand(&[n, 1, hidden]);
            let joined = Tensor::cat(&class, &[&grid], 1);
            joined.add(&positions.tensor())
        });
        let tower = *self;
        let states = cx.module("encoder", |cx| {
            cx.equal_stack("layers", self.layers, embedded, move |cx, x| {
                tower.layer(cx, x)
            })
        });
        let last = cx.layer_norm("post_layernorm", &states);
        let pooled = cx.layer_norm("post_layernorm", &last.select(1));
        [last, pooled]
    }

    /// `BlipEncoderLayer.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor) -> Tensor {
        let mut x = cx.layer_norm("layer_norm1", input);
        let (attended, shares) = cx.module("self_attn", |cx| self.attention(cx, &x));
        x = attended.add(input);
        drop(attended);
        let residual = x.clone();
        x = cx.layer_norm("layer_norm2", &x);
        x = cx.module("mlp", |cx| {
            let inner = cx.linear("fc1", &x, self.ffn, true).pipe(Tensor::gelu);
            cx.linear("fc2", &inner, self.hidden, true)
        });
        let out = x.add(&residual);
        drop(shares);
        out
    }

    /// `BlipAttention.forward`, `Blip2Attention.forward`.
    fn attention(&self, cx: &Cx, x: &Tensor) -> (Tensor, Option<Tensor>) {
        let (n, s, h) = (x.size(0), x.size(1), self.heads);
        let qkv = cx
            .linear("qkv", x, 3 * self.hidden, true)
            .reshape(&[n, s, 3, h, self.hidden / h])
            .permute(&[2, 0, 3, 1, 4]);
        let [q, k, v] = [0; 3].map(|_| qkv.select(0));
        if self.second {
            let none = AttentionMask::None;
            let (out, weights) = attend(cx, [&q, &k, &v], &none, 0.0, Eager::default());
            let rows = out.reshape(x.shape());
            return (cx.linear("projection", &rows, self.hidden, true), weights);
        }
        let mut scores = q.matmul(&k.transpose(-1, -2));
        scores = scores.mul_scalar();
        let shares = scores.softmax(None);
        let context = shares.matmul(&v).permute(&[0, 2, 1, 3]);
        let rows = context.reshape(x.shape());
        let out = cx.linear("projection", &rows, self.hidden, true);
        drop((qkv, scores, rows));
        (out, Some(shares))
    }
}

impl Blip {
    /// `BlipTextModel.forward` as a decoder.
    fn decode(&self, cx: &Cx, ids: &Tensor, seen: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let Config {
            layers,
            hidden,
            vocab,
            positions,
            ..
        } = self.text;
        let embedded = cx.module("embeddings", |cx| {
            let all = cx.buffer("position_ids", [1, positions], DType::I64);
            let words = cx.input_embedding("word_embeddings", ids, vocab, hidden);
            let places = all.narrow(1, ids.size(1));
            let by_order = cx.embedding("position_embeddings", &places, positions, hidden);
            let sum = words.add_(&by_order);
            let normed = cx.layer_norm("LayerNorm", &sum);
            drop((words, by_order));
            normed
        });
        let eager = cx.part(cx.env.weights, |training| {
            training.attention = Attention::Eager;
        });
        let mask = causal_mask(&eager, ids, padding, embedded.dtype());
        let (this, seen) = (*self, seen.clone());
        cx.module("encoder", |cx| {
            let first = embedded.clone();
            cx.equal_stack("layer", layers, first, move |cx, x| {
                this.layer(cx, x, &mask, &seen)
            })
        })
    }

    /// `BlipTextLayer.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor, mask: &AttentionMask, seen: &Tensor) -> Tensor {
        let attended = |cx: &Cx, name, x: &Tensor, read: &Tensor, mask: &AttentionMask| {
            cx.module(name, |cx| {
                let (out, shares) = cx.module("self", |cx| self.attention(cx, [x, read], mask));
                let normed = cx.module("output", |cx| add_and_norm(cx, &out, x));
                (normed, shares)
            })
        };
        let (own, _shares) = attended(cx, "attention", input, input, mask);
        let none = AttentionMask::None;
        let (crossed, _shares) = attended(cx, "crossattention", &own, seen, &none);
        drop(own);
        feed_forward(cx, &crossed, self.text.ffn)
    }

    fn attention(
        &self,
        cx: &Cx,
        [x, read]: [&Tensor; 2],
        mask: &AttentionMask,
    ) -> (Tensor, Tensor) {
        let Config {
            hidden, heads: h, ..
        } = self.text;
        let project = |name, x: &Tensor| heads(&cx.linear(name, x, hidden, true), h);
        let (q, k, v) = (
            project("query", x),
            project("key", read),
            project("value", read),
        );
        let mut scores = q.matmul(&k.transpose(-1, -2));
        scores = scores.mul_scalar();
        if let AttentionMask::Given(mask) = mask {
            scores = scores.add(mask);
        }
        let shares = scores.softmax(None);
        let mut out = shares.matmul(&v);
        out = out.permute(&[0, 2, 1, 3]).contiguous();
        let out = out.view(x.shape());
        drop((q, k, v, scores));
        (out, shares)
    }

    /// `BlipTextOnlyMLMHead`, whose decoder is tied to the word embeddings.
    fn mlm_head(&self, cx: &Cx, hidden: &Tensor) -> Tensor {
        let Config {
            hidden: width,
            vocab,
            ..
        } = self.text;
        let path = ["bert", "embeddings", "word_embeddings"];
        let weight = cx.embedding_weight(&path, vocab, width);
        cx.module("cls", |cx| {
            cx.module("predictions", |cx| {
                let bias = cx.param("bias", [vocab]).tensor();
                let x = cx.module("transform", |cx| {
                    let x = cx.linear("dense", hidden, width, true).pipe(Tensor::gelu);
                    cx.layer_norm("LayerNorm", &x)
                });
                drop(cx.weight_until_tied([vocab, width]));
                x.linear(&weight, Some(&bias))
            })
        })
    }
}
