//! `TransformerLayer`, `SelfAttention` and `MLP`.

use super::GptModel;
use crate::nets::Cx;
use crate::tape::ops::{AttentionMask, Tokens};
use crate::tape::{DType, Tensor};
use headroom_scenario::{Checkpointing, ContextParallel};

impl GptModel {
    /// `TransformerLayer`.
    pub(super) fn layer(
        &self,
        cx: &Cx,
        x: &Tensor,
        rope: Option<&Tensor>,
        mask: Option<&Tensor>,
    ) -> Tensor {
        let normed = self.norm(cx, "input_layernorm", x);
        let (attended, bias) = cx.module("self_attention", |cx| {
            self.attention(cx, normed, rope, mask)
        });
        let hidden = self.bias_dropout_add(cx, attended, bias.as_ref(), x);
        let normed = self.norm(cx, "pre_mlp_layernorm", &hidden);
        let (out, bias) = cx.module("mlp", |cx| {
            if self.experts > 1 {
                (self.mixture(cx, &normed), None)
            } else {
                self.mlp(cx, &normed)
            }
        });
        drop(normed);
        self.bias_dropout_add(cx, out, bias.as_ref(), &hidden)
    }

    /// `_bias_dropout_add_func`.
    fn bias_dropout_add(
        &self,
        cx: &Cx,
        x: Tensor,
        bias: Option<&Tensor>,
        residual: &Tensor,
    ) -> Tensor {
        let mut x = x;
        if let Some(bias) = bias {
            x = x.add(bias);
        }
        x = x.dropout(self.rate(cx));
        residual.add(&x)
    }

    /// `ColumnParallelLinear`: this GPU's part of the outputs, and its bias.
    fn columns(
        &self,
        cx: &Cx,
        name: &'static str,
        x: &Tensor,
        out: u64,
        has_bias: bool,
    ) -> (Tensor, Option<Tensor>) {
        let own = out / Self::group(cx);
        let (weight, bias) = cx.module(name, |cx| {
            let weight = cx.param("weight", [own, x.size(-1)]).tensor();
            let bias = has_bias.then(|| cx.param("bias", [own]).tensor());
            (weight, bias)
        });
        let buffer = self.engine.is_none().then(|| self.buffer.clone());
        let tokens = Self::tokens(cx, buffer);
        let y = x.linear_accumulating(&weight, None, &tokens, &self.layer_gradient());
        (y, bias)
    }

    /// `RowParallelLinear`: summed in place over the group, or each GPU's tokens scattered to it.
    fn rows(&self, cx: &Cx, name: &'static str, x: Tensor) -> (Tensor, Option<Tensor>) {
        let (weight, bias) = cx.module(name, |cx| {
            let weight = cx.param("weight", [self.hidden, x.size(-1)]).tensor();
            let bias = (!self.is_llama).then(|| cx.param("bias", [self.hidden]).tensor());
            (weight, bias)
        });
        let y = x.linear_accumulating(&weight, None, &Tokens::All, &self.layer_gradient());
        drop(x);
        let y = if Self::splits_tokens(cx) {
            y.pipe(|y| y.reduce_scatter(Self::group(cx), 0))
        } else {
            y
        };
        (y, bias)
    }

