//! Self-attention of the decoder.

use super::super::Cx;
use super::{Cache, Decoder, Shared, rope};
use crate::scenario::{Attention, Kernels};
use crate::tape::ops::{AttentionMask, repeat_heads};
use crate::tape::{DType, Tensor};

impl Decoder {
    pub(super) fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        shared: &Shared,
    ) -> (Tensor, Option<Tensor>) {
        let (b, s, d) = (x.size(0), x.size(1), self.head_dim);
        let (joint, [mut q, mut k, mut v]) = self.projections(cx, x);
        if cx.env.training.kernels == Kernels::Library {
            let turned = rope::apply(&q, &k, &shared.rope, self.traits.fused);
            (q, k) = turned;
        } else {
            [q, k] = q.rope_liger(&k, &shared.rope);
        }
        (k, v) = cached(&shared.cache, k, v);
        let groups = self.heads / self.kv_heads;
        let mask = &shared.mask;
        let (mut out, weights) = match cx.env.training.attention {
            Attention::Sdpa => (sdpa(&q, &k, &v, mask, groups), None),
            Attention::Eager => eager(&q, &k, &v, mask, groups, self.traits.soft_caps),
        };
        out = out.reshape(&[b, s, self.heads * d]).contiguous();
        out = cx.linear("o_proj", &out, self.hidden, self.traits.out_bias);
        drop(joint);
        (out, weights)
    }

    /// Queries, keys and values `[B, H, S, D]`, and the joint projection they are views of, where there is one.
    fn projections(&self, cx: &Cx, x: &Tensor) -> (Option<Tensor>, [Tensor; 3]) {
        let (b, s, d) = (x.size(0), x.size(1), self.head_dim);
        let heads = |t: Tensor, n: u64| t.view(&[b, s, n, d]);
        let counts = [self.heads, self.kv_heads, self.kv_heads];
        if self.traits.fused {
            let width = counts.iter().sum::<u64>() * d;
            let joint = cx.linear("qkv_proj", x, width, self.traits.qkv_bias);
            let parts = counts.map(|n| joint.narrow(-1, n * d));
            let [q, k, v] = parts;
            let all = [(q, self.heads), (k, self.kv_heads), (v, self.kv_heads)]
                .map(|(t, n)| heads(t, n).transpose(1, 2));
            return (Some(joint), all);
        }
        let project = |name, norm: Option<&'static str>, n| {
            let t = cx.linear(name, x, n * d, self.traits.qkv_bias);
            match norm.filter(|_| self.traits.whole_norms) {
                Some(norm) => self.norm(cx, norm, &t),
                None => t,
            }
        };
        let split = |t: Tensor, norm: Option<&'static str>, n| {
            let t = heads(t, n);
            let t = match norm.filter(|_| self.traits.head_norms) {
                Some(norm) => self.norm(cx, norm, &t),
                None => t,
            };
            t.transpose(1, 2)
        };
        let (h, k) = (self.heads, self.kv_heads);
        let (q_norm, k_norm) = (Some("q_norm"), Some("k_norm"));
        // Where whole projections are normed, all are made before the first is split.
        let all = if self.traits.whole_norms {
            let queries = project("q_proj", q_norm, h);
            let keys = project("k_proj", k_norm, k);
            let values = project("v_proj", None, k);
            let queries = split(queries, q_norm, h);
            let keys = split(keys, k_norm, k);
            [queries, keys, split(values, None, k)]
        } else {
            let queries = split(project("q_proj", q_norm, h), q_norm, h);
            let keys = split(project("k_proj", k_norm, k), k_norm, k);
            [queries, keys, split(project("v_proj", None, k), None, k)]
        };
        (None, all)
    }
}

/// `DynamicLayer.update`: joins new keys and values to what is kept, which copies them.
pub(in crate::nets) fn cached(cache: &Cache, k: Tensor, v: Tensor) -> (Tensor, Tensor) {
    let Some(cache) = cache else { return (k, v) };
    let empty = |t: &Tensor| t.constant("tensor", &[0], t.dtype());
    let (no_keys, no_values) = (empty(&k), empty(&v));
    let keys = Tensor::cat(&k, &[], -2);
    drop(no_keys);
    let values = Tensor::cat(&v, &[], -2);
    drop(no_values);
    cache.borrow_mut().extend([keys.clone(), values.clone()]);
    (keys, values)
}

/// `sdpa_attention_forward`: a mask makes it repeat keys and values, for the kernels that take masks know no groups.
fn sdpa(q: &Tensor, k: &Tensor, v: &Tensor, mask: &AttentionMask, groups: u64) -> Tensor {
    let grouped = !matches!(mask, AttentionMask::Given(_)) && k.size(-1) <= 256;
    let repeated = (!grouped && groups > 1).then(|| {
        let keys = repeat_heads(k, groups);
        [keys, repeat_heads(v, groups)]
    });
    let [k, v] = repeated.as_ref().map_or([k, v], |[k, v]| [k, v]);
    let out = q.attention(k, v, mask, 0.0);
    out.transpose(1, 2).contiguous()
}

/// `eager_attention_forward`: softmax in fp32.
fn eager(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    mask: &AttentionMask,
    groups: u64,
    capped: bool,
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
    let out = weights
        .matmul(&values)
        .then(|out| out.transpose(1, 2).contiguous());
    (out, Some(weights))
}
