//! A layer of the towers of sounds: Whisper's, over padded windows or over all tokens in one row.

use crate::nets::Cx;
use crate::nets::attention::{Eager, attend};
use crate::nets::{ModelError, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;
use headroom_scenario::Attention;

/// The sizes of a layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layer {
    pub hidden: u64,
    pub heads: u64,
    pub ffn: u64,
    pub key_bias: bool,
}

impl Layer {
    pub(super) fn new(sizes: &Sizes, key_bias: bool) -> Result<Self, ModelError> {
        let hidden = sizes.need("a_hidden")?;
        Ok(Self {
            hidden,
            heads: sizes.need("a_heads")?.max(1),
            ffn: sizes.or("a_ffn", 4 * hidden),
            key_bias,
        })
    }

    /// Attention and the MLP behind their norms, each added to its input.
    pub(super) fn run(
        &self,
        cx: &Cx,
        input: &Tensor,
        attention: impl FnOnce(&Cx, &Tensor) -> Tensor,
    ) -> Tensor {
        let normed = cx.layer_norm("self_attn_layer_norm", input);
        let attended = cx.module("self_attn", |cx| {
            normed.pipe(|normed| attention(cx, normed))
        });
        let hidden = attended.pipe(|attended| input.add(attended));
        let normed = cx.layer_norm("final_layer_norm", &hidden);
        let inner = normed
            .pipe(|normed| cx.linear("fc1", normed, self.ffn, true))
            .pipe(Tensor::gelu);
        let fed = inner.pipe(|inner| cx.linear("fc2", inner, self.hidden, true));
        fed.pipe(|fed| hidden.add(fed))
    }

    /// `WhisperAttention.forward` over windows `[B, T, H]`: queries are scaled before attention.
    pub(super) fn over_windows(&self, cx: &Cx, x: &Tensor, mask: &AttentionMask) -> Tensor {
        let (b, t) = (x.size(0), x.size(1));
        let heads = |y: &Tensor| {
            y.view(&[b, t, self.heads, self.hidden / self.heads])
                .transpose(1, 2)
                .contiguous()
        };
        let q = {
            let scaled = cx
                .linear("q_proj", x, self.hidden, true)
                .pipe(Tensor::mul_scalar);
            heads(&scaled)
        };
        let k = heads(&cx.linear("k_proj", x, self.hidden, self.key_bias));
        let v = heads(&cx.linear("v_proj", x, self.hidden, true));
        let (mut out, weights) = attend(cx, [&q, &k, &v], mask, 0.0, Eager::default());
        out = out.reshape(&[b, t, self.hidden]);
        out = cx.linear("out_proj", &out, self.hidden, true);
        drop((q, k, v, weights));
        out
    }

    /// Attention over tokens in one row `[N, H]`, each piece by itself.
    pub(super) fn over_pieces(&self, cx: &Cx, x: &Tensor, pieces: &[u64]) -> Tensor {
        let (rows, d) = (x.size(0), self.hidden / self.heads);
        let heads = |name, bias| {
            cx.linear(name, x, self.hidden, bias)
                .view(&[rows, self.heads, d])
                .transpose(0, 1)
                .unsqueeze(0)
        };
        let q = heads("q_proj", true);
        let k = heads("k_proj", self.key_bias);
        let v = heads("v_proj", true);
        let lengths = x.constant("sub", &[pieces.len() as u64], crate::tape::DType::I32);
        let form = Eager { in_fp32: true };
        let run =
            |[q, k, v]: [&Tensor; 3]| attend(cx, [q, k, v], &AttentionMask::None, 0.0, form).0;
        let whole = cx.env.training.attention == Attention::Flash2 || pieces.is_empty();
        let (mut out, parts) = if whole {
            (run([&q, &k, &v]), Vec::new())
        } else {
            let [q, k, v] = [&q, &k, &v].map(|t| t.split(pieces, 2));
            let parts = q.iter().zip(&k).zip(&v);
            let parts: Vec<Tensor> = parts.map(|((q, k), v)| run([q, k, v])).collect();
            let rest: Vec<&Tensor> = parts.iter().skip(1).collect();
            let joined = parts.first().map(|first| Tensor::cat(first, &rest, 1));
            (joined.unwrap_or_else(|| x.clone()), parts)
        };
        out = out.reshape(&[rows, self.hidden]).contiguous();
        out = cx.linear("out_proj", &out, self.hidden, true);
        drop((q, k, v, lengths, parts));
        out
    }
}
