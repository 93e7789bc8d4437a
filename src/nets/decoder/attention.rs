//! Self-attention of the decoder.

use std::rc::Rc;

use super::super::Cx;
use super::traits::{HeadNorms, Positions, Projection, Scores};
use super::{Cache, Decoder, Shared, rope};
use crate::scenario::{Attention, Checkpointing, Kernels};
use crate::tape::ops::{AttentionMask, repeat_heads};
use crate::tape::{DType, Made, Tensor};

impl Decoder {
    pub(super) fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        shared: &Shared,
    ) -> (Tensor, Option<Tensor>) {
        let (b, s, d) = (x.size(0), x.size(1), self.head_dim);
        let own = match self.traits.scores {
            Scores::Library => None,
            Scores::Sinks => Some(cx.param("sinks", [self.heads]).tensor()),
            Scores::Wide => Some(cx.buffer("bias", [self.places, self.places], DType::Bool)),
        };
        let start = cx.tape.made();
        let (joint, [mut q, mut k, mut v], norms) = self.projections(cx, x);
        let projected = cx.tape.made();
        let mut names = Vec::new();
        if let (Some(tables), Positions::Rotary(turn)) = (&shared.rope, self.traits.positions) {
            if cx.env.training.kernels == Kernels::Library {
                let turned = rope::apply(&q, &k, tables, turn);
                (q, k, names) = turned;
            } else {
                [q, k] = q.rope_liger(&k, tables);
            }
        }
        if self.caches_views(cx) {
            // What a checkpointed layer returns when it is run again goes with the rest of that.
            let again = cx.checkpointing() == Checkpointing::Layers && cx.tape.grad_enabled();
            if let Some(cache) = shared.cache.as_ref().filter(|_| !again) {
                cache.borrow_mut().push(k.clone());
            }
        } else {
            (k, v) = cached(&shared.cache, k, v);
        }
        let mut groups = self.heads / self.kv_heads;
        if self.traits.repeats_keys && cx.env.libraries.mistral_repeats_keys && groups > 1 {
            k = repeat_heads(&k, groups);
            v = repeat_heads(&v, groups);
            groups = 1;
        }
        let mask = &shared.mask;
        let rate = if self.traits.dropout.attention {
            cx.rate(self.drop_rate)
        } else {
            0.0
        };
        let capped = self.traits.soft_caps;
        let (mut out, weights) = match &own {
            Some(own) if cx.env.training.attention == Attention::Eager => {
                let spelled = match self.traits.scores {
                    Scores::Wide => wide,
                    _ => with_sinks,
                };
                spelled([&q, &k, &v], mask, groups, own)
            }
            _ => between(cx, [&q, &k, &v], mask, groups, capped, rate),
        };
        out = out.reshape(&[b, s, self.heads * d]).contiguous();
        out = cx.linear(
            self.traits.names.out,
            &out,
            self.hidden,
            self.traits.out_bias,
        );
        if self.traits.out_made_first {
            cx.tape.make_now(start, projected);
        } else if let Some([from, to]) = norms {
            cx.tape.make_now(from, to);
        }
        if self.traits.dropout.inside {
            out = self.dropped(cx, &out);
        }
        drop((joint, names));
        (out, weights)
    }

    /// `present` of `GPTBigCodeAttention` before transformers 4.53: keys and values as a view of the joint product, all of
    /// which it keeps, whether layers are checkpointed or not.
    fn caches_views(&self, cx: &Cx) -> bool {
        self.traits.projection == Projection::OneKey && cx.env.libraries.bigcode_keeps_caches
    }

    pub(super) fn cache(&self, cx: &Cx) -> Cache {
        if self.caches_views(cx) && cx.env.training.use_cache {
            return Some(Rc::default());
        }
        cache(cx)
    }

    /// What the block's names keep alive besides; queries, keys and values `[B, H, S, D]`; the norms of heads, which
    /// constructors make after the last projection.
    fn projections(&self, cx: &Cx, x: &Tensor) -> (Option<Tensor>, [Tensor; 3], Option<[Made; 2]>) {
        let bias = self.traits.qkv_bias;
        let (b, s, d) = (x.size(0), x.size(1), self.head_dim);
        let (h, k) = (self.heads, self.kv_heads);
        let heads = |t: &Tensor, n: u64| t.view(&[b, s, n, d]).transpose(1, 2);
        let whole = (h + 2 * k) * d;
        let joint = || cx.linear(self.traits.names.joint, x, whole, bias);
        match self.traits.projection {
            Projection::Apart | Projection::Together | Projection::QueryFirst => {
                let (all, norms) = self.apart_projections(cx, x);
                (None, all, Some(norms))
            }
            Projection::Joint => {
                let joint = joint();
                let [q, keys, v] = [h, k, k].map(|n| joint.narrow(-1, n * d));
                let all = [heads(&q, h), heads(&keys, k), heads(&v, k)];
                (Some(joint), all, None)
            }
            Projection::ByHead => {
                let mut all = joint();
                all = all.view(&[b, s, h, 3 * d]).transpose(1, 2);
                let parts = all.split(&[d; 3], -1);
                let parts = parts.try_into();
                let parts = parts.unwrap_or_else(|_| [0; 3].map(|_| all.clone()));
                (Some(all), parts, None)
            }
            Projection::OneKey => {
                let parts = joint().unsqueeze(1).split(&[h * d, k * d, k * d], 3);
                let [q, keys, v]: [Tensor; 3] = match parts.try_into() {
                    Ok(parts) => parts,
                    Err(_) => return (None, [0; 3].map(|_| x.clone()), None),
                };
                (None, [heads(&q, h), keys, v], None)
            }
        }
    }

    fn apart_projections(&self, cx: &Cx, x: &Tensor) -> ([Tensor; 3], [Made; 2]) {
        let (b, s, d) = (x.size(0), x.size(1), self.head_dim);
        let names = self.traits.names;
        let kind = self.traits.head_norms;
        let normed = |at: HeadNorms, t: Tensor, norm: Option<&'static str>| match norm {
            Some(norm) if at == kind => self.norm(cx, norm, &t),
            _ => t,
        };
        let project = |name, n: u64| cx.linear(name, x, n * d, self.traits.qkv_bias);
        let whole = |t, norm| normed(HeadNorms::Whole, t, norm);
        let split = |t: Tensor, norm, n| {
            let t = normed(HeadNorms::Each, t.view(&[b, s, n, d]), norm);
            t.transpose(1, 2)
        };
        let (h, k) = (self.heads, self.kv_heads);
        let (q_norm, k_norm) = (Some(names.query_norm), Some(names.key_norm));
        let mut queries = project("q_proj", h);
        let mut start = cx.tape.made();
        let [mut keys, values] = match self.traits.projection {
            Projection::Together => {
                queries = whole(queries, q_norm);
                let made = cx.tape.made();
                let mut keys = project("k_proj", k);
                start = cx.tape.make_now(start, made);
                keys = whole(keys, k_norm);
                let made = cx.tape.made();
                let values = project("v_proj", k);
                start = cx.tape.make_now(start, made);
                queries = split(queries, q_norm, h);
                keys = split(keys, k_norm, k);
                [keys, split(values, None, k)]
            }
            Projection::QueryFirst => {
                queries = split(queries.then(Tensor::scale), None, h);
                let keys = project("k_proj", k);
                let values = project("v_proj", k);
                [split(keys, None, k), split(values, None, k)]
            }
            _ => {
                queries = split(whole(queries, q_norm), q_norm, h);
                let made = cx.tape.made();
                let keys = project("k_proj", k);
                start = cx.tape.make_now(start, made);
                let keys = split(whole(keys, k_norm), k_norm, k);
                let made = cx.tape.made();
                let values = project("v_proj", k);
                start = cx.tape.make_now(start, made);
                [keys, split(values, None, k)]
            }
        };
        match kind {
            HeadNorms::EachMoved => {
                queries = normed(HeadNorms::EachMoved, queries, q_norm);
                keys = normed(HeadNorms::EachMoved, keys, k_norm);
            }
            HeadNorms::OneByOne => {
                queries = one_by_one(cx, names.query_norm, &queries);
                keys = one_by_one(cx, names.key_norm, &keys);
            }
            _ => {}
        }
        ([queries, keys, values], [start, cx.tape.made()])
    }
}

