//! Swin: attention within windows that shift from layer to layer (transformers/models/swin/modeling_swin.py).

use std::rc::Rc;

use super::attention::{Eager, attend, heads};
use super::vit::{images_and_labels, patches};
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::scenario::Data;
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

#[derive(Clone, Debug)]
struct Swin {
    embed: u64,
    depths: Vec<u64>,
    heads: Vec<u64>,
    window: u64,
    image: u64,
    patch: u64,
    classes: u64,
}

/// One layer's place in the network.
#[derive(Clone, Copy, Debug)]
struct Layer {
    heads: u64,
    side: u64,
    window: u64,
    shifted: bool,
    drops_paths: bool,
}

pub fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let (depths, heads) = (sizes.list("depths")?, sizes.list("heads")?);
    if depths.len() != heads.len() {
        return Err(ModelError::MismatchedLists {
            names: "`depths` and `heads`",
            expected: "one of each for every stage",
        });
    }
    Ok(Box::new(Swin {
        embed: sizes.need("embed")?,
        depths: depths.to_vec(),
        heads: heads.iter().map(|&n| n.max(1)).collect(),
        window: sizes.or("window", 7).max(1),
        image: sizes.or("img", 224),
        patch: sizes.or("patch", 4).max(1),
        classes: sizes.or("classes", 1000),
    }))
}

impl Net for Swin {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        images_and_labels(cx, data, self.image)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, labels] = batch else {
            return Output::empty(cx);
        };
        let (_sequence, pooled) = cx.within("swin", |cx| self.model(cx, image));
        let logits = cx.linear("classifier", &pooled, self.classes, true);
        let loss = cx.within("loss", |_| logits.cross_entropy(labels));
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl Swin {
    fn model(&self, cx: &Cx, image: &Tensor) -> (Tensor, Tensor) {
        let embedded = cx.within("embeddings", |cx| {
            let embedded = cx.within("patch_embeddings", |cx| {
                patches(cx, "projection", image, self.embed, self.patch)
            });
            cx.layer_norm("norm", &embedded)
        });
        let (stages, this) = (self.depths.len(), self.clone());
        let last = cx.within("encoder", |cx| {
            one_after_another(
                cx,
                ("layers", stages as u64),
                &embedded,
                move |cx, input, i| this.stage(cx, input, i),
            )
        });
        // The encoder's output is held to the end.
        let encoded = last.into_iter().next().unwrap_or(embedded);
        let sequence = cx.layer_norm("layernorm", &encoded);
        // `AdaptiveAvgPool1d(1)` pools a plane of one row.
        let pooled = sequence
            .transpose(1, 2)
            .unsqueeze(2)
            .adaptive_avg_pool2d(1)
            .squeeze(2)
            .squeeze(2);
        (sequence, pooled)
    }

    /// The hidden states after a stage, the same as a grid, and the last probabilities where there are any.
    fn stage(&self, cx: &Cx, input: &Tensor, i: usize) -> Vec<Tensor> {
        let Some(&depth) = self.depths.get(i) else {
            return Vec::new();
        };
        let before: u64 = self.depths.iter().take(i).sum();
        let side = (0..i).fold(self.image / self.patch, |side, _| side.div_ceil(2));
        let heads = self.heads.get(i).copied().unwrap_or(1);
        let window = self.window.min(side).max(1);
        let shifts = side > self.window;
        let mut state = one_after_another(cx, ("blocks", depth), input, move |cx, input, block| {
            let layer = Layer {
                heads,
                side,
                window,
                shifted: shifts && block % 2 == 1,
                drops_paths: before + block as u64 > 0,
            };
            layer.run(cx, input)
        });
        let Some(hidden) = state.first().cloned() else {
            return state;
        };
        let merged = if i + 1 < self.depths.len() {
            cx.within("downsample", |cx| merge_patches(cx, &hidden, side))
        } else {
            hidden
        };
        let side = if i + 1 < self.depths.len() {
            side.div_ceil(2)
        } else {
            side
        };
        let (b, channels) = (merged.size(0), merged.size(2));
        let grid = merged
            .view(&[b, side, side, channels])
            .permute(&[0, 3, 1, 2])
            .contiguous();
        let mut out = vec![merged, grid];
        out.extend(state.drain(1..));
        out
    }
}

