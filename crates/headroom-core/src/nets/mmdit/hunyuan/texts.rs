//! What the blocks are given of texts: the refiner of the first encoder's, and the other encoders' tokens beside them.

use super::{Hunyuan, Kind};
use crate::nets::Cx;
use crate::nets::diffusion::{sinusoids, timestep_embedding};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

/// The most samples that are joined one by one.
const MOST_SAMPLES: u64 = 1024;

/// Tokens of all encoders, which of them are no padding, and what is held beside them.
pub(super) struct Joined {
    pub text: Tensor,
    pub mask: Tensor,
    pub held: Vec<Tensor>,
}

impl Hunyuan {
    /// The tokens of one sample after the other: those in use of each encoder, then those that are padding, of which a full batch
    /// has none.
    pub(super) fn joined(&self, cx: &Cx, texts: [&Tensor; 3], masks: [&Tensor; 2]) -> Joined {
        let [text, glyphs, image] = texts;
        let mut held = Vec::new();
        let mut parts = Vec::new();
        let mut text = text.clone();
        if self.kind == Kind::Video15 {
            text = self.told_apart(cx, &text);
        }
        let mut glyphs = cx.module("context_embedder_2", |cx| self.glyphs(cx, glyphs));
        if self.kind == Kind::Video15 {
            glyphs = self.told_apart(cx, &glyphs);
            let shown = cx.module("image_embedder", |cx| self.shown(cx, image));
            let shown = self.told_apart(cx, &shown);
            let mask = shown.constant("ones", &[shown.size(0), shown.size(1)], DType::I64);
            parts.push((shown, mask.constant("bool", mask.shape(), DType::Bool)));
        }
        let [text_mask, glyph_mask] = masks;
        let used = glyph_mask.constant("bool", glyph_mask.shape(), DType::Bool);
        parts.push((glyphs, used));
        parts.push((text, text_mask.clone()));
        let samples = parts.iter().map(|(rows, mask)| {
            let (rows, masks) = (rows.unbind_along(0), mask.unbind_along(0));
            rows.into_iter().zip(masks).collect::<Vec<_>>()
        });
        let samples: Vec<Vec<(Tensor, Tensor)>> = samples.collect();
        let n = texts[0].size(0).min(MOST_SAMPLES) as usize;
        for i in 0..n {
            let rows: Vec<Tensor> = samples
                .iter()
                .filter_map(|part| part.get(i))
                .map(|(rows, mask)| rows.rows_where(mask, rows.size(0)))
                .collect();
            let all: Vec<&Tensor> = rows.iter().collect();
            if let Some((first, rest)) = all.split_first() {
                held.push(Tensor::cat(first, rest, 0));
            }
        }
        drop(samples);
        let joined = Tensor::stack(&held, 0).unwrap_or_else(|| texts[0].clone());
        let (n, words) = (joined.size(0), joined.size(1));
        for _ in 0..held.len() {
            held.push(joined.constant("cat", &[words], DType::Bool));
        }
        let mask = joined.constant("stack", &[n, words], DType::Bool);
        held.extend(parts.into_iter().flat_map(|(rows, mask)| [rows, mask]));
        Joined {
            text: joined,
            mask,
            held,
        }
    }

    /// `encoder_hidden_states + self.cond_type_embed(..)`.
    fn told_apart(&self, cx: &Cx, text: &Tensor) -> Tensor {
        let ids = text.constant("zeros_like", &[text.size(0), text.size(1)], DType::I64);
        let kinds = cx.embedding("cond_type_embed", &ids, 3, self.width());
        text.add(&kinds)
    }

    /// `HunyuanImageByT5TextProjection`.
    fn glyphs(&self, cx: &Cx, text: &Tensor) -> Tensor {
        let mut hidden = cx.layer_norm("norm", text);
        hidden = cx
            .linear("linear_1", &hidden, 2048, true)
            .pipe(Tensor::gelu);
        hidden = cx
            .linear("linear_2", &hidden, 2048, true)
            .pipe(Tensor::gelu);
        cx.linear("linear_3", &hidden, self.width(), true)
    }