/// `StableLmLayerNormPerHead.forward`: a norm without bias for each head.
fn one_by_one(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    let count = x.size(1);
    let ones: Vec<u64> = (0..count).map(|_| 1).collect();
    let parts = x.split(&ones, 1);
    let normed: Vec<Tensor> = cx.within(name, |cx| {
        let each = |(i, part): (usize, &Tensor)| {
            cx.nth("norms", i, |cx| {
                let weight = cx.param("weight", [part.size(-1)]).tensor();
                part.layer_norm(Some(&weight), None)
            })
        };
        parts.iter().enumerate().map(each).collect()
    });
    let all: Vec<&Tensor> = normed.iter().collect();
    match all.split_first() {
        Some((first, rest)) => Tensor::cat(first, rest, 1),
        None => x.clone(),
    }
}

/// Where keys and values are kept, if they are: a checkpointed layer is given none (`GradientCheckpointingLayer`).
pub(in crate::nets) fn cache(cx: &Cx) -> Cache {
    let kept = cx.env.training.use_cache && cx.checkpointing() != Checkpointing::Layers;
    kept.then(Default::default)
}

/// `DynamicLayer.update`: joins new keys and values to what is kept, which copies them. What is kept is empty and of the
/// keys' type, so the copies of both have that where it is the wider one.
pub(in crate::nets) fn cached(cache: &Cache, k: Tensor, v: Tensor) -> (Tensor, Tensor) {
    let Some(cache) = cache else { return (k, v) };
    let dtype = k.dtype();
    let empty = |t: &Tensor| t.constant("tensor", &[0], dtype);
    let (no_keys, no_values) = (empty(&k), empty(&v));
    let keys = Tensor::cat(&k, &[], -2);
    drop(no_keys);
    let values = if dtype == DType::F32 && v.dtype().is_half() {
        v.to(dtype).then(|v| Tensor::cat(v, &[], -2))
    } else {
        Tensor::cat(&v, &[], -2)
    };
    drop(no_values);
    cache.borrow_mut().extend([keys.clone(), values.clone()]);
    (keys, values)
}

