//! MaxViT as TensorFlow's weights run in timm (timm/models/maxxvit.py): blocks of an inverted convolution, attention within windows
//! and attention over a grid. Windows are a 32nd of the picture's side, and tables of relative positions are as large as they.

use super::layers::index_name;
use super::{ImageModel, classifier};
use crate::nets::{Cx, ModelError, Net, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::{AttentionMask, Conv};

#[derive(Clone, Debug)]
struct MaxVit {
    depths: Vec<u64>,
    widths: Vec<u64>,
    stem: u64,
    /// `head_hidden_size`.
    head: u64,
    /// Places along a window's side, and along a grid's.
    window: u64,
}

/// `partition_ratio`.
const RATIO: u64 = 32;
/// `dim_head`.
const HEAD: u64 = 32;

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let (depths, widths) = (sizes.list("depths")?, sizes.list("dims")?);
    if depths.len() != 4 || widths.len() != 4 {
        return Err(ModelError::MismatchedLists {
            names: "`depths` and `dims`",
            expected: "one of each for four stages",
        });
    }
    let image = sizes.or("img", 224);
    if image == 0 || !image.is_multiple_of(RATIO) {
        let (name, value, of) = ("img", image, RATIO);
        return Err(ModelError::NoMultiple { name, value, of });
    }
    let model = MaxVit {
        depths: depths.to_vec(),
        widths: widths.to_vec(),
        stem: sizes.or("stem", 64),
        head: sizes.or("head", 512),
        window: image / RATIO,
    };
    Ok(classifier(sizes, model))
}

/// Whether windows or places as far apart attend to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Partition {
    Window,
    Grid,
}

impl ImageModel for MaxVit {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let three = Conv::stride(1).padded(1);
        let mut x = cx.module("stem", |cx| {
            let mut x = {
                let padded = image.padded_plane_at_end([1, 1]);
                cx.conv2d("conv1", &padded, self.stem, 3, Conv::stride(2), true)
            };
            x = cx.batch_norm("norm1", &x);
            x = x.gelu_tanh_saving_input();
            cx.conv2d("conv2", &x, self.stem, 3, three, true)
        });
        x = cx.module("stages", |cx| {
            let mut x = x.clone();
            let stages = self.depths.iter().zip(&self.widths).enumerate();
            for (i, (depth, width)) in stages {
                let (width, window) = (*width, self.window);
                x = cx.module(index_name(i), |cx| {
                    cx.module("blocks", |cx| {
                        cx.blocks(*depth as usize, &x, move |cx, x, i| {
                            block(cx, x, width, i == 0, window)
                        })
                    })
                });
            }
            x
        });
        x = x.adaptive_avg_pool2d(1);
        cx.module("head", |cx| {
            let mut x = x.permute(&[0, 2, 3, 1]);
            x = cx.layer_norm("norm", &x);
            x = x.permute(&[0, 3, 1, 2]).flattened_from_one();
            x = cx.module("pre_logits", |cx| {
                cx.linear("fc", &x, self.head, true).pipe(Tensor::tanh)
            });
            cx.linear("fc", &x, classes, true)
        })
    }
}

/// `MaxxVitBlock.forward`.
fn block(cx: &Cx, input: &Tensor, width: u64, halves: bool, window: u64) -> Tensor {
    let mut x = cx.module("conv", |cx| convolutions(cx, input, width, halves));
    x = x.permute(&[0, 2, 3, 1]);
    x = cx.module("attn_block", |cx| {
        attention_layer(cx, &x, Partition::Window, window)
    });
    x = cx.module("attn_grid", |cx| {
        attention_layer(cx, &x, Partition::Grid, window)
    });
    x.permute(&[0, 3, 1, 2])
}

/// `MbConvBlock.forward`.
fn convolutions(cx: &Cx, input: &Tensor, width: u64, halves: bool) -> Tensor {
    let (one, inner) = (Conv::stride(1), width.saturating_mul(4));
    let shortcut = if halves {
        cx.module("shortcut", |cx| {
            // Padded even where nothing is to be added.
            let copy = input.padded_plane_at_end([0, 0]);
            let x = copy.pipe(|copy| copy.avg_pool2d(2, Conv::stride(2)));
            if input.size(1) == width {
                x
            } else {
                cx.conv2d("expand", &x, width, 1, one, true)
            }
        })
    } else {
        input.clone()
    };
    let mut x = cx.batch_norm("pre_norm", input);
    x = cx.conv2d("conv1_1x1", &x, inner, 1, one, false);
    x = cx.batch_norm("norm1", &x);
    x = x.gelu_tanh_saving_input();
    x = if halves {
        let padded = x.padded_plane_at_end([1, 1]);
        let conv = Conv::stride(2).grouped(inner);
        cx.conv2d("conv2_kxk", &padded, inner, 3, conv, false)
    } else {
        let conv = Conv::stride(1).padded(1).grouped(inner);
        cx.conv2d("conv2_kxk", &x, inner, 3, conv, false)
    };
    x = cx.batch_norm("norm2", &x);
    x = x.gelu_tanh_saving_input();
    x = cx.module("se", |cx| {
        let mut gate = x.mean(&[2, 3]);
        gate = cx.conv2d("fc1", &gate, width / 4, 1, one, true);
        gate = gate.silu_();
        gate = cx.conv2d("fc2", &gate, inner, 1, one, true);
        gate = gate.sigmoid();
        x.mul(&gate)
    });
    x = cx.conv2d("conv3_1x1", &x, width, 1, one, true);
    x.add(&shortcut)
}

