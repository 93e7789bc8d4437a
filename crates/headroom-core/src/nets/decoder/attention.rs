//! Self-attention of the decoder.

use super::super::Cx;
use super::super::kv_cache::{Cache, cache, cached};
use super::family::{Positions, Projection, QkNorm, Scores};
use super::{Decoder, LayerInputs, norm, rope};
use crate::tape::ops::{AttentionMask, repeat_heads};
use crate::tape::{ConstructionPoint, DType, Tensor};
use headroom_scenario::{Attention, Checkpointing, Kernels};

impl Decoder {
    pub(super) fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        inputs: &LayerInputs,
    ) -> (Tensor, Option<Tensor>) {
        let (b, s) = (x.size(0), x.size(1));
        let sinks_or_mask = match self.family.attention.scores {
            Scores::Library | Scores::Capped | Scores::InBlock => None,
            Scores::Sinks => Some(cx.param("sinks", [self.heads]).tensor()),
            Scores::Fp32 => {
                let shape = [self.max_positions, self.max_positions];
                Some(cx.buffer("bias", shape, DType::Bool))
            }
        };
        let start = cx.tape.construction_point();
        let (fused, [mut q, mut k, mut v], norms) = self.projections(cx, x);
        let projected = cx.tape.construction_point();
        let mut held = Vec::new();
        // It has no parameters, so that the declaration pass does without it.
        if let (Some(tables), Positions::Rotary(rope)) =
            (&inputs.rotary, self.family.embeddings.positions)
            && !cx.tape.declaring()
        {
            if cx.env.training.kernels == Kernels::Library {
                (q, k, held) = rope::apply(&q, &k, tables, rope);
            } else {
                [q, k] = q.rope_liger(&k, tables);
            }
        }
        if self.family.attention.queries_by_position {
            let scale = q.constant("to", &[1, 1, s, 1], q.dtype());
            q = q.mul(&scale);
        }
        if self.family.attention.qk_norm == QkNorm::LengthAfterRope {
            if inputs.rotary.is_some() {
                [q, k] = [&q, &k].map(norm::by_length);
            } else {
                // `attn_temperature_tuning`: as many numbers as tokens.
                let scale = q.constant("add", &[1, 1, s, 1], DType::F32);
                q = q.mul(&scale).pipe(|scaled| scaled.to(x.dtype()));
            }
        }
        if self.family.attention.qk_norm == QkNorm::PerHeadAfterRope {
            q = self.norm(cx, self.family.names.q_norm, &q);
            k = self.norm(cx, self.family.names.k_norm, &k);
        }
        if self.caches_views(cx) {
            // When a checkpointed layer is computed again, its return value is dropped.
            let recomputed = cx.checkpointing() == Checkpointing::Layers && cx.tape.grad_enabled();
            if let Some(cache) = inputs.cache.as_ref().filter(|_| !recomputed) {
                cache.push(k.clone());
            }
        } else if let Some([keys, values]) = &inputs.prefix {
            // `DynamicLayer.update` on what the prefix holds.
            k = Tensor::cat(keys, &[&k], -2);
            v = Tensor::cat(values, &[&v], -2);
        } else {
            (k, v) = cached(&inputs.cache, k, v);
        }
        let mut groups = self.heads / self.key_value_heads;
        let libraries = &cx.env.libraries;
        let as_mistral = self.family.attention.repeats_kv && libraries.mistral_repeats_keys;
        if (libraries.repeats_keys || as_mistral) && groups > 1 {
            k = repeat_heads(&k, groups);
            v = repeat_heads(&v, groups);
            groups = 1;
        }
        let mask = &inputs.attention_mask;
        let rate = if self.family.dropout.attention {
            cx.rate(self.dropout_rate)
        } else {
            0.0
        };
        let softcap = self.family.attention.softcap;
        let (mut out, weights) = match &sinks_or_mask {
            Some(sinks_or_mask) if cx.env.training.attention == Attention::Eager => {
                let eager = match self.family.attention.scores {
                    Scores::Fp32 => eager_fp32,
                    _ => eager_with_sinks,
                };
                eager([&q, &k, &v], mask, groups, sinks_or_mask)
            }
            _ => attention_function(cx, [&q, &k, &v], mask, groups, softcap, rate),
        };
        let width = out.numel() / (b * s).max(1);
        out = out.reshape(&[b, s, width]).contiguous();
        let gated = matches!(
            self.family.attention.projection,
            Projection::Gated | Projection::GatedBeside
        );
        if gated && let Some(gate) = &fused {
            let open = gate.sigmoid();
            out = out.mul(&open);
        }
        if let Some(name) = self.family.attention.sub_norm {
            out = self.norm(cx, name, &out);
        }
        out = cx.linear(
            self.family.names.o_proj,
            &out,
            self.hidden,
            self.family.attention.o_bias,
        );
        if self.family.init.o_proj_first {
            cx.tape.construct_here(start, projected);
        } else if let Some([from, to]) = norms {
            cx.tape.construct_here(from, to);
        }
        if self.family.dropout.in_sublayers {
            out = self.dropout(cx, &out);
        }
        drop((fused, held));
        (out, weights)
    }

    /// `present` of `GPTBigCodeAttention` before transformers 4.53: keys and values as a view of the fused projection, all of
    /// which stays alive, whether layers are checkpointed or not.
    fn caches_views(&self, cx: &Cx) -> bool {
        self.family.attention.projection == Projection::FusedMultiQuery
            && cx.env.libraries.bigcode_keeps_caches
    }

    pub(super) fn cache(&self, cx: &Cx) -> Cache {
        if self.caches_views(cx) && cx.env.training.use_cache {
            return Some(super::KvCache::default());
        }
        cache(cx)
    }

    /// The fused projection, which a variable of the block keeps alive; queries, keys and values `[B, H, S, D]`; the span
    /// of `q_norm` and `k_norm`, which constructors make after the last projection.
    fn projections(
        &self,
        cx: &Cx,
        x: &Tensor,
    ) -> (Option<Tensor>, [Tensor; 3], Option<[ConstructionPoint; 2]>) {
        let bias = self.family.attention.qkv_bias;
        let (b, s, d) = (x.size(0), x.size(1), self.head_dim);
        let (h, k) = (self.heads, self.key_value_heads);
        let heads = |t: &Tensor, n: u64| t.view(&[b, s, n, d]).transpose(1, 2);
        let width = (h + 2 * k) * d;
        let project = || cx.linear(self.family.names.qkv_proj, x, width, bias);
        match self.family.attention.projection {
            Projection::Separate | Projection::SeparateThenSplit | Projection::ScaledQueryFirst => {
                let (qkv, norms) = self.separate_projections(cx, x);
                (None, qkv, Some(norms))
            }
            Projection::Gated => {
                let (gate, qkv) = self.gated_projections(cx, x);
                (Some(gate), qkv, None)
            }
            Projection::GatedBeside => {
                let (gate, qkv) = self.gate_beside(cx, x);
                (Some(gate), qkv, None)
            }
            Projection::Fused => {
                let fused = project();
                let [q, keys, v] = [h, k, k].map(|n| fused.narrow(-1, n * d));
                let qkv = [heads(&q, h), heads(&keys, k), heads(&v, k)];
                (Some(fused), qkv, None)
            }
            Projection::FusedByHead => {
                let mut fused = project();
                fused = fused.view(&[b, s, h, 3 * d]).transpose(1, 2);
                let qkv = fused.split(&[d; 3], -1).try_into();
                let qkv = qkv.unwrap_or_else(|_| [0; 3].map(|_| fused.clone()));
                (Some(fused), qkv, None)
            }
            Projection::FusedMultiQuery => {
                let parts = project().unsqueeze(1).split(&[h * d, k * d, k * d], 3);
                let [q, keys, v]: [Tensor; 3] = match parts.try_into() {
                    Ok(parts) => parts,
                    Err(_) => return (None, [0; 3].map(|_| x.clone()), None),
                };
                (None, [heads(&q, h), keys, v], None)
            }
        }
    }

    /// Of `Qwen3_5Attention`: the gate `[B, S, H * D]`; queries, keys and values.
    fn gated_projections(&self, cx: &Cx, x: &Tensor) -> (Tensor, [Tensor; 3]) {
        let (b, s, d) = (x.size(0), x.size(1), self.head_dim);
        let (names, bias) = (self.family.names, self.family.attention.qkv_bias);
        let both = cx
            .linear("q_proj", x, 2 * self.heads * d, bias)
            .view(&[b, s, self.heads, 2 * d])
            .chunk(2, -1);
        let [queries, gate] = &both[..] else {
            return (x.clone(), [0; 3].map(|_| x.clone()));
        };
        let gate = gate.reshape(&[b, s, self.heads * d]);
        let normed = self.norm(cx, names.q_norm, queries).transpose(1, 2);
        drop(both);
        let heads = |name| {
            let t = cx.linear(name, x, self.key_value_heads * d, bias);
            t.view(&[b, s, self.key_value_heads, d])
        };
        let keys = self
            .norm(cx, names.k_norm, &heads("k_proj"))
            .transpose(1, 2);
        let values = heads("v_proj").transpose(1, 2);
        (gate, [normed, keys, values])
    }

    /// Of `AfmoeAttention`: the gate `[B, S, H * D]`; queries, keys and values.
    fn gate_beside(&self, cx: &Cx, x: &Tensor) -> (Tensor, [Tensor; 3]) {
        let (b, s, d) = (x.size(0), x.size(1), self.head_dim);
        let names = self.family.names;
        let project = |name, n: u64| {
            let bias = self.family.attention.qkv_bias;
            cx.linear(name, x, n * d, bias).view(&[b, s, n, d])
        };
        let mut queries = project("q_proj", self.heads);
        let mut keys = project("k_proj", self.key_value_heads);
        let values = project("v_proj", self.key_value_heads).transpose(1, 2);
        let gate = cx.linear("gate_proj", x, self.heads * d, false);
        queries = self.norm(cx, names.q_norm, &queries).transpose(1, 2);
        keys = self.norm(cx, names.k_norm, &keys).transpose(1, 2);
        (gate, [queries, keys, values])
    }

    fn separate_projections(&self, cx: &Cx, x: &Tensor) -> ([Tensor; 3], [ConstructionPoint; 2]) {
        let (b, s, d) = (x.size(0), x.size(1), self.head_dim);
        let names = self.family.names;
        let qk_norm = self.family.attention.qk_norm;
        let normed = |at: QkNorm, t: Tensor, norm: Option<&'static str>| match norm {
            Some(norm) if at == qk_norm => self.norm(cx, norm, &t),
            _ => t,
        };
        let project = |name, n: u64| cx.linear(name, x, n * d, self.family.attention.qkv_bias);
        let norm_whole = |t, norm| normed(QkNorm::WholeProjection, t, norm);
        // As many heads as this GPU has: the library views them as `(*input_shape, -1, head_dim)`.
        let split = |t: Tensor, norm| {
            let heads = t.size(-1) / d.max(1);
            let mut t = normed(QkNorm::PerHead, t.view(&[b, s, heads, d]), norm);
            if let Some(norm) = norm.filter(|_| qk_norm == QkNorm::PerHeadOwnWeights) {
                t = self.norm_of_shape(cx, norm, &t, &[heads, d]);
            }
            t.transpose(1, 2)
        };
        let (h, k) = (self.heads, self.key_value_heads);
        let (q_norm, k_norm) = (Some(names.q_norm), Some(names.k_norm));
        let mut queries = project("q_proj", h);
        let mut start = cx.tape.construction_point();
        let [mut keys, values] = match self.family.attention.projection {
            Projection::SeparateThenSplit => {
                queries = norm_whole(queries, q_norm);
                let made = cx.tape.construction_point();
                let mut keys = project("k_proj", k);
                start = cx.tape.construct_here(start, made);
                keys = norm_whole(keys, k_norm);
                let made = cx.tape.construction_point();
                let values = project("v_proj", k);
                start = cx.tape.construct_here(start, made);
                queries = split(queries, q_norm);
                keys = split(keys, k_norm);
                [keys, split(values, None)]
            }
            Projection::ScaledQueryFirst => {
                queries = split(queries.pipe(Tensor::mul_scalar), None);
                let keys = project("k_proj", k);
                let values = project("v_proj", k);
                [split(keys, None), split(values, None)]
            }
            _ => {
                queries = split(norm_whole(queries, q_norm), q_norm);
                let made = cx.tape.construction_point();
                let keys = project("k_proj", k);
                start = cx.tape.construct_here(start, made);
                let mut keys = split(norm_whole(keys, k_norm), k_norm);
                if self.family.attention.scaled_keys {
                    keys = keys.pipe(Tensor::mul_scalar);
                }
                let made = cx.tape.construction_point();
                let values = project("v_proj", k);
                start = cx.tape.construct_here(start, made);
                [keys, split(values, None)]
            }
        };
        match qk_norm {
            QkNorm::PerHeadTransposed => {
                queries = normed(QkNorm::PerHeadTransposed, queries, q_norm);
                keys = normed(QkNorm::PerHeadTransposed, keys, k_norm);
            }
            QkNorm::ModulePerHead => {
                queries = norm_per_head(cx, names.q_norm, &queries);
                keys = norm_per_head(cx, names.k_norm, &keys);
            }
            _ => {}
        }
        (
            [queries, keys, values],
            [start, cx.tape.construction_point()],
        )
    }
}

