//! V-JEPA 2 in classification: a ViT with rotary positions of frame, row and column, and a pooler that attends
//! (transformers/models/vjepa2/modeling_vjepa2.py). Its predictor is there and does not run.

use super::clips::{Clips, patches_of};
use crate::nets::attention::{Eager, attend, heads};
use crate::nets::vision::index_name;
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct VJepa2 {
    layers: u64,
    layer: Layer,
    pooler_layers: u64,
    predictor: Predictor,
    clips: Clips,
    classes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Layer {
    hidden: u64,
    heads: u64,
    ffn: u64,
    bias: bool,
}

#[derive(Clone, Copy, Debug)]
struct Predictor {
    layers: u64,
    layer: Layer,
    mask_tokens: u64,
}

pub(super) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    let bias = sizes.or("qkv_bias", 1) != 0;
    let narrow = sizes.or("p_hidden", 384);
    Ok(Box::new(VJepa2 {
        layers: sizes.need("layers")?,
        layer: Layer {
            hidden,
            heads: sizes.need("heads")?.max(1),
            ffn: sizes.or("ffn", 4 * hidden),
            bias,
        },
        pooler_layers: sizes.or("pooler_layers", 3),
        predictor: Predictor {
            layers: sizes.or("p_layers", 12),
            layer: Layer {
                hidden: narrow,
                heads: 1,
                ffn: sizes.or("p_ffn", 4 * narrow),
                bias,
            },
            mask_tokens: sizes.or("p_mask_tokens", 10),
        },
        clips: Clips::of(sizes, [64, 256])?,
        classes: sizes.or("classes", 174),
    }))
}

impl Net for VJepa2 {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        self.clips.batch(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [clips, labels] = batch else {
            return Output::empty(cx);
        };
        let (last, masked) = cx.module("vjepa2", |cx| {
            let last = cx.module("encoder", |cx| self.encode(cx, clips));
            cx.module("predictor", |cx| {
                self.predictor.declare(cx, self.layer.hidden);
            });
            // All tokens are kept, by a mask of their numbers.
            let (n, count) = (last.size(0), last.size(1));
            let masks = [(); 2].map(|()| last.constant("repeat", &[n, count], DType::I64));
            let [mask, _] = &masks;
            let index = mask.constant("repeat", last.shape(), DType::I64);
            let kept = last.gathered(&index);
            drop(index);
            let masked = Tensor::cat(&kept, &[], 0);
            (last, masked)
        });
        let pooled = cx.module("pooler", |cx| self.pool(cx, &last));
        let logits = cx.linear("classifier", &pooled, self.classes, true);
        drop((last, masked, pooled));
        let loss = cx.module("loss", |_| logits.cross_entropy(labels));
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl VJepa2 {
    fn encode(&self, cx: &Cx, clips: &Tensor) -> Tensor {
        let embedded = cx.module("embeddings", |cx| {
            let patches = cx.module("patch_embeddings", |cx| {
                patches_of(cx, "proj", clips, self.layer.hidden, self.clips)
            });
            cx.asks_with_adapters(patches)
        });
        let layer = self.layer;
        let last = cx.equal_stack("layer", self.layers, embedded, move |cx, hidden| {
            layer.run(cx, hidden)
        });
        cx.layer_norm("layernorm", &last)
    }

    /// `VJEPA2AttentivePooler.forward`.
    fn pool(&self, cx: &Cx, x: &Tensor) -> Tensor {
        // Its MLPs are four times as wide, whatever `mlp_ratio` says.
        let layer = Layer {
            ffn: 4 * self.layer.hidden,
            ..self.layer
        };
        let query = cx.param("query_tokens", [1, 1, layer.hidden]);
        let last = cx.equal_stack(
            "self_attention_layers",
            self.pooler_layers,
            x.clone(),
            move |cx, x| layer.pooling(cx, x, None),
        );
        let queries = query.tensor().repeated(&[x.size(0), 1, layer.hidden]);
        let pooled = cx.layer(
            "cross_attention_layer",
            0,
            vec![queries],
            move |cx, state| {
                let run = |query| layer.pooling(cx, &last, Some(query));
                state.iter().map(run).collect()
            },
        );
        let pooled = pooled.into_iter().next();
        pooled.map_or_else(|| x.select(1), |pooled| pooled.squeeze(1))
    }
}

impl Predictor {
    /// Its parameters, which get no gradient.
    fn declare(self, cx: &Cx, outer: u64) {
        let linear = |cx: &Cx, name: &'static str, [inputs, out]: [u64; 2], bias: bool| {
            cx.module(name, |cx| {
                cx.param("weight", [out, inputs]);
                if bias {
                    cx.param("bias", [out]);
                }
            });
        };
        let norm = |cx: &Cx, name: &'static str, width: u64| {
            cx.module(name, |cx| {
                cx.param("weight", [width]);
                cx.param("bias", [width]);
            });
        };
        let Layer {
            hidden, ffn, bias, ..
        } = self.layer;
        cx.module("embeddings", |cx| {
            cx.param("mask_tokens", [self.mask_tokens, 1, 1, hidden]);
            linear(cx, "predictor_embeddings", [outer, hidden], true);
        });
        for i in 0..self.layers as usize {
            cx.module("layer", |cx| {
                cx.module(index_name(i), |cx| {
                    norm(cx, "norm1", hidden);
                    cx.module("attention", |cx| {
                        for name in ["query", "key", "value"] {
                            linear(cx, name, [hidden, hidden], bias);
                        }
                        linear(cx, "proj", [hidden, hidden], true);
                    });
                    norm(cx, "norm2", hidden);
                    cx.module("mlp", |cx| {
                        linear(cx, "fc1", [hidden, ffn], true);
                        linear(cx, "fc2", [ffn, hidden], true);
                    });
                });
            });
        }
        norm(cx, "layernorm", hidden);
        linear(cx, "proj", [hidden, outer], true);
    }
}