    /// `HunyuanVideo15ImageProjection`.
    fn shown(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let mut hidden = cx.layer_norm("norm_in", image);
        hidden = cx
            .linear("linear_1", &hidden, image.size(-1), true)
            .pipe(Tensor::gelu);
        hidden = cx.linear("linear_2", &hidden, self.width(), true);
        cx.layer_norm("norm_out", &hidden)
    }

    /// `HunyuanVideoTokenRefiner`.
    pub(super) fn refiner(
        &self,
        cx: &Cx,
        text: &Tensor,
        timestep: &Tensor,
        mask: &Tensor,
    ) -> Tensor {
        let width = self.width();
        let (n, words) = (text.size(0), text.size(1));
        let pooled = {
            let wide = mask.constant("float", &[n, words, 1], DType::F32);
            let sum = text
                .mul(&wide)
                .pipe(|x| x.sum(&[1]))
                .reshape(&[n, self.context]);
            let count = wide.constant("sum", &[n, 1], DType::F32);
            sum.div(&count).to(text.dtype())
        };
        let temb = cx.module("time_text_embed", |cx| {
            let waves = sinusoids(timestep, 256).to(pooled.dtype());
            let time = timestep_embedding(cx, "timestep_embedder", &waves, width);
            let text = timestep_embedding(cx, "text_embedder", &pooled, width);
            time.add(&text)
        });
        let hidden = cx.linear("proj_in", text, width, true);
        let square = hidden.constant("and", &[n, 1, words, words], DType::Bool);
        let this = *self;
        cx.module("token_refiner", |cx| {
            (0..self.refiner_layers as usize).fold(hidden, |hidden, i| {
                cx.list_item("refiner_blocks", i, |cx| {
                    this.refine(cx, &hidden, &temb, &square)
                })
            })
        })
    }

    /// `HunyuanVideoIndividualTokenRefinerBlock.forward`.
    fn refine(&self, cx: &Cx, hidden: &Tensor, temb: &Tensor, mask: &Tensor) -> Tensor {
        let width = self.width();
        let normed = cx.layer_norm("norm1", hidden);
        let attended = cx.module("attn", |cx| {
            let (n, words) = (normed.size(0), normed.size(1));
            let each = mask.constant(
                "repeat_interleave",
                &[n, self.heads, words, words],
                DType::Bool,
            );
            let rows = |x: &Tensor| {
                x.view(&[n, words, self.heads, self.head_dim])
                    .transpose(1, 2)
            };
            let mut query = cx.linear("to_q", &normed, width, true);
            let mut key = cx.linear("to_k", &normed, width, true);
            let mut value = cx.linear("to_v", &normed, width, true);
            query = rows(&query);
            key = rows(&key);
            value = rows(&value);
            let mut x = query.attention(&key, &value, &AttentionMask::Given(each), 0.0);
            x = x.transpose(1, 2).reshape(&[n, words, width]);
            x = x.to(query.dtype());
            x = cx.module("to_out", |cx| cx.linear("0", &x, width, true));
            x.mul_scalar()
        });
        let gates = cx.module("norm_out", |cx| {
            temb.silu()
                .pipe(|x| cx.linear("linear", x, 2 * width, true))
                .chunk(2, 1)
        });
        let [gate, ff_gate] = &gates[..] else {
            return hidden.clone();
        };
        let (gate, ff_gate) = (gate.unsqueeze(1), ff_gate.unsqueeze(1));
        let hidden = attended.mul(&gate).pipe(|more| hidden.add(more));
        let ff_output = {
            let normed = cx.layer_norm("norm2", &hidden);
            cx.module("ff", |cx| {
                cx.module("net", |cx| {
                    let mut x = cx.module("0", |cx| cx.linear("proj", &normed, 4 * width, true));
                    x = x.silu();
                    cx.linear("2", &x, width, true)
                })
            })
        };
        ff_output.mul(&ff_gate).pipe(|more| hidden.add(more))
    }
}
