//! `SwinLayer`: attention within windows, on every second layer after a shift.

use super::windows::{window_partition, window_reverse};
use crate::nets::Cx;
use crate::nets::attention::{Eager, attend, heads};
use crate::nets::drop_path::drop_path;
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_base::units::RoundUp;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    pub heads: u64,
    /// Side of the image in tokens.
    pub side: u64,
    pub window: u64,
    pub shifted: bool,
    /// Whether `SwinDropPath` has a rate above zero here.
    pub drop_path: bool,
}

impl Layer {
    /// `SwinLayer.forward`: hidden states, and attention weights where there are any.
    pub(crate) fn forward(self, cx: &Cx, input: &Tensor) -> Vec<Tensor> {
        let Self { side, window, .. } = self;
        let (b, channels) = (input.size(0), input.size(2));
        let padded = side.round_up(window);
        // The constructor makes the attention before the norms.
        let start = cx.tape.construction_point();
        let mut hidden = cx.layer_norm("layernorm_before", input);
        let normed = cx.tape.construction_point();
        hidden = hidden.view(&[b, side, side, channels]);
        hidden = hidden.pad_to(&[b, padded, padded, channels]);
        let windows = {
            let shifted = self.rolled(&hidden);
            window_partition(&shifted, window)
        };
        let windows = windows.view(&[windows.size(0), window * window, channels]);
        let mask = self.shifted.then(|| self.attention_mask(&hidden));
        let (attended, weights) = cx.module("attention", |cx| {
            self.attention(cx, &windows, mask.as_ref())
        });
        cx.tape.construct_here(start, normed);
        let mut back = {
            let count = attended.size(0);
            attended.view(&[count, window, window, channels])
        };
        back = self.rolled(&window_reverse(&back, window, padded));
        if padded > side {
            back = back.narrow(1, side).narrow(2, side).contiguous();
        }
        back = back.view(&[b, side * side, channels]);
        hidden = drop_path(&back, self.drop_path).pipe(|kept| input.add(kept));
        let residual = hidden.clone();
        hidden = cx.layer_norm("layernorm_after", &hidden);
        hidden = cx.module("mlp", |cx| {
            let mut x = cx.linear("fc1", &hidden, 4 * channels, true);
            x = x.gelu();
            cx.linear("fc2", &x, channels, true)
        });
        hidden = hidden.add(&residual);
        std::iter::once(hidden).chain(weights).collect()
    }

    pub(super) fn rolled(self, x: &Tensor) -> Tensor {
        if self.shifted { x.roll() } else { x.clone() }
    }

    /// `get_attn_mask`: which tokens of a window were neighbours before the shift.
    pub(super) fn attention_mask(self, hidden: &Tensor) -> Tensor {
        let (n, window, dtype) = (hidden.size(1), self.window, hidden.dtype());
        let line = |op, dtype| hidden.constant(op, &[n], dtype);
        let indices = (line("arange", DType::I64), line("arange", DType::I64));
        let at_least = || {
            let from = line("ge", DType::Bool);
            from.pipe(|_| line("to", DType::I64))
        };
        let region = || {
            let both = (at_least(), at_least());
            let sum = line("add", DType::I64);
            drop(both);
            sum
        };
        let regions = (region(), region());
        let image_mask = {
            let scaled = line("mul", DType::I64);
            let sum = hidden.constant("add", &[1, n, n, 1], DType::I64);
            drop(scaled);
            sum.pipe(|_| hidden.constant("to", &[1, n, n, 1], dtype))
        };
        let windows = window_partition(&image_mask, window);
        let area = window * window;
        let shape = [windows.size(0), area, area];
        let make = |op, dtype| hidden.constant(op, &shape, dtype);
        let differences = make("sub", dtype);
        let first = make("ne", DType::Bool).pipe(|_| make("masked_fill", dtype));
        let second = make("eq", DType::Bool).pipe(|_| make("masked_fill", dtype));
        drop((first, differences, windows, image_mask, regions, indices));
        second
    }

    fn attention(self, cx: &Cx, x: &Tensor, mask: Option<&Tensor>) -> (Tensor, Option<Tensor>) {
        let width = x.size(2);
        let [q, k, v] = ["q_proj", "k_proj", "v_proj"]
            .map(|name| heads(&cx.linear(name, x, width, true), self.heads));
        let start = cx.tape.construction_point();
        let bias = cx.module("relative_position_bias", |cx| {
            self.relative_position_bias(cx)
        });
        let biased = cx.tape.construction_point();
        let area = x.size(1);
        let (combined, _wide) = match mask {
            None => (bias.clone(), None),
            Some(mask) => {
                let (count, windows) = (x.size(0), mask.size(0));
                let wide = mask
                    .unsqueeze(1)
                    .unsqueeze(0)
                    .expand(&[count / windows.max(1), windows, 1, area, area])
                    .reshape(&[count, 1, area, area]);
                (bias.add(&wide), Some(wide))
            }
        };
        let combined = AttentionMask::Given(combined);
        let eager = Eager { in_fp32: true };
        let (mut out, weights) = attend(cx, [&q, &k, &v], &combined, 0.0, eager);
        out = out.reshape(&[x.size(0), area, width]);
        out = cx.linear("o_proj", &out, width, true);
        cx.tape.construct_here(start, biased);
        (out, weights)
    }

    /// `SwinRelativePositionBias`.
    fn relative_position_bias(self, cx: &Cx) -> Tensor {
        let (reach, area) = (2 * self.window - 1, self.window * self.window);
        let table = cx.param("relative_position_bias_table", [reach * reach, self.heads]);
        let index = cx.buffer("relative_position_index", [area * area], DType::I64);
        let values = table.tensor().rows(&index);
        values
            .view(&[area, area, self.heads])
            .permute(&[2, 0, 1])
            .contiguous()
            .unsqueeze(0)
    }
}
