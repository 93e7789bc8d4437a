//! T5 and its relatives: encoder and decoder, relative position biases (transformers/models/t5/modeling_t5.py).

use super::decoder::{Cache, cache, cached};
use super::gpt2::gelu_new;
use super::inputs::{additive, allowed};
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::scenario::{Attention, Checkpointing, Data};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
struct T5 {
    layers: u64,
    decoder_layers: u64,
    hidden: u64,
    heads: u64,
    head_dim: u64,
    ffn: u64,
    vocab: u64,
    buckets: u64,
    /// Flan's and mT5's feed-forward: two projections in, one through `gelu_new`.
    gated: bool,
    /// The output layer is the table of embeddings.
    tied: bool,
}

/// One of the two stacks.
#[derive(Clone, Copy, Debug)]
struct Stack {
    net: T5,
    decoder: bool,
}

/// What an attention is given besides its states.
#[derive(Clone, Copy)]
struct Given<'a> {
    bias: Option<&'a Tensor>,
    causal: Option<&'a Tensor>,
    cache: &'a Cache,
}

pub fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let (layers, heads, hidden) = (
        sizes.need("layers")?,
        sizes.need("heads")?.max(1),
        sizes.need("hidden")?,
    );
    Ok(Box::new(T5 {
        layers,
        decoder_layers: sizes.or("decoder_layers", layers),
        hidden,
        heads,
        head_dim: sizes.or("head_dim", hidden / heads),
        ffn: sizes.or("ffn", 4 * hidden),
        vocab: sizes.need("vocab")?,
        buckets: sizes.or("buckets", 32),
        gated: sizes.is_set("gated"),
        tied: sizes.or("tied", 1) != 0,
    }))
}

impl Net for T5 {
    /// Targets have a quarter of the input's length.
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let ids = [data.micro_batch, data.sequence];
        let labels = [data.micro_batch, data.sequence / 4];
        vec![
            cx.tape.empty("input_ids", ids, DType::I64),
            cx.tape.empty("labels", labels, DType::I64),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels] = batch else {
            return Output::empty(cx);
        };
        cx.within("shared", |cx| cx.param("weight", [self.vocab, self.hidden]));
        let stack = |decoder| Stack {
            net: *self,
            decoder,
        };
        // Each stack makes a table of its own, and so does the head; they are tied when all exist.
        let table = |cx: &Cx| cx.tied_later([self.vocab, self.hidden]);
        let of_encoder = cx.within("encoder", |cx| cx.within("embed_tokens", table));
        let encoded = cx.within("encoder", |inner| {
            stack(false).run(cx, inner, ids, None, &None)
        });
        if self.decoder_layers == 0 {
            let loss = encoded.mean_all();
            return Output {
                loss,
                held: vec![encoded],
            };
        }
        let shifted = shifted_right(labels);
        let of_decoder = cx.within("decoder", |cx| cx.within("embed_tokens", table));
        let kept = cache(cx);
        let decoded = cx.within("decoder", |inner| {
            stack(true).run(cx, inner, &shifted, Some(&encoded), &kept)
        });
        let (logits, _scaled) = if self.tied {
            let scaled = decoded.scale();
            let of_head = cx.within("lm_head", table);
            let logits = cx.tied_linear("lm_head", &scaled, &self.table(cx));
            drop(of_head);
            (logits, Some(scaled))
        } else {
            (cx.linear("lm_head", &decoded, self.vocab, false), None)
        };
        drop((of_encoder, of_decoder));
        let loss = cx.within("loss", |_| {
            let rows = labels.numel();
            logits
                .view(&[rows, self.vocab])
                .cross_entropy(&labels.view(&[rows]))
        });
        let mut held = vec![logits, encoded];
        held.extend(kept.map(|kept| kept.take()).unwrap_or_default());
        Output { loss, held }
    }
}

impl T5 {
    fn table(&self, cx: &Cx) -> Tensor {
        cx.within("shared", |cx| {
            cx.param("weight", [self.vocab, self.hidden]).tensor()
        })
    }
}

/// `_shift_right`.
fn shifted_right(labels: &Tensor) -> Tensor {
    let shape = labels.shape();
    let shifted = labels.constant("new_zeros", shape, DType::I64);
    let rest = [labels.size(0), labels.size(1).saturating_sub(1)];
    drop(labels.constant("clone", &rest, DType::I64));
    drop(labels.constant("eq", shape, DType::Bool));
    shifted
}

