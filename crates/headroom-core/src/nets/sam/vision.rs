//! `SamVisionEncoder`: a ViT on grids that attends within windows in most layers, with relative positions by row and by
//! column, and a neck of convolutions.

use crate::nets::decoder::LayerSet;
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_base::units::RoundUp;
use headroom_scenario::Attention;

#[derive(Clone, Debug)]
pub(crate) struct Encoder {
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    pub image: u64,
    patch: u64,
    window: u64,
    neck: u64,
    /// Layers that attend to the whole image (`global_attn_indexes`).
    global: Vec<u64>,
}

impl Encoder {
    pub(crate) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        let hidden = sizes.need("hidden")?;
        Ok(Self {
            layers: sizes.need("layers")?,
            hidden,
            heads: sizes.need("heads")?.max(1),
            ffn: sizes.or("ffn", 4 * hidden),
            image: sizes.or("img", 1024),
            patch: sizes.or("patch", 16).max(1),
            window: sizes.or("window", 14).max(1),
            neck: sizes.or("neck", 256),
            global: LayerSet::list(sizes, "global_layers", sizes.need("layers")?)?,
        })
    }

    pub(crate) fn side(&self) -> u64 {
        self.image / self.patch
    }

    /// `interpolate_pos_encoding` of DeepSeek-OCR 2: the table resized to a picture of another size.
    fn places(table: &Tensor, side: u64) -> Tensor {
        if table.size(1) == side {
            return table.clone();
        }
        let plane = table.permute(&[0, 3, 1, 2]);
        let resized = plane.to(DType::F32).interpolate(side, side);
        resized.to(table.dtype()).permute(&[0, 2, 3, 1])
    }

    /// Features `[B, neck, side, side]`.
    pub(crate) fn encode(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let (side, hidden) = (self.side(), self.hidden);
        let positions = cx.param("pos_embed", [1, side, side, hidden]);
        let mut x = cx.module("patch_embed", |cx| {
            let conv = Conv::stride(self.patch);
            let grid = cx.conv2d("projection", image, hidden, self.patch, conv, true);
            cx.asks_with_adapters(grid.permute(&[0, 2, 3, 1]))
        });
        x = x.add(&Self::places(&positions.tensor(), x.size(1)));
        let this = self.clone();
        let x = cx.stack("layers", self.layers, x, move |cx, x, i| {
            this.layer(cx, x, i)
        });
        cx.module("neck", |cx| {
            let mut x = x.permute(&[0, 3, 1, 2]);
            x = cx.conv2d("conv1", &x, self.neck, 1, Conv::default(), false);
            x = layer_norm_2d(cx, "layer_norm1", &x);
            x = cx.conv2d("conv2", &x, self.neck, 3, Conv::default().padded(1), false);
            layer_norm_2d(cx, "layer_norm2", &x)
        })
    }

    fn layer(&self, cx: &Cx, input: &Tensor, i: usize) -> Tensor {
        let windowed = !self.global.contains(&(i as u64));
        let (h, w) = (input.size(1), input.size(2));
        let mut x = cx.layer_norm("layer_norm1", input);
        if windowed {
            x = window_partition(&x, self.window);
        }
        let (out, _weights) = cx.module("attn", |cx| self.attention(cx, &x));
        x = out;
        if windowed {
            x = window_unpartition(&x, self.window, [h, w]);
        }
        x = input.add(&x);
        let normed = cx.layer_norm("layer_norm2", &x);
        let mlp_output = cx.module("mlp", |cx| {
            let mut y = cx.linear("lin1", &normed, self.ffn, true);
            y = y.gelu();
            cx.linear("lin2", &y, self.hidden, true)
        });
        x.add(&mlp_output)
    }

    fn attention(&self, cx: &Cx, x: &Tensor) -> (Tensor, Option<Tensor>) {
        let (b, h, w) = (x.size(0), x.size(1), x.size(2));
        let (heads, d) = (self.heads, self.hidden / self.heads);
        let tables = [("rel_pos_h", h), ("rel_pos_w", w)]
            .map(|(name, n)| cx.param(name, [reach(n), d]).tensor());
        let qkv = cx
            .linear("qkv", x, 3 * self.hidden, true)
            .reshape(&[b, h * w, 3, heads, d])
            .permute(&[2, 0, 3, 1, 4]);
        let parts = qkv.reshape(&[3, b * heads, h * w, d]).unbind();
        let [q, k, v] = parts.as_slice() else {
            return (x.clone(), None);
        };
        let (mut out, _bias, weights) = match cx.env.training.attention {
            Attention::Eager => {
                let mut weights = q.mul_scalar().pipe(|q| q.matmul(&k.transpose(1, 2)));
                let bias = decomposed_rel_pos(q, &tables, [h, w]).reshape(weights.shape());
                weights = weights.add(&bias);
                weights = weights
                    .softmax(Some(DType::F32))
                    .pipe(|weights| weights.to(q.dtype()));
                let dropped = cx.dropout(&weights, 0.0);
                let out = dropped.matmul(v).reshape(&[b, heads, h, w, d]);
                (out, bias, Some((weights, dropped)))
            }
            _ => {
                let bias =
                    decomposed_rel_pos(q, &tables, [h, w]).reshape(&[b, heads, h * w, h * w]);
                let [q, k, v] = [q, k, v].map(|part| part.view(&[b, heads, h * w, d]));
                let mask = AttentionMask::Given(bias.clone());
                let out = q.attention(&k, &v, &mask, 0.0);
                (out.view(&[b, heads, h, w, d]), bias, None)
            }
        };
        out = out
            .permute(&[0, 2, 3, 1, 4])
            .reshape(&[b, h, w, self.hidden]);
        out = cx.linear("proj", &out, self.hidden, true);
        (out, weights.map(|(weights, _)| weights))
    }
}