/// `ALL_ATTENTION_FUNCTIONS` for queries, keys and values `[B, H, S, D]`: the result `[B, S, H, D]`.
pub(super) fn between(
    cx: &Cx,
    all: [&Tensor; 3],
    mask: &AttentionMask,
    groups: u64,
    capped: bool,
    dropout: f64,
) -> (Tensor, Option<Tensor>) {
    let [q, k, v] = all;
    match cx.env.training.attention {
        Attention::Sdpa | Attention::Flash2 => (sdpa(q, k, v, mask, groups, dropout), None),
        Attention::Eager => eager(all, mask, groups, capped, dropout),
    }
}

/// `sdpa_attention_forward`: a mask makes it repeat keys and values, for the kernels that take masks know no groups.
fn sdpa(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    mask: &AttentionMask,
    groups: u64,
    dropout: f64,
) -> Tensor {
    let grouped = !matches!(mask, AttentionMask::Given(_)) && k.size(-1) <= 256;
    let repeated = (!grouped && groups > 1).then(|| {
        let keys = repeat_heads(k, groups);
        [keys, repeat_heads(v, groups)]
    });
    let [k, v] = repeated.as_ref().map_or([k, v], |[k, v]| [k, v]);
    let out = q.attention(k, v, mask, dropout);
    out.transpose(1, 2).contiguous()
}

/// `eager_attention_forward`: softmax in fp32.
fn eager(
    [q, k, v]: [&Tensor; 3],
    mask: &AttentionMask,
    groups: u64,
    capped: bool,
    dropout: f64,
) -> (Tensor, Option<Tensor>) {
    let keys = repeat_heads(k, groups);
    let values = repeat_heads(v, groups);
    let mut weights = q.matmul(&keys.transpose(2, 3)).then(Tensor::scale);
    if capped {
        weights = weights.scale();
        weights = weights.tanh();
        weights = weights.scale();
    }
    if let AttentionMask::Given(bias) = mask {
        weights = weights.add(bias);
    }
    weights = weights
        .softmax(Some(DType::F32))
        .then(|weights| weights.to(q.dtype()));
    weights = weights.dropout(dropout);
    let out = weights
        .matmul(&values)
        .then(|out| out.transpose(1, 2).contiguous());
    (out, Some(weights))
}

/// `eager_attention_forward` of GPT-OSS: one score more for each head, which takes its share and is left out.
fn with_sinks(
    [q, k, v]: [&Tensor; 3],
    mask: &AttentionMask,
    groups: u64,
    sinks: &Tensor,
) -> (Tensor, Option<Tensor>) {
    let (b, h, s) = (q.size(0), q.size(1), q.size(2));
    let keys = repeat_heads(k, groups);
    let values = repeat_heads(v, groups);
    let mut weights = q.matmul(&keys.transpose(2, 3)).then(Tensor::scale);
    if let AttentionMask::Given(bias) = mask {
        weights = weights.add(bias);
    }
    let column = sinks.view(&[1, h, 1, 1]).expand(&[b, h, s, 1]);
    let mut scores = Tensor::cat(&weights, &[&column], -1);
    scores = {
        let greatest = scores.greatest().unsqueeze(-1);
        scores.sub(&greatest)
    };
    let shares = scores.softmax(Some(scores.dtype()));
    let kept = shares.narrow(-1, k.size(-2));
    weights = kept.to(v.dtype());
    let out = weights
        .matmul(&values)
        .then(|out| out.transpose(1, 2).contiguous());
    drop((keys, values, column, scores, shares, kept));
    (out, Some(weights))
}

/// `_attn` and `_merge_heads` of GPT-Neo: what the block's own triangle leaves out is written over.
fn wide(
    [q, k, v]: [&Tensor; 3],
    mask: &AttentionMask,
    _groups: u64,
    triangle: &Tensor,
) -> (Tensor, Option<Tensor>) {
    let (query, key) = (q.to(DType::F32), k.to(DType::F32));
    let mut weights = query.matmul(&key.transpose(2, 3));
    let seen = triangle.narrow(0, q.size(-2)).narrow(1, k.size(-2));
    let least = q.constant("tensor", &[0; 0], weights.dtype());
    weights = weights.masked_fill(&seen);
    if let AttentionMask::Given(bias) = mask {
        weights = weights.add(bias);
    }
    weights = weights.softmax(None);
    weights = weights.to(v.dtype());
    let out = weights.matmul(v);
    drop((query, key, seen, least));
    let merged = out.then(|out| out.transpose(1, 2).contiguous());
    (merged, Some(weights))
}