impl Stack {
    fn run(
        self,
        root: &Cx,
        cx: &Cx,
        ids: &Tensor,
        encoded: Option<&Tensor>,
        cache: &Cache,
    ) -> Tensor {
        let embedded = cx.asks_for_gradient(self.net.table(root).embedding(ids));
        let eager = cx.env.training.attention == Attention::Eager;
        let causal = (self.decoder && eager)
            .then(|| additive(&allowed(ids, None, false), ids.size(0), embedded.dtype()));
        let hidden = cx.dropout(&embedded, 0.1);
        let (encoded, cache, count) = (
            encoded.cloned(),
            cache.clone(),
            if self.decoder {
                self.net.decoder_layers
            } else {
                self.net.layers
            },
        );
        let mut state = cx.layers("block", count, vec![hidden], move |cx, state, _| {
            self.block(cx, state, causal.as_ref(), encoded.as_ref(), &cache)
        });
        // The biases live to the end of the function; hidden states make room for their successors.
        let Some(hidden) = state.first_mut() else {
            return embedded;
        };
        *hidden = rms_norm(cx, "final_layer_norm", hidden);
        *hidden = cx.dropout(hidden, 0.1);
        hidden.clone()
    }

    /// From hidden states and, after the first layer, position biases to the same.
    fn block(
        self,
        cx: &Cx,
        state: &[Tensor],
        causal: Option<&Tensor>,
        encoded: Option<&Tensor>,
        cache: &Cache,
    ) -> Vec<Tensor> {
        let Some(input) = state.first() else {
            return Vec::new();
        };
        let (mut hidden, bias) = cx.nth("layer", 0, |cx| {
            let given = Given {
                bias: state.get(1),
                causal,
                cache,
            };
            self.attention_layer(cx, "SelfAttention", input, input, given)
        });
        hidden = finite(hidden);
        let mut out = vec![bias];
        if let Some(encoded) = encoded {
            let (attended, bias) = cx.nth("layer", 1, |cx| {
                let given = Given {
                    bias: state.get(2),
                    causal: None,
                    cache,
                };
                self.attention_layer(cx, "EncDecAttention", &hidden, encoded, given)
            });
            hidden = finite(attended);
            out.push(bias);
        }
        hidden = cx.nth("layer", 1 + usize::from(self.decoder), |cx| {
            let start = cx.tape.made();
            let mut fed = rms_norm(cx, "layer_norm", &hidden);
            let normed = cx.tape.made();
            fed = cx.within("DenseReluDense", |cx| self.feed_forward(cx, &fed));
            cx.tape.make_now(start, normed);
            let fed = cx.dropout(&fed, 0.1);
            hidden.add(&fed)
        });
        out.insert(0, finite(hidden));
        out
    }

    /// `T5LayerSelfAttention` and `T5LayerCrossAttention`.
    fn attention_layer(
        self,
        cx: &Cx,
        name: &'static str,
        hidden: &Tensor,
        others: &Tensor,
        given: Given,
    ) -> (Tensor, Tensor) {
        let crossed = name == "EncDecAttention";
        let start = cx.tape.made();
        let normed = rms_norm(cx, "layer_norm", hidden);
        let made = cx.tape.made();
        let keys = if crossed { others } else { &normed };
        let (attended, bias, _weights) =
            cx.within(name, |cx| self.attention(cx, &normed, keys, crossed, given));
        cx.tape.make_now(start, made);
        let dropped = cx.dropout(&attended, 0.1);
        (hidden.add(&dropped), bias)
    }

    fn attention(
        self,
        cx: &Cx,
        x: &Tensor,
        others: &Tensor,
        crossed: bool,
        given: Given,
    ) -> (Tensor, Tensor, Option<Tensor>) {
        let Given {
            bias,
            causal,
            cache,
        } = given;
        let T5 {
            heads, head_dim, ..
        } = self.net;
        let (b, s) = (x.size(0), x.size(1));
        let project = |name, x: &Tensor| {
            let wide = cx.linear(name, x, heads * head_dim, false);
            let (b, s) = (x.size(0), x.size(1));
            wide.view(&[b, s, heads, head_dim]).transpose(1, 2)
        };
        let q = project("q", x);
        let k = project("k", others);
        let v = project("v", others);
        let (k, v) = cached(cache, k, v);
        let start = cx.tape.made();
        let bias = bias.cloned().unwrap_or_else(|| {
            if crossed {
                let shape = [1, heads, s, k.size(2)];
                let zeros = q.constant("zeros", &shape, q.dtype());
                if cx.checkpointing() == Checkpointing::Layers {
                    zeros.asking_for_gradient()
                } else {
                    zeros
                }
            } else {
                self.relative_bias(cx, s)
            }
        });
        let made = cx.tape.made();
        let (mut out, weights) = match cx.env.training.attention {
            Attention::Sdpa | Attention::Flash2 => {
                let mask = if self.decoder && !crossed && s > 1 {
                    causal_bias(&bias)
                } else {
                    bias.contiguous()
                };
                let mask = AttentionMask::Given(mask);
                let out = q.attention(&k, &v, &mask, cx.rate(0.1));
                (out.transpose(1, 2).contiguous(), None)
            }
            Attention::Eager => {
                let mut weights = q.matmul(&k.transpose(2, 3)).then(Tensor::scale);
                weights = weights.add(&bias);
                if let Some(causal) = causal {
                    weights = weights.add(causal);
                }
                weights = weights.softmax(None);
                weights = cx.dropout(&weights, 0.1);
                let out = weights.matmul(&v);
                (out.transpose(1, 2).contiguous(), Some(weights))
            }
        };
        out = out.reshape(&[b, s, heads * head_dim]);
        out = cx.linear("o", &out, self.net.hidden, false);
        cx.tape.make_now(start, made);
        (out, bias, weights)
    }

