//! `nn.MultiheadAttention(batch_first=True)` as cross-attention with `need_weights=True`, which is computed without a fused
//! kernel (`F.multi_head_attention_forward`).

use super::Cx;
use crate::tape::Tensor;

/// The output, and the weights averaged over heads.
pub fn multi_head(
    cx: &Cx,
    queries: &Tensor,
    tokens: &Tensor,
    heads: u64,
    dropout: f64,
) -> (Tensor, Tensor) {
    let (b, n, s) = (queries.size(0), queries.size(1), tokens.size(1));
    let width = queries.size(-1);
    let weight = cx.param("in_proj_weight", [3 * width, width]).tensor();
    let bias = cx.param("in_proj_bias", [3 * width]).tensor();
    let weights = weight.split(&[width, 2 * width], 0);
    let biases = bias.split(&[width, 2 * width], 0);
    let project = |x: &Tensor, i: usize| match (weights.get(i), biases.get(i)) {
        (Some(weight), bias) => x.transpose(0, 1).linear(weight, bias),
        _ => x.clone(),
    };
    let q = project(queries, 0);
    let kv = project(tokens, 1)
        .view(&[s, b, 2, width])
        .permute(&[2, 0, 1, 3])
        .contiguous();
    let part = || kv.select(0);
    let split = |x: &Tensor, rows: u64| x.view(&[rows, b * heads, width / heads]).transpose(0, 1);
    let q = split(&q, n).pipe(Tensor::mul_scalar);
    let (k, v) = (split(&part(), s), split(&part(), s));
    let mut scores = q.bmm(&k.transpose(1, 2));
    scores = scores.softmax(None);
    scores = scores.dropout(cx.rate(dropout));
    let mut out = scores.bmm(&v).transpose(0, 1);
    out = out.reshape(&[n * b, width]);
    out = cx.linear("out_proj", &out, width, true);
    let averaged = scores.view(&[b, heads, n, s]).mean(&[1]);
    (out.view(&[n, b, width]).transpose(0, 1), averaged)
}
