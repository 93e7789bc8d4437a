//! `CausalSelfAttention.forward`, and LLaMA-Adapter's attention to learned prompts (`litgpt/model.py`, `adapter.py`).

use super::LitGpt;
use crate::nets::Cx;
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

impl LitGpt {
    pub(super) fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        tables: &[Tensor; 2],
        layer: u64,
    ) -> Tensor {
        let (b, t, d) = (x.size(0), x.size(1), self.head_dim);
        let queries_per_group = self.heads / self.query_groups;
        let mut qkv = self.qkv(cx, x);
        qkv = qkv
            .view(&[b, t, self.query_groups, queries_per_group + 2, d])
            .permute(&[0, 2, 3, 1, 4]);
        let mut parts = qkv.split(&[queries_per_group, 1, 1], 2).into_iter();
        let (Some(mut q), Some(mut k), Some(mut v)) = (parts.next(), parts.next(), parts.next())
        else {
            return x.clone();
        };
        if self.query_groups != self.heads {
            let shape = [b, self.query_groups, queries_per_group, t, d];
            k = k.expand(&shape);
            v = v.expand(&shape);
        }
        let heads = [b, self.heads, t, d];
        q = q.reshape(&heads);
        k = k.reshape(&heads);
        v = v.reshape(&heads);
        let roped = [&q, &k].map(|x| apply_rope(&x.narrow(-1, self.rope_n_elem), tables));
        let rest = |x: &Tensor| x.narrow(-1, d.saturating_sub(self.rope_n_elem));
        let [q_roped, k_roped] = &roped;
        if self.rope_n_elem < d {
            q = Tensor::cat(q_roped, &[&rest(&q)], -1);
            k = Tensor::cat(k_roped, &[&rest(&k)], -1);
        } else {
            // `torch.cat` of one tensor copies it.
            q = Tensor::cat(q_roped, &[], -1);
            k = Tensor::cat(k_roped, &[], -1);
        }
        let mut y = self.attend(&q, &k, &v).transpose(1, 2);
        if self.adapter_prompts && layer >= 2 {
            y = self.with_prompts(cx, &q, y);
        }
        y = y.reshape(&[b, t, self.heads * d]);
        let out = self.linear(cx, "proj", &y, self.hidden, self.bias);
        drop((qkv, roped));
        out
    }

    fn attend(&self, q: &Tensor, k: &Tensor, v: &Tensor) -> Tensor {
        if !self.softcaps {
            return q.attention(k, v, &AttentionMask::Causal, 0.0);
        }
        let (b, h, t) = (q.size(0), q.size(1), q.size(2));
        let mut scores = q.matmul(&k.transpose(2, 3)).pipe(Tensor::mul_scalar);
        scores = scores
            .pipe(Tensor::mul_scalar)
            .pipe(Tensor::tanh)
            .pipe(Tensor::mul_scalar);
        let mask = q.constant("triu", &[t, t], q.dtype());
        scores = scores.add(&mask);
        scores = scores
            .softmax(Some(DType::F32))
            .pipe(|scores| scores.to(q.dtype()));
        scores.matmul(v).view(&[b, h, t, v.size(-1)])
    }

    /// Attention to ten learned tokens, added through a gate.
    fn with_prompts(&self, cx: &Cx, q: &Tensor, y: Tensor) -> Tensor {
        const PROMPTS: u64 = 10;
        let (t, d) = (q.size(2), self.head_dim);
        let queries_per_group = self.heads / self.query_groups;
        let prefix = cx.module("adapter_wte", |cx| {
            cx.param("weight", [PROMPTS, self.hidden])
                .tensor()
                .view(&[1, PROMPTS, self.hidden])
        });
        let joint = self
            .qkv(cx, &prefix)
            .view(&[1, PROMPTS, self.query_groups, queries_per_group + 2, d])
            .permute(&[0, 2, 3, 1, 4]);
        let mut parts = joint
            .split(&[queries_per_group, 1, 1], 2)
            .into_iter()
            .skip(1);
        let (Some(keys), Some(values)) = (parts.next(), parts.next()) else {
            return y;
        };
        let shape = [1, self.query_groups, queries_per_group, PROMPTS, d];
        let all_heads = [1, self.heads, PROMPTS, d];
        let keys = keys.expand(&shape).reshape(&all_heads);
        let values = values.expand(&shape).reshape(&all_heads);
        let mask = AttentionMask::Given(q.constant("ones", &[1, 1, t, PROMPTS], DType::Bool));
        let batch = [q.size(0), self.heads, PROMPTS, d];
        let prompted = q
            .attention(&keys.expand(&batch), &values.expand(&batch), &mask, 0.0)
            .transpose(1, 2);
        let gate = cx.param("gating_factor", [1, 1, self.heads, 1]).tensor();
        let update = gate.mul(&prompted);
        y.add(&update)
    }
}

/// `apply_rope`: the tables are fp32, and so is the sum until it is cast back.
fn apply_rope(x: &Tensor, [cos, sin]: &[Tensor; 2]) -> Tensor {
    let half = x.size(-1) / 2;
    let parts = [x.narrow(-1, half), x.narrow(-1, x.size(-1) - half)];
    let rotated = {
        let negative = parts[1].neg();
        Tensor::cat(&negative, &[&parts[0]], -1)
    };
    let straight = x.mul(cos);
    let crossed = rotated.mul(sin);
    let sum = straight.add(&crossed);
    drop((straight, crossed));
    let out = sum.to(x.dtype());
    drop(rotated);
    out
}