    /// `compute_bias`: `[1, H, S, S]`, lying with its heads innermost.
    fn relative_bias(self, cx: &Cx, s: u64) -> Tensor {
        let index = || cx.tape.empty("arange", [s], DType::I64);
        let context = index().then(Tensor::shift);
        let memory = index();
        let relative = memory.constant("sub", &[s, s], DType::I64);
        let buckets = relative_buckets(&relative, !self.decoder);
        let values = cx.embedding(
            "relative_attention_bias",
            &buckets,
            self.net.buckets,
            self.net.heads,
        );
        drop((context, memory, relative));
        values.permute(&[2, 0, 1]).unsqueeze(0)
    }

    fn feed_forward(self, cx: &Cx, x: &Tensor) -> Tensor {
        let mut hidden = if self.net.gated {
            let gate = cx.linear("wi_0", x, self.net.ffn, false).then(gelu_new);
            let linear = cx.linear("wi_1", x, self.net.ffn, false);
            let product = gate.mul(&linear);
            // The function's own names live on while it runs.
            let dropped = cx.dropout(&product, 0.1);
            drop(product);
            return cx.linear("wo", &dropped.to(cx.env.weights), self.net.hidden, false);
        } else {
            cx.linear("wi", x, self.net.ffn, false)
        };
        hidden = hidden.relu();
        hidden = cx.dropout(&hidden, 0.1);
        hidden = hidden.to(cx.env.weights);
        cx.linear("wo", &hidden, self.net.hidden, false)
    }
}

/// `_relative_position_bucket`, an operation at a time.
fn relative_buckets(relative: &Tensor, bidirectional: bool) -> Tensor {
    let shape = relative.shape();
    let make = |op: &'static str, dtype| relative.constant(op, shape, dtype);
    let step = |from: Tensor, op: &'static str, dtype| {
        let to = make(op, dtype);
        drop(from);
        to
    };
    let (sum, distance) = if bidirectional {
        let sign = step(make("gt", DType::Bool), "to", DType::I64);
        let part = step(sign, "mul", DType::I64);
        let sum = step(part, "add", DType::I64);
        (Some(sum), make("abs", DType::I64))
    } else {
        let least = step(make("zeros_like", DType::I64), "minimum", DType::I64);
        (None, step(least, "neg", DType::I64))
    };
    let is_small = make("lt", DType::Bool);
    let mut logs = make("to", DType::F32);
    for op in ["div", "log", "div", "mul"] {
        logs = step(logs, op, DType::F32);
    }
    let large = step(logs, "to", DType::I64);
    let large = step(large, "add", DType::I64);
    let most = make("full_like", DType::I64);
    let bounded = make("minimum", DType::I64);
    drop((most, large));
    let chosen = make("where", DType::I64);
    // Added in place where there is a sum already.
    let result = sum.unwrap_or_else(|| make("add", DType::I64));
    drop((chosen, bounded, is_small, distance));
    result
}

/// `create_position_bias_mask` where attention is causal and nothing is padded.
fn causal_bias(bias: &Tensor) -> Tensor {
    let (queries, keys) = (bias.size(-2), bias.size(-1));
    let rows = bias.constant("arange", &[queries], DType::I64);
    let columns = bias.constant("arange", &[keys], DType::I64);
    let allowed = bias.constant("ge", &[1, 1, queries, keys], DType::Bool);
    drop((rows, columns));
    let masked = bias.where_mask(&allowed);
    masked.contiguous()
}

/// `T5LayerNorm`: the variance in fp32, the weight applied in its own type.
fn rms_norm(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    cx.within(name, |cx| {
        let weight = cx.param("weight", [x.size(-1)]).tensor();
        let squares = x.to(DType::F32).then(Tensor::pow);
        let variance = squares.then(|squares| squares.mean(&[-1]));
        let scale = variance.shift().then(Tensor::rsqrt);
        let mut hidden = x.mul(&scale);
        drop(scale);
        if weight.dtype().is_half() {
            hidden = hidden.to(weight.dtype());
        }
        weight.mul(&hidden)
    })
}

/// The guard against overflow that halves need: `torch.clamp(x, min=-value, max=value)` with a value on the device.
fn finite(x: Tensor) -> Tensor {
    if x.dtype() != DType::F16 {
        return x;
    }
    let infinite = x.constant("isinf", x.shape(), DType::Bool);
    let any = x.constant("any", &[0; 0], DType::Bool);
    drop(infinite);
    let value = x.constant("where", &[0; 0], DType::F32);
    drop(any);
    let least = x.constant("neg", &[0; 0], DType::F32);
    let clamped = x.clamp();
    drop((least, value));
    clamped
}