    /// `SelfAttention`.
    fn attention(
        &self,
        cx: &Cx,
        x: Tensor,
        rope: Option<&Tensor>,
        mask: Option<&Tensor>,
    ) -> (Tensor, Option<Tensor>) {
        let group = Self::group(cx);
        let d = self.channels;
        let each = self.heads / self.query_groups.max(1);
        let width = self
            .heads
            .saturating_add(self.query_groups.saturating_mul(2));
        let has_bias = !self.is_llama || self.qkv_bias;
        let out = width.saturating_mul(d);
        let (mut mixed, bias) = self.columns(cx, "linear_qkv", &x, out, has_bias);
        drop(x);
        if let Some(bias) = bias {
            mixed = match self.engine {
                // Its product adds the bias itself.
                Some(_) => mixed.add_in_place(&bias),
                None => mixed.pipe(|mixed| mixed.add(&bias)),
            };
        }
        let (s, b) = (mixed.size(0), mixed.size(1));
        let groups = self.query_groups / group.min(self.query_groups).max(1);
        let mixed = mixed.pipe(|mixed| mixed.view(&[s, b, groups, (each + 2) * d]));
        let [mut query, mut key, mut value] = {
            let parts = mixed.split(&[each * d, d, d], -1);
            let [query, key, value] = <[Tensor; 3]>::try_from(parts)
                .unwrap_or_else(|_| [mixed.clone(), mixed.clone(), mixed.clone()]);
            [query, key, value]
        };
        drop(mixed);
        query = query.pipe(|query| query.reshape(&[s, b, groups * each, d]));
        if self.qk_norm {
            // Of each head; Transformer Engine's takes its input contiguous.
            query = query.pipe(|query| self.norm(cx, "q_layernorm", query));
            key = key
                .pipe(Tensor::contiguous)
                .pipe(|key| self.norm(cx, "k_layernorm", key));
        }
        if let Some(rope) = rope {
            let turned = |x: &Tensor| match self.engine {
                Some(_) => x.rotary_fused(rope),
                None => rotated(x, rope),
            };
            query = query.pipe(turned);
            key = key.pipe(turned);
        }
        if self.engine.is_some() {
            // Transformer Engine's attention takes them contiguous (`get_qkv_layout`).
            value = value.pipe(Tensor::contiguous);
        }
        let this = self.clone();
        let (core_cx, mask) = (cx.clone(), mask.cloned());
        let core = move |given: &[Tensor]| match given {
            [query, key, value] => {
                vec![this.core_attention(&core_cx, [query, key, value], mask.as_ref())]
            }
            _ => Vec::new(),
        };
        let given = vec![query, key, value];
        let context = if self.recomputes_attention && cx.checkpointing() != Checkpointing::Layers {
            cx.tape.checkpoint_reentrant(given, core)
        } else {
            let context = core(&given);
            drop(given);
            context
        };
        match context.into_iter().next() {
            Some(context) => self.rows(cx, "linear_proj", context),
            None => (cx.tape.empty("context", [0; 0], DType::F32), None),
        }
    }

    fn core_attention(&self, cx: &Cx, [q, k, v]: [&Tensor; 3], mask: Option<&Tensor>) -> Tensor {
        if self.plain_attention {
            self.dot_product_attention(cx, [q, k, v], mask)
        } else {
            fused_attention(cx, [q, k, v])
        }
    }

    /// `DotProductAttention`: scores in fp32, masked in place, in plain operations.
    fn dot_product_attention(
        &self,
        cx: &Cx,
        [q, k, v]: [&Tensor; 3],
        mask: Option<&Tensor>,
    ) -> Tensor {
        let (s, b, heads, d) = (q.size(0), q.size(1), q.size(2), q.size(3));
        let repeats = heads / k.size(2).max(1);
        let repeated = |x: &Tensor| {
            if repeats > 1 {
                let spread = [s, b, heads / repeats, repeats, d];
                x.unsqueeze(3)
                    .expand(&spread)
                    .pipe(Tensor::contiguous)
                    .pipe(|x| x.view(&[s, b, heads, d]))
            } else {
                x.clone()
            }
        };
        let (key, value) = (repeated(k), repeated(v));
        let flat = |x: &Tensor| x.reshape(&[s, b * heads, d]);
        let (query, key) = (flat(q), flat(&key));
        self.buffer.ask(&cx.tape, b * heads * s * s, q.dtype());
        let scores = {
            let (query, key) = (query.transpose(0, 1), key.transpose(0, 1).transpose(1, 2));
            query.bmm(&key)
        };
        drop((query, key));
        let scores = scores.pipe(|scores| scores.view(&[b, heads, s, s]));
        let wide = scores.pipe(|scores| scores.to(DType::F32));
        let masked = match mask {
            Some(mask) => wide.pipe(|wide| wide.masked_fill_(mask)),
            None => wide,
        };
        let probabilities = masked.pipe(|masked| masked.softmax(None));
        let probabilities = probabilities.pipe(|probabilities| probabilities.to(q.dtype()));
        let probabilities =
            probabilities.pipe(|probabilities| probabilities.dropout(self.rate(cx)));
        let value = value.pipe(|value| flat(value));
        let context = probabilities
            .view(&[b * heads, s, s])
            .bmm(&value.transpose(0, 1));
        drop((probabilities, value));
        let context = context.pipe(|context| context.view(&[b, heads, s, d]));
        let context = context.pipe(|context| context.permute(&[2, 0, 1, 3]).contiguous());
        context.pipe(|context| context.view(&[s, b, heads * d]))
    }

