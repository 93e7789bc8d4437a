//! TinyViT as a classifier (timm/models/tiny_vit.py): images stay grids, and attention is the fused kernel.

use super::{attention_biases, bottleneck, conv_norm, feed_forward};
use crate::nets::vision::{ImageModel, classifier};
use crate::nets::{Cx, ModelError, Net, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;
use crate::tape::ops::Conv;
use headroom_base::units::RoundUp;

#[derive(Clone, Debug)]
struct Timm {
    depths: Vec<u64>,
    dims: Vec<u64>,
    heads: Vec<u64>,
    windows: Vec<u64>,
    /// The rate of the last block's drop path (`drop_path_rate`).
    drop_path_rate: f64,
}

#[derive(Clone, Copy, Debug)]
struct TinyVitBlock {
    heads: u64,
    window: u64,
    drop_path: f64,
}

/// A network of the catalogue: heads and windows are those of the stages after the first.
pub(crate) fn from_sizes(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let list = |name| sizes.list(name).map(<[u64]>::to_vec);
    let body = Timm {
        depths: list("depths")?,
        dims: list("dims")?,
        heads: list("heads")?,
        windows: list("window")?,
        drop_path_rate: sizes.or("drop_path_percent", 0) as f64 / 100.0,
    };
    let stages = body.depths.len();
    if stages == 0 || body.dims.len() != stages || body.heads.len() + 1 != stages {
        return Err(ModelError::MismatchedLists {
            names: "`depths`, `dims` and `heads`",
            expected: "one of each for every stage, and no heads for the first",
        });
    }
    Ok(classifier(sizes, body))
}

impl ImageModel for Timm {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let first = self.dims.first().copied().unwrap_or(1);
        let mut x = cx.module("patch_embed", |cx| {
            let mut x = conv_norm(cx, "conv1", image, first / 2, 3, Conv::stride(2));
            x = x.gelu();
            conv_norm(cx, "conv2", &x, first, 3, Conv::stride(2))
        });
        let this = self.clone();
        x = cx.module("stages", |cx| {
            cx.blocks(self.depths.len(), &x, move |cx, x, i| this.stage(cx, x, i))
        });
        cx.module("head", |cx| {
            let mut x = x.adaptive_avg_pool2d(1);
            x = x.permute(&[0, 2, 3, 1]);
            x = cx.layer_norm("norm", &x);
            x = x.permute(&[0, 3, 1, 2]);
            x = x.flattened_from_one();
            cx.linear("fc", &x, classes, true)
        })
    }
}

impl Timm {
    fn stage(&self, cx: &Cx, input: &Tensor, i: usize) -> Tensor {
        let at = |list: &[u64], i: usize| list.get(i).copied().unwrap_or(1).max(1);
        let total: u64 = self.depths.iter().sum();
        let before: u64 = self.depths.iter().take(i).sum();
        let mut x = input.clone();
        if i > 0 {
            let out = at(&self.dims, i);
            x = cx.module("downsample", |cx| bottleneck(cx, &x, [out, out], 2));
            x = x.permute(&[0, 2, 3, 1]);
        }
        // `nn.Sequential` holds its input.
        let sequential_input = x.clone();
        for j in 0..at(&self.depths, i) {
            let drop_path =
                self.drop_path_rate * (before + j) as f64 / total.saturating_sub(1).max(1) as f64;
            x = cx.list_item("blocks", j as usize, |cx| {
                if i == 0 {
                    return mb_conv(cx, &x, drop_path);
                }
                let block = TinyVitBlock {
                    heads: at(&self.heads, i - 1),
                    window: at(&self.windows, i - 1),
                    drop_path,
                };
                block.forward(cx, &x)
            });
        }
        drop(sequential_input);
        if i > 0 { x.permute(&[0, 3, 1, 2]) } else { x }
    }
}

/// `MBConv`.
fn mb_conv(cx: &Cx, input: &Tensor, drop_path: f64) -> Tensor {
    let width = input.size(1);
    let mut x = bottleneck(cx, input, [4 * width, width], 1);
    x = x.drop_path(drop_path);
    x = x.add_(input);
    x.gelu()
}

impl TinyVitBlock {
    /// `TinyVitBlock`, on grids `[B, H, W, C]`.
    fn forward(self, cx: &Cx, input: &Tensor) -> Tensor {
        let Self {
            window, drop_path, ..
        } = self;
        let (b, h, w, width) = (input.size(0), input.size(1), input.size(2), input.size(3));
        let mut x = input.clone();
        if h == window && w == window {
            x = x.reshape(&[b, h * w, width]);
            x = cx.module("attn", |cx| self.attention(cx, &x));
            x = x.view(&[b, h, w, width]);
        } else {
            let (high, wide) = (h.round_up(window), w.round_up(window));
            let (down, across) = (high / window, wide / window);
            if (high, wide) != (h, w) {
                x = x.pad_to(&[b, high, wide, width]);
            }
            x = x
                .view(&[b, down, window, across, window, width])
                .transpose(2, 3)
                .reshape(&[b * down * across, window * window, width]);
            x = cx.module("attn", |cx| self.attention(cx, &x));
            x = x
                .view(&[b, down, across, window, window, width])
                .transpose(2, 3)
                .reshape(&[b, high, wide, width]);
            if (high, wide) != (h, w) {
                x = x.narrow(1, h).narrow(2, w).contiguous();
            }
        }
        x = x.drop_path(drop_path).pipe(|path| input.add(path));
        x = x.permute(&[0, 3, 1, 2]);
        let start = cx.tape.construction_point();
        x = conv_norm(
            cx,
            "local_conv",
            &x,
            width,
            3,
            Conv::default().grouped(width),
        );
        let convolved = cx.tape.construction_point();
        x = x.reshape(&[b, width, h * w]).transpose(1, 2);
        let path = cx
            .module("mlp", |cx| feed_forward(cx, &x))
            .pipe(|fed| fed.drop_path(drop_path));
        // The constructor makes the convolution last.
        cx.tape.construct_here(start, convolved);
        x = x.add(&path);
        drop(path);
        x.view(&[b, h, w, width])
    }

    fn attention(self, cx: &Cx, input: &Tensor) -> Tensor {
        let (rows, n, width) = (input.size(0), input.size(1), input.size(2));
        let d = width / self.heads;
        let bias = AttentionMask::Given(attention_biases(cx, self.heads, self.window).unsqueeze(0));
        let mut x = cx.layer_norm("norm", input);
        let qkv = cx.linear("qkv", &x, 3 * width, true);
        let parts = qkv.view(&[rows, n, self.heads, 3 * d]).split(&[d, d, d], 3);
        let [q, k, v] = parts.as_slice() else {
            return x;
        };
        let [q, k, v] = [q, k, v].map(|part| part.permute(&[0, 2, 1, 3]));
        x = q.attention(&k, &v, &bias, 0.0);
        x = x.transpose(1, 2).reshape(&[rows, n, width]);
        cx.linear("proj", &x, width, true)
    }
}