/// `StableLmLayerNormPerHead.forward`: a norm without bias for each head.
fn norm_per_head(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    let count = x.size(1);
    let ones: Vec<u64> = (0..count).map(|_| 1).collect();
    let parts = x.split(&ones, 1);
    let normed: Vec<Tensor> = cx.module(name, |cx| {
        let each = |(i, part): (usize, &Tensor)| {
            cx.list_item("norms", i, |cx| {
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

/// `ALL_ATTENTION_FUNCTIONS` for queries, keys and values `[B, H, S, D]`: the result `[B, S, H, D]`.
pub(in crate::nets) fn attention_function(
    cx: &Cx,
    all: [&Tensor; 3],
    mask: &AttentionMask,
    groups: u64,
    softcap: bool,
    dropout: f64,
) -> (Tensor, Option<Tensor>) {
    let [q, k, v] = all;
    match cx.env.training.attention {
        Attention::Sdpa | Attention::Flash2 if cx.env.groups.context.group > 1 => {
            (across_gpus(cx, [q, k, v], groups), None)
        }
        Attention::Sdpa | Attention::Flash2 => (sdpa(q, k, v, mask, groups, dropout), None),
        Attention::Eager => eager(all, mask, groups, softcap, dropout),
    }
}

/// The same over the tokens of all GPUs of a group, which has as many heads of keys as of queries (accelerate's
/// `_prepare_cp`, around `context_parallel` of PyTorch).
fn across_gpus(cx: &Cx, [q, k, v]: [&Tensor; 3], groups: u64) -> Tensor {
    let [q, k, v] = [q, k, v].map(|x| cx.heads_exchanged(x));
    let out = if groups > 1 {
        let [k, v] = [&k, &v].map(|x| repeat_heads(x, groups));
        cx.causal_attention([&q, &k, &v])
    } else {
        cx.causal_attention([&q, &k, &v])
    };
    let out = cx.tokens_exchanged(out);
    out.transpose(1, 2).contiguous()
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
    softcap: bool,
    dropout: f64,
) -> (Tensor, Option<Tensor>) {
    let keys = repeat_heads(k, groups);
    let values = repeat_heads(v, groups);
    let mut weights = q.matmul(&keys.transpose(2, 3)).pipe(Tensor::mul_scalar);
    if softcap {
        weights = weights.mul_scalar();
        weights = weights.tanh();
        weights = weights.mul_scalar();
    }
    if let AttentionMask::Given(bias) = mask {
        weights = weights.add(bias);
    }
    weights = weights
        .softmax(Some(DType::F32))
        .pipe(|weights| weights.to(q.dtype()));
    weights = weights.dropout(dropout);
    let out = weights
        .matmul(&values)
        .pipe(|out| out.transpose(1, 2).contiguous());
    (out, Some(weights))
}

/// `eager_attention_forward` of GPT-OSS: a learned sink for each head takes part in the softmax and is then cut off.
fn eager_with_sinks(
    [q, k, v]: [&Tensor; 3],
    mask: &AttentionMask,
    groups: u64,
    sinks: &Tensor,
) -> (Tensor, Option<Tensor>) {
    let (b, h, s) = (q.size(0), q.size(1), q.size(2));
    let keys = repeat_heads(k, groups);
    let values = repeat_heads(v, groups);
    let mut weights = q.matmul(&keys.transpose(2, 3)).pipe(Tensor::mul_scalar);
    if let AttentionMask::Given(bias) = mask {
        weights = weights.add(bias);
    }
    let column = sinks.view(&[1, h, 1, 1]).expand(&[b, h, s, 1]);
    let mut scores = Tensor::cat(&weights, &[&column], -1);
    scores = {
        let greatest = scores.max_values().unsqueeze(-1);
        scores.sub(&greatest)
    };
    let shares = scores.softmax(Some(scores.dtype()));
    let kept = shares.narrow(-1, k.size(-2));
    weights = kept.to(v.dtype());
    let out = weights
        .matmul(&values)
        .pipe(|out| out.transpose(1, 2).contiguous());
    drop((keys, values, column, scores, shares, kept));
    (out, Some(weights))
}

/// `_attn` and `_merge_heads` of GPT-Neo, with the block's own causal mask.
fn eager_fp32(
    [q, k, v]: [&Tensor; 3],
    mask: &AttentionMask,
    _groups: u64,
    causal_mask: &Tensor,
) -> (Tensor, Option<Tensor>) {
    let (query, key) = (q.to(DType::F32), k.to(DType::F32));
    let mut weights = query.matmul(&key.transpose(2, 3));
    let visible = causal_mask.narrow(0, q.size(-2)).narrow(1, k.size(-2));
    let least = q.constant("tensor", &[0; 0], weights.dtype());
    weights = weights.masked_fill(&visible);
    if let AttentionMask::Given(bias) = mask {
        weights = weights.add(bias);
    }
    weights = weights.softmax(None);
    weights = weights.to(v.dtype());
    let out = weights.matmul(v);
    drop((query, key, visible, least));
    let merged = out.pipe(|out| out.transpose(1, 2).contiguous());
    (merged, Some(weights))
}