impl Layer {
    /// `VJEPA2Layer.forward`.
    fn run(self, cx: &Cx, input: &Tensor) -> Tensor {
        let mut hidden = cx.layer_norm("norm1", input);
        let (attended, _weights) = cx.module("attention", |cx| self.attention(cx, &hidden));
        hidden = attended.add(input);
        drop(attended);
        let residual = hidden.clone();
        hidden = cx.layer_norm("norm2", &hidden);
        hidden = cx.module("mlp", |cx| self.mlp(cx, &hidden));
        hidden.add(&residual)
    }

    fn mlp(self, cx: &Cx, x: &Tensor) -> Tensor {
        let mut inner = cx.linear("fc1", x, self.ffn, true);
        inner = inner.gelu();
        cx.linear("fc2", &inner, self.hidden, true)
    }

    fn attention(self, cx: &Cx, x: &Tensor) -> (Tensor, Option<Tensor>) {
        let [mut q, mut k, v] = ["query", "key", "value"]
            .map(|name| heads(&cx.linear(name, x, self.hidden, self.bias), self.heads));
        // Where each token is: frame, row and column.
        let places = [(); 3].map(|()| x.constant("sub", &[x.size(1)], DType::I64));
        k = turned(&k, &places);
        q = turned(&q, &places);
        let eager = Eager { in_fp32: true };
        let (mut out, weights) = attend(cx, [&q, &k, &v], &AttentionMask::None, 0.0, eager);
        out = out.reshape(x.shape());
        (cx.linear("proj", &out, self.hidden, true), weights)
    }

    /// `VJEPA2PoolerSelfAttentionLayer.forward`, or of one query `VJEPA2PoolerCrossAttentionLayer.forward`, which has no projection behind its
    /// attention.
    fn pooling(self, cx: &Cx, x: &Tensor, query: Option<&Tensor>) -> Tensor {
        let input = query.unwrap_or(x);
        let normed = cx.layer_norm("layer_norm1", x);
        let name = if query.is_some() {
            "cross_attn"
        } else {
            "self_attn"
        };
        let attended = cx.module(name, |cx| {
            let project =
                |name, x: &Tensor| heads(&cx.linear(name, x, self.hidden, true), self.heads);
            let q = project("q_proj", query.unwrap_or(&normed));
            let k = project("k_proj", &normed);
            let v = project("v_proj", &normed);
            let eager = Eager { in_fp32: true };
            let (mut out, weights) = attend(cx, [&q, &k, &v], &AttentionMask::None, 0.0, eager);
            out = out.reshape(input.shape());
            if query.is_none() {
                out = cx.linear("out_proj", &out, self.hidden, true);
            }
            drop(weights);
            out
        });
        drop(normed);
        let mut hidden = input.add(&attended);
        drop(attended);
        let residual = hidden.clone();
        hidden = cx.layer_norm("layer_norm2", &hidden);
        hidden = cx.module("mlp", |cx| self.mlp(cx, &hidden));
        residual.add(&hidden)
    }
}

/// `apply_rotary_embeddings`: a third of a head for each of frame, row and column; what is left stays as it is.
fn turned(x: &Tensor, places: &[Tensor; 3]) -> Tensor {
    let head = x.size(-1);
    let part = 2 * ((head / 3) / 2);
    let mut parts: Vec<Tensor> = places
        .iter()
        .map(|place| rotated(&x.narrow(-1, part), place))
        .collect();
    let rest = head.saturating_sub(3 * part);
    if rest > 0 {
        parts.push(x.narrow(-1, rest));
    }
    match parts.split_first() {
        Some((first, others)) => Tensor::cat(first, &others.iter().collect::<Vec<_>>(), -1),
        None => x.clone(),
    }
}

/// `rotate_queries_or_keys`.
fn rotated(x: &Tensor, place: &Tensor) -> Tensor {
    let (count, width) = (x.size(2), x.size(3));
    let angles = place.constant("mul", &[count, width / 2], x.dtype());
    let tables = {
        let halves = [(); 2].map(|()| angles.constant("sin", &[count, width / 2], x.dtype()));
        [0, 1].map(|i: usize| halves[i].constant("repeat", &[1, 1, count, width], x.dtype()))
    };
    let [sin, cos] = &tables;
    let other = {
        let pairs = x.view(&[x.size(0), x.size(1), count, width / 2, 2]);
        let parts = pairs.unbind_along(-1);
        let [first, second] = parts.as_slice() else {
            return x.clone();
        };
        let negative = second.neg();
        let turned = Tensor::stack(&[negative, first.clone()], -1);
        turned.unwrap_or_else(|| x.clone()).view(x.shape())
    };
    let kept = x.mul(cos);
    let added = other.mul(sin);
    kept.add(&added)
}