    /// `MLP`.
    fn mlp(&self, cx: &Cx, x: &Tensor) -> (Tensor, Option<Tensor>) {
        let width = if self.is_llama {
            2 * self.ffn
        } else {
            self.ffn
        };
        let (inner, bias) = self.columns(cx, "linear_fc1", x, width, !self.is_llama);
        let active = match bias {
            Some(bias) => inner.bias_gelu_saving_input(&bias),
            None if self.engine.is_some() => inner.swiglu_fused(),
            None => inner.swiglu_saving_input(),
        };
        drop(inner);
        self.rows(cx, "linear_fc2", active)
    }
}

/// `_apply_rotary_pos_emb_bshd`: cosines and sines are computed for each tensor, and what is not turned, nothing, is joined to it.
fn rotated(x: &Tensor, freqs: &Tensor) -> Tensor {
    let dtype = x.dtype();
    let cos = freqs
        .cos()
        .pipe(Tensor::mul_scalar)
        .pipe(|cos| cos.to(dtype));
    let sin = freqs
        .sin()
        .pipe(Tensor::mul_scalar)
        .pipe(|sin| sin.to(dtype));
    let straight = x.mul(&cos);
    let turned = {
        let half = x.size(-1) / 2;
        let (first, second) = (x.narrow(-1, half), x.narrow(-1, half));
        let negative = second.neg();
        Tensor::cat(&negative, &[&first], -1)
    };
    let turned = turned.pipe(|turned| turned.mul(&sin));
    let sum = straight.add(&turned);
    drop((straight, turned, cos, sin));
    sum.pipe(|sum| Tensor::cat(sum, &[], -1))
}

/// One kernel over all tokens; those of other GPUs that share the sequence are gathered (`cp_comm_type="all_gather"`), or come in
/// exchange for heads (`"a2a"`).
fn fused_attention(cx: &Cx, [q, k, v]: [&Tensor; 3]) -> Tensor {
    let context = cx.env.groups.context.group.max(1);
    if context > 1 && cx.env.groups.context.attention == ContextParallel::Ulysses {
        return exchanged_attention([q, k, v], context);
    }
    let (s, b, heads, d) = (q.size(0), q.size(1), q.size(2), q.size(3));
    let gathered = |x: &Tensor| {
        if context > 1 {
            x.contiguous().pipe(|x| x.all_gather(context, 0))
        } else {
            x.clone()
        }
    };
    let (k, v) = (gathered(k), gathered(v));
    let out = {
        let [q, k, v] = [q, &k, &v].map(|x| x.permute(&[1, 2, 0, 3]));
        let mask = if context > 1 {
            AttentionMask::None
        } else {
            AttentionMask::Causal
        };
        q.attention(&k, &v, &mask, 0.0)
    };
    drop((k, v));
    out.pipe(|out| out.permute(&[2, 0, 1, 3]).reshape(&[s, b, heads * d]))
}

/// `AttnFuncWithCPAndQKVOA2A`: all tokens of some heads.
fn exchanged_attention(all: [&Tensor; 3], group: u64) -> Tensor {
    let [q, k, v] = all.map(|x| x.all_to_all(group, 2, 0));
    let out = {
        let [q, k, v] = [&q, &k, &v].map(|x| x.permute(&[1, 2, 0, 3]));
        q.attention(&k, &v, &AttentionMask::Causal, 0.0)
    };
    drop((q, k, v));
    let out = out.pipe(|out| out.permute(&[2, 0, 1, 3]));
    let own = out.pipe(|out| out.all_to_all(group, 0, 2));
    let (s, b, width) = (own.size(0), own.size(1), own.size(2) * own.size(3));
    own.pipe(|own| own.reshape(&[s, b, width]))
}