impl Layer {
    fn run(self, cx: &Cx, input: &Tensor) -> Vec<Tensor> {
        let Self { side, window, .. } = self;
        let (b, channels) = (input.size(0), input.size(2));
        let padded = side.next_multiple_of(window);
        // The constructor makes the attention before the norms.
        let start = cx.tape.made();
        let mut hidden = cx.layer_norm("layernorm_before", input);
        let normed = cx.tape.made();
        hidden = hidden.view(&[b, side, side, channels]);
        hidden = hidden.pad_to(&[b, padded, padded, channels]);
        let windows = {
            let shifted = self.rolled(&hidden);
            partitioned(&shifted, window)
        };
        let windows = windows.view(&[windows.size(0), window * window, channels]);
        let mask = self.shifted.then(|| self.mask(&hidden));
        let (attended, weights) = cx.within("attention", |cx| {
            self.attention(cx, &windows, mask.as_ref())
        });
        cx.tape.make_now(start, normed);
        let mut back = {
            let count = attended.size(0);
            attended.view(&[count, window, window, channels])
        };
        back = self.rolled(&reversed(&back, window, padded));
        if padded > side {
            back = back.narrow(1, side).narrow(2, side).contiguous();
        }
        back = back.view(&[b, side * side, channels]);
        hidden = self.path(&back).then(|path| input.add(path));
        let residual = hidden.clone();
        hidden = cx.layer_norm("layernorm_after", &hidden);
        hidden = cx.within("mlp", |cx| {
            let mut x = cx.linear("fc1", &hidden, 4 * channels, true);
            x = x.gelu();
            cx.linear("fc2", &x, channels, true)
        });
        hidden = hidden.add(&residual);
        std::iter::once(hidden).chain(weights).collect()
    }

    fn rolled(self, x: &Tensor) -> Tensor {
        if self.shifted { x.roll() } else { x.clone() }
    }

    /// `SwinDropPath`: one number a sample.
    fn path(self, x: &Tensor) -> Tensor {
        if !self.drops_paths || x.tape().evaluating() {
            return x.clone();
        }
        let shape = [x.size(0), 1, 1];
        let noise = x.constant("rand", &shape, x.dtype());
        let sum = x.constant("add", &shape, x.dtype());
        let kept = x.constant("floor", &shape, x.dtype());
        drop((noise, sum));
        let scaled = x.scale();
        scaled.mul(&kept)
    }

    /// `get_attn_mask`: which parts of a window belong together after a shift.
    fn mask(self, hidden: &Tensor) -> Tensor {
        let (n, window, dtype) = (hidden.size(1), self.window, hidden.dtype());
        let line = |op, dtype| hidden.constant(op, &[n], dtype);
        let indices = (line("arange", DType::I64), line("arange", DType::I64));
        let at_least = || {
            let from = line("ge", DType::Bool);
            from.then(|_| line("to", DType::I64))
        };
        let region = || {
            let both = (at_least(), at_least());
            let sum = line("add", DType::I64);
            drop(both);
            sum
        };
        let regions = (region(), region());
        let image = {
            let scaled = line("mul", DType::I64);
            let sum = hidden.constant("add", &[1, n, n, 1], DType::I64);
            drop(scaled);
            sum.then(|_| hidden.constant("to", &[1, n, n, 1], dtype))
        };
        let parts = partitioned(&image, window);
        let area = window * window;
        let shape = [parts.size(0), area, area];
        let make = |op, dtype| hidden.constant(op, &shape, dtype);
        let differences = make("sub", dtype);
        let first = make("ne", DType::Bool).then(|_| make("masked_fill", dtype));
        let second = make("eq", DType::Bool).then(|_| make("masked_fill", dtype));
        drop((first, differences, parts, image, regions, indices));
        second
    }

