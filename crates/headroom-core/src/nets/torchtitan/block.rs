//! `TransformerBlock`, `Attention` and `FeedForward`.

use super::Transformer;
use super::rope::rotated;
use crate::nets::Cx;
use crate::tape::Tensor;

impl Transformer {
    pub(super) fn block(&self, cx: &Cx, x: &Tensor, freqs_cis: &Tensor) -> Tensor {
        let start = cx.tape.construction_point();
        let normed = self.norm(cx, "attention_norm", x);
        let constructed = cx.tape.construction_point();
        let attended = cx.module_on("attention", &normed, |cx, x| {
            self.attention(cx, x, freqs_cis)
        });
        drop(normed);
        let h = x.add(&attended);
        drop(attended);
        let norms = cx.tape.construct_here(start, constructed);
        let normed = self.norm(cx, "ffn_norm", &h);
        let constructed = cx.tape.construction_point();
        let out = cx.module_on("feed_forward", &normed, |cx, x| self.feed_forward(cx, x));
        drop(normed);
        cx.tape.construct_here(norms, constructed);
        h.add(&out)
    }

    fn attention(&self, cx: &Cx, x: &Tensor, freqs_cis: &Tensor) -> Tensor {
        let (b, s, d) = (x.size(0), x.size(1), self.head_dim);
        let project = |name, heads: u64| {
            let projected = cx.linear(name, x, heads * d, false);
            projected.view(&[b, s, projected.size(-1) / d.max(1), d])
        };
        let mut xq = project("wq", self.heads);
        let mut xk = project("wk", self.key_value_heads);
        let mut xv = project("wv", self.key_value_heads);
        xq = rotated(&xq, freqs_cis);
        xk = rotated(&xk, freqs_cis);
        [xq, xk, xv] = [&xq, &xk, &xv].map(|x| cx.tokens_gathered(x));
        let repeats = xq.size(2) / xk.size(2).max(1);
        xk = repeat_kv(&xk, repeats);
        xv = repeat_kv(&xv, repeats);
        let mut output = {
            let [q, k, v] = [&xq, &xk, &xv].map(|t| t.transpose(1, 2));
            cx.causal_attention([&q, &k, &v])
        };
        output = output.transpose(1, 2).contiguous();
        output = cx.heads_gathered(output);
        output = output.view(&[b, s, output.size(2) * d]);
        let out = cx.linear("wo", &output, self.dim, false);
        drop((xq, xk, xv));
        out
    }

    fn feed_forward(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let gate = cx
            .linear("w1", x, self.intermediate, false)
            .pipe(Tensor::silu);
        let start = cx.tape.construction_point();
        let product = cx
            .linear("w3", x, self.intermediate, false)
            .pipe(|up| gate.mul(up));
        drop(gate);
        let constructed = cx.tape.construction_point();
        let out = cx.linear("w2", &product, self.dim, false);
        cx.tape.construct_here(start, constructed);
        out
    }
}

/// `repeat_kv` on `[B, S, K, D]`.
fn repeat_kv(x: &Tensor, repeats: u64) -> Tensor {
    if repeats <= 1 {
        return x.clone();
    }
    let (b, s, heads, d) = (x.size(0), x.size(1), x.size(2), x.size(3));
    x.unsqueeze(3)
        .expand(&[b, s, heads, repeats, d])
        .reshape(&[b, s, heads * repeats, d])
}
