//! `Swinv2Layer`: cosine attention with a bias that a small MLP makes, and norms behind attention and MLP.

use super::layer::Layer;
use super::windows::{window_partition, window_reverse};
use crate::nets::Cx;
use crate::nets::attention::heads;
use crate::nets::drop_path::drop_path;
use crate::tape::{DType, Tensor};
use headroom_base::units::RoundUp;

impl Layer {
    /// `Swinv2Layer.forward`.
    pub(super) fn second(self, cx: &Cx, input: &Tensor) -> Tensor {
        let Self { side, window, .. } = self;
        let (b, channels) = (input.size(0), input.size(2));
        let padded = side.round_up(window);
        let grid = input
            .view(&[b, side, side, channels])
            .pad_to(&[b, padded, padded, channels]);
        let windows = {
            let shifted = self.rolled(&grid);
            window_partition(&shifted, window)
        };
        let windows = windows.view(&[windows.size(0), window * window, channels]);
        let mask = self.shifted.then(|| self.attention_mask(&grid));
        let attended = cx.module("attention", |cx| {
            let context = cx.module("self", |cx| {
                self.cosine_attention(cx, &windows, mask.as_ref())
            });
            cx.module("output", |cx| cx.linear("dense", &context, channels, true))
        });
        let mut back = attended.view(&[attended.size(0), window, window, channels]);
        back = self.rolled(&window_reverse(&back, window, padded));
        if padded > side {
            back = back.narrow(1, side).narrow(2, side).contiguous();
        }
        back = back.view(&[b, side * side, channels]);
        let mut hidden = cx.layer_norm("layernorm_before", &back);
        hidden = drop_path(&hidden, self.drop_path).pipe(|kept| input.add(kept));
        let mut out = cx.module("intermediate", |cx| {
            cx.linear("dense", &hidden, 4 * channels, true)
                .pipe(Tensor::gelu)
        });
        out = cx.module("output", |cx| cx.linear("dense", &out, channels, true));
        let out = cx
            .layer_norm("layernorm_after", &out)
            .pipe(|normed| drop_path(normed, self.drop_path))
            .pipe(|kept| hidden.add(kept));
        drop((attended, windows, mask, grid, back));
        out
    }

    /// `Swinv2SelfAttention.forward`, which is eager whatever the run requests.
    fn cosine_attention(self, cx: &Cx, x: &Tensor, mask: Option<&Tensor>) -> Tensor {
        let (count, area, width) = (x.size(0), x.size(1), x.size(2));
        let scale = cx.param("logit_scale", [self.heads, 1, 1]).tensor();
        let [q, k, v] = [("query", true), ("key", false), ("value", true)]
            .map(|(name, bias)| heads(&cx.linear(name, x, width, bias), self.heads));
        let mut scores = {
            let (q, k) = (normalized(&q), normalized(&k));
            q.matmul(&k.transpose(-2, -1))
        };
        let scale = scale.clamp().pipe(Tensor::exp);
        scores = scores.mul(&scale);
        let (table, bias) = self.continuous_bias(cx);
        scores = scores.add(&bias);
        if let Some(mask) = mask {
            let windows = mask.size(0).max(1);
            let wide = mask.unsqueeze(1).unsqueeze(0);
            // The mask is added twice.
            scores = scores
                .view(&[count / windows, windows, self.heads, area, area])
                .add(&wide);
            scores = scores.add(&wide);
            scores = scores.view(&[count, self.heads, area, area]);
        }
        let shares = scores.softmax(None);
        let mut context = shares.matmul(&v);
        context = context.permute(&[0, 2, 1, 3]).contiguous();
        let out = context.view(&[count, area, width]);
        drop((q, k, v, scores, scale, table, bias, shares));
        out
    }

    /// `16 * sigmoid` of what the MLP makes of log-spaced coordinates; the table lives to the end of attention.
    fn continuous_bias(self, cx: &Cx) -> (Tensor, Tensor) {
        let (reach, area) = (2 * self.window - 1, self.window * self.window);
        let shape = [1, reach, reach, 2];
        let coordinates = cx.buffer("relative_coords_table", shape, cx.env.weights);
        let index = cx.buffer("relative_position_index", [area * area], DType::I64);
        let table = cx.module("continuous_position_bias_mlp", |cx| {
            let mut x = cx.linear("0", &coordinates, 512, true);
            x = x.relu_();
            cx.linear("2", &x, self.heads, false)
        });
        let table = table.view(&[reach * reach, self.heads]);
        let mut bias = table.rows(&index).view(&[area, area, self.heads]);
        bias = bias.permute(&[2, 0, 1]).contiguous();
        bias = bias.sigmoid().pipe(Tensor::mul_scalar);
        (table, bias.unsqueeze(0))
    }
}

/// `F.normalize(x, dim=-1)`.
fn normalized(x: &Tensor) -> Tensor {
    let length = x.vector_length().pipe(Tensor::clamp);
    x.div(&length)
}