    fn attention(self, cx: &Cx, x: &Tensor, mask: Option<&Tensor>) -> (Tensor, Option<Tensor>) {
        let width = x.size(2);
        let [q, k, v] = ["q_proj", "k_proj", "v_proj"]
            .map(|name| heads(&cx.linear(name, x, width, true), self.heads));
        let start = cx.tape.made();
        let bias = cx.within("relative_position_bias", |cx| self.bias(cx));
        let biased = cx.tape.made();
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
        let form = Eager { in_fp32: true };
        let (mut out, weights) = attend(cx, [&q, &k, &v], &combined, 0.0, form);
        out = out.reshape(&[x.size(0), area, width]);
        out = cx.linear("o_proj", &out, width, true);
        cx.tape.make_now(start, biased);
        (out, weights)
    }

    /// `SwinRelativePositionBias`.
    fn bias(self, cx: &Cx) -> Tensor {
        let (reach, area) = (2 * self.window - 1, self.window * self.window);
        let table = cx.param("relative_position_bias_table", [reach * reach, self.heads]);
        let index = cx.buffer("relative_position_index", [area * area], DType::I64);
        let looked_up = table.tensor().rows(&index);
        looked_up
            .view(&[area, area, self.heads])
            .permute(&[2, 0, 1])
            .contiguous()
            .unsqueeze(0)
    }
}

/// Layers whose first result is the next one's input. What else each returns keeps its name until the next returns, and
/// is none of that one's input.
fn one_after_another(
    cx: &Cx,
    (name, count): (&'static str, u64),
    input: &Tensor,
    layer: impl Fn(&Cx, &Tensor, usize) -> Vec<Tensor> + 'static,
) -> Vec<Tensor> {
    let layer = Rc::new(layer);
    let mut results = vec![input.clone()];
    for i in 0..count as usize {
        let state = results.iter().take(1).cloned().collect();
        let layer = layer.clone();
        results = cx.layer(name, i, state, move |cx, state| match state.first() {
            Some(input) => layer(cx, input, i),
            None => Vec::new(),
        });
    }
    results
}

/// `window_partition`.
fn partitioned(x: &Tensor, window: u64) -> Tensor {
    let (b, h, w, c) = (x.size(0), x.size(1), x.size(2), x.size(3));
    let (down, across) = (h / window, w / window);
    x.view(&[b, down, window, across, window, c])
        .transpose(2, 3)
        .contiguous()
        .view(&[b * down * across, window, window, c])
}

/// `window_reverse`.
fn reversed(windows: &Tensor, window: u64, side: u64) -> Tensor {
    let (n, c) = (side / window, windows.size(3));
    let b = windows.size(0) / (n * n).max(1);
    windows
        .view(&[b, n, n, window, window, c])
        .transpose(2, 3)
        .contiguous()
        .view(&[b, side, side, c])
}

/// `SwinPatchMerging`: four neighbours become one with twice the channels.
fn merge_patches(cx: &Cx, x: &Tensor, side: u64) -> Tensor {
    let (b, c) = (x.size(0), x.size(2));
    let mut grid = x.view(&[b, side, side, c]);
    let even = side.next_multiple_of(2);
    if even > side {
        grid = grid.pad_to(&[b, even, even, c]);
    }
    let mut merged = {
        let [first, rest @ ..] = [0, 1, 2, 3].map(|_: u8| grid.every_second(1).every_second(2));
        Tensor::cat(&first, &rest.each_ref(), -1)
    };
    merged = merged.view(&[b, (even / 2) * (even / 2), 4 * c]);
    let start = cx.tape.made();
    merged = cx.layer_norm("norm", &merged);
    let normed = cx.tape.made();
    merged = cx.linear("reduction", &merged, 2 * c, false);
    cx.tape.make_now(start, normed);
    merged
}