/// `get_decomposed_rel_pos`: `[B, h, w, h, w]`.
fn decomposed_rel_pos(q: &Tensor, [down, across]: &[Tensor; 2], [h, w]: [u64; 2]) -> Tensor {
    let (b, d) = (q.size(0), q.size(-1));
    let down = rel_pos(down, h);
    let across = rel_pos(across, w);
    let grid = q.reshape(&[b, h, w, d]);
    // einsum "bhwc,hkc->bhwk", cast before anything is moved
    let cast = down.autocast();
    let rows = grid
        .permute(&[1, 0, 2, 3])
        .reshape(&[h, b * w, d])
        .pipe(|q| q.bmm(&cast.permute(&[0, 2, 1])))
        .view(&[h, b, w, h])
        .permute(&[1, 0, 2, 3]);
    drop(cast);
    // einsum "bhwc,wkc->bhwk"
    let cast = across.autocast();
    let columns = grid
        .permute(&[2, 0, 1, 3])
        .reshape(&[w, b * h, d])
        .pipe(|q| q.bmm(&cast.permute(&[0, 2, 1])))
        .view(&[w, b, h, w])
        .permute(&[1, 2, 0, 3]);
    drop(cast);
    let columns = columns.unsqueeze(3);
    // Spread first, so that the sum lies as its first operand does.
    let rows = rows.unsqueeze(4).expand(&[b, h, w, h, w]);
    rows.add(&columns)
}

/// Relative positions between `n` tokens in a row, signs and zero included.
fn reach(n: u64) -> u64 {
    (2 * n).saturating_sub(1)
}

/// `get_rel_pos`: the rows of a table for each pair of `n` positions, `[n, n, d]`. Its indices are made on the host.
fn rel_pos(table: &Tensor, n: u64) -> Tensor {
    let (rows, d) = (table.size(0), table.size(1));
    let stretched = table
        .reshape(&[1, rows, d])
        .transpose(1, 2)
        .interpolate_linear(reach(n));
    let rows = stretched.reshape(&[d, reach(n)]).permute(&[1, 0]);
    rows.rows_from_host(&[n, n])
}

/// `window_partition`.
pub(crate) fn window_partition(x: &Tensor, window: u64) -> Tensor {
    let (b, h, w, c) = (x.size(0), x.size(1), x.size(2), x.size(3));
    let (high, wide) = (h.round_up(window), w.round_up(window));
    let (down, across) = (high / window, wide / window);
    x.pad_to(&[b, high, wide, c])
        .reshape(&[b, down, window, across, window, c])
        .permute(&[0, 1, 3, 2, 4, 5])
        .contiguous()
        .reshape(&[b * down * across, window, window, c])
}

/// `window_unpartition`.
pub(crate) fn window_unpartition(x: &Tensor, window: u64, [h, w]: [u64; 2]) -> Tensor {
    let c = x.size(3);
    let (down, across) = (h.div_ceil(window), w.div_ceil(window));
    let b = x.size(0) / (down * across).max(1);
    let whole = x
        .reshape(&[b, down, across, window, window, c])
        .permute(&[0, 1, 3, 2, 4, 5])
        .contiguous()
        .reshape(&[b, down * window, across * window, c]);
    whole.narrow(1, h).narrow(2, w).contiguous()
}

/// `SamLayerNorm` with channels first.
pub(crate) fn layer_norm_2d(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    let mut x = x.permute(&[0, 2, 3, 1]);
    x = cx.layer_norm(name, &x);
    x.permute(&[0, 3, 1, 2])
}