/// `PartitionAttentionCl.forward`.
fn attention_layer(cx: &Cx, input: &Tensor, partition: Partition, window: u64) -> Tensor {
    let width = input.size(3);
    let x = {
        let normed = cx.layer_norm("norm1", input);
        let parts = parted(&normed, partition, window);
        let attended = cx.module("attn", |cx| parts.pipe(|x| attention(cx, x, window)));
        let whole = joined(&attended, partition, window, input);
        drop((normed, attended));
        input.add(&whole)
    };
    let normed = cx.layer_norm("norm2", &x);
    let out = cx.module("mlp", |cx| {
        let inner = cx.linear("fc1", &normed, width.saturating_mul(4), true);
        let inner = inner.pipe(Tensor::gelu_tanh_saving_input);
        cx.linear("fc2", &inner, width, true)
    });
    drop(normed);
    x.add(&out)
}

/// `window_partition` and `grid_partition`.
fn parted(x: &Tensor, partition: Partition, window: u64) -> Tensor {
    let [n, down, across, width] = [0, 1, 2, 3].map(|axis| x.size(axis));
    let [rows, columns] = [down, across].map(|side| side / window.max(1));
    let wide = match partition {
        Partition::Window => x
            .reshape(&[n, rows, window, columns, window, width])
            .permute(&[0, 1, 3, 2, 4, 5]),
        Partition::Grid => x
            .reshape(&[n, window, rows, window, columns, width])
            .permute(&[0, 2, 4, 1, 3, 5]),
    };
    let count = n.saturating_mul(rows).saturating_mul(columns);
    let parts = wide.contiguous();
    parts.reshape(&[count, window, window, width])
}

/// `window_reverse` and `grid_reverse`.
fn joined(parts: &Tensor, partition: Partition, window: u64, like: &Tensor) -> Tensor {
    let [n, down, across, width] = [0, 1, 2, 3].map(|axis| like.size(axis));
    let [rows, columns] = [down, across].map(|side| side / window.max(1));
    let wide = parts.reshape(&[n, rows, columns, window, window, width]);
    let wide = match partition {
        Partition::Window => wide.permute(&[0, 1, 3, 2, 4, 5]),
        Partition::Grid => wide.permute(&[0, 3, 1, 4, 2, 5]),
    };
    wide.contiguous().reshape(&[n, down, across, width])
}

/// `AttentionCl.forward` with `RelPosBiasTf`, which finds its places by products with one-hot tables.
fn attention(cx: &Cx, x: &Tensor, window: u64) -> Tensor {
    let (n, width) = (x.size(0), x.size(3));
    let (count, heads) = (window.saturating_mul(window), (width / HEAD).max(1));
    let qkv = cx
        .linear("qkv", x, width.saturating_mul(3), true)
        .reshape(&[n, count, 3, heads, width / heads])
        .transpose(1, 3);
    let parts = qkv.unbind_at(2);
    drop(qkv);
    let [q, k, v] = &parts[..] else {
        return x.clone();
    };
    let bias = cx.module("rel_pos", |cx| {
        let reach = window.saturating_mul(2).saturating_sub(1);
        let shape = [heads, reach, reach];
        let table = cx.param("relative_position_bias_table", shape).tensor();
        let lookup = |name| cx.buffer(name, [window, window, reach], cx.env.weights);
        let [down, across] = [lookup("height_lookup"), lookup("width_lookup")];
        let rows = table.einsum("nhw", &down, "ixh", "nixw");
        let all = rows.einsum("nixw", &across, "jyw", "nijxy");
        drop(rows);
        all.reshape(&[heads, count, count]).unsqueeze(0)
    });
    let mut out = q.attention(k, v, &AttentionMask::Given(bias.clone()), 0.0);
    out = out.transpose(1, 2).reshape(x.shape());
    out = cx.linear("proj", &out, width, true);
    drop(bias);
    out
}
