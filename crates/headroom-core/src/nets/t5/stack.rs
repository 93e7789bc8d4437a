//! `T5Stack`, the encoder or the decoder, and its blocks.

use super::T5;
use crate::nets::Cx;
use crate::nets::activations::gelu_new;
use crate::nets::inputs::{additive, allowed};
use crate::nets::kv_cache::Cache;
use crate::tape::{DType, Tensor};
use headroom_scenario::Attention;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stack {
    pub model: T5,
    pub is_decoder: bool,
}

/// The arguments of an attention besides its hidden states.
#[derive(Clone, Copy)]
pub(crate) struct AttentionInputs<'a> {
    /// The bias that the first layer computed.
    pub position_bias: Option<&'a Tensor>,
    /// The mask of eager self-attention in the decoder.
    pub causal: Option<&'a Tensor>,
    /// The encoder's states, which cross-attention attends to.
    pub encoded: Option<&'a Tensor>,
    pub cache: &'a Cache,
}

impl Stack {
    /// `T5Stack.forward`, from the whole model's module for the shared embeddings and the stack's own.
    pub(crate) fn forward(
        self,
        [root, cx]: [&Cx; 2],
        ids: &Tensor,
        encoded: Option<&Tensor>,
        cache: &Cache,
    ) -> Tensor {
        let embedded = cx.asks_for_gradient(self.model.shared_weight(root).embedding(ids));
        let eager = cx.env.training.attention == Attention::Eager;
        let causal = (self.is_decoder && eager)
            .then(|| additive(&allowed(ids, None, false), ids.size(0), embedded.dtype()));
        let hidden = cx.dropout(&embedded, 0.1);
        let count = if self.is_decoder {
            self.model.decoder_layers
        } else {
            self.model.layers
        };
        let (encoded, cache) = (encoded.cloned(), cache.clone());
        let mut state = cx.equal_layers("block", count, vec![hidden], move |cx, state| {
            self.block(cx, state, causal.as_ref(), encoded.as_ref(), &cache)
        });
        // The position biases live to the end of the function; hidden states make room for their successors.
        let Some(hidden) = state.first_mut() else {
            return embedded;
        };
        *hidden = rms_norm(cx, "final_layer_norm", hidden);
        *hidden = cx.dropout(hidden, 0.1);
        hidden.clone()
    }

    /// `T5Block.forward`: from hidden states and, after the first layer, position biases to the same.
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
        let (mut hidden, position_bias) = cx.list_item("layer", 0, |cx| {
            let inputs = AttentionInputs {
                position_bias: state.get(1),
                causal,
                encoded: None,
                cache,
            };
            self.attention_layer(cx, input, inputs)
        });
        hidden = clamped(hidden);
        let mut out = vec![position_bias];
        if encoded.is_some() {
            let (attended, position_bias) = cx.list_item("layer", 1, |cx| {
                let inputs = AttentionInputs {
                    position_bias: state.get(2),
                    causal: None,
                    encoded,
                    cache,
                };
                self.attention_layer(cx, &hidden, inputs)
            });
            hidden = clamped(attended);
            out.push(position_bias);
        }
        hidden = cx.list_item("layer", 1 + usize::from(self.is_decoder), |cx| {
            self.ff_layer(cx, &hidden)
        });
        out.insert(0, clamped(hidden));
        out
    }

    /// `T5LayerSelfAttention` and `T5LayerCrossAttention`: the result and the position bias.
    fn attention_layer(
        self,
        cx: &Cx,
        hidden: &Tensor,
        inputs: AttentionInputs,
    ) -> (Tensor, Tensor) {
        let name = match inputs.encoded {
            Some(_) => "EncDecAttention",
            None => "SelfAttention",
        };
        let start = cx.tape.construction_point();
        let normed = rms_norm(cx, "layer_norm", hidden);
        let made = cx.tape.construction_point();
        let (attended, position_bias, _weights) =
            cx.module(name, |cx| self.attention(cx, &normed, inputs));
        cx.tape.construct_here(start, made);
        let dropped = cx.dropout(&attended, 0.1);
        (hidden.add(&dropped), position_bias)
    }

    /// `T5LayerFF.forward`.
    fn ff_layer(self, cx: &Cx, hidden: &Tensor) -> Tensor {
        let start = cx.tape.construction_point();
        let mut forwarded = rms_norm(cx, "layer_norm", hidden);
        let normed = cx.tape.construction_point();
        forwarded = cx.module("DenseReluDense", |cx| self.dense(cx, &forwarded));
        cx.tape.construct_here(start, normed);
        let forwarded = cx.dropout(&forwarded, 0.1);
        hidden.add(&forwarded)
    }

    /// `T5DenseActDense`, `T5DenseGatedActDense`.
    fn dense(self, cx: &Cx, x: &Tensor) -> Tensor {
        let T5 { ffn, hidden, .. } = self.model;
        // The type of the weight as forward sees it, which a wrapper may have cast.
        let seen = cx
            .env
            .wrapper
            .properties()
            .compute_dtype
            .unwrap_or(cx.env.weights);
        if self.model.gated {
            let gate = cx.linear("wi_0", x, ffn, false).pipe(gelu_new);
            let linear = cx.linear("wi_1", x, ffn, false);
            let product = gate.mul(&linear);
            // `hidden_gelu` and `hidden_linear` live to the end of the function.
            let dropped = cx.dropout(&product, 0.1);
            drop(product);
            return cx.linear("wo", &dropped.to(seen), hidden, false);
        }
        let mut inner = cx.linear("wi", x, ffn, false);
        inner = inner.relu();
        inner = cx.dropout(&inner, 0.1);
        inner = inner.to(seen);
        cx.linear("wo", &inner, hidden, false)
    }
}

/// `T5LayerNorm`: the variance in fp32, the weight applied in its own type.
fn rms_norm(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    cx.module(name, |cx| {
        let weight = cx.param("weight", [x.size(-1)]).tensor();
        let squares = x.to(DType::F32).pipe(Tensor::pow);
        let variance = squares.pipe(|squares| squares.mean(&[-1]));
        let scale = variance.add_scalar().pipe(Tensor::rsqrt);
        let mut hidden = x.mul(&scale);
        drop(scale);
        if weight.dtype().is_half() {
            hidden = hidden.to(weight.dtype());
        }
        weight.mul(&hidden)
    })
}

/// The guard against overflow in fp16: `torch.clamp(x, min=-value, max=value)` with a value on the device.
fn clamped(x: Tensor) -> Tensor {
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
