//! TinyViT as TinySAM's image encoder: inverted residuals, then attention in windows with a convolution in each block
//! (github.com/xinghaochen/TinySAM, `tinysam/modeling/tiny_vit_sam.py`); `timm` holds the same network as timm has it.

mod timm;

pub(crate) use timm::from_sizes;

use crate::nets::error::at_most;
use crate::nets::{Cx, ModelError, Region, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use headroom_base::units::RoundUp;

/// The encoder's stages: convolutions in the first, attention within windows in the others.
#[derive(Clone, Debug)]
pub struct TinyVit {
    /// The height and width of the input image in pixels.
    pub image: u64,
    widths: Vec<u64>,
    depths: Vec<u64>,
    heads: Vec<u64>,
    windows: Vec<u64>,
    classes: u64,
    neck: u64,
}

impl TinyVit {
    /// Reads the stages from the sizes `vit_depths`, `vit_dims`, `vit_heads` and `vit_windows`.
    pub fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        let list = |name| sizes.list(name).map(<[u64]>::to_vec);
        for depth in sizes.list("vit_depths")? {
            at_most("vit_depths", *depth, 1000)?;
        }
        Ok(Self {
            image: sizes.or("img", 1024),
            widths: list("vit_dims")?,
            depths: list("vit_depths")?,
            heads: list("vit_heads")?,
            windows: list("vit_windows")?,
            classes: sizes.or("vit_classes", 1000),
            neck: sizes.or("neck", 256),
        })
    }

    /// Features `[B, neck, side, side]`. The head of the classifier it once was is there and takes no part.
    pub fn encode(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let at = |list: &[u64], i: usize| list.get(i).copied().unwrap_or(1).max(1);
        let stages = self.widths.len();
        let mut x = cx.module("patch_embed", |cx| {
            let first = at(&self.widths, 0);
            cx.module("seq", |cx| {
                let mut x = conv_norm(cx, "0", image, first / 2, 3, Conv::stride(2));
                x = x.gelu();
                conv_norm(cx, "2", &x, first, 3, Conv::stride(2))
            })
        });
        let mut side = x.size(2);
        for stage in 0..stages {
            let next = (stage + 1 < stages).then(|| at(&self.widths, stage + 1));
            let (heads, window) = (at(&self.heads, stage), at(&self.windows, stage));
            x = cx.list_item("layers", stage, |cx| {
                for i in 0..at(&self.depths, stage) as usize {
                    let block = move |cx: &Cx, x: &Tensor| {
                        if stage == 0 {
                            mb_conv(cx, x)
                        } else {
                            tiny_vit_block(cx, x, side, heads, window)
                        }
                    };
                    x = cx.list_item("blocks", i, |cx| cx.unary_block(Region::Block, &x, block));
                }
                match next {
                    Some(next) => cx.module("downsample", |cx| patch_merging(cx, &x, side, next)),
                    None => x.clone(),
                }
            });
            // `PatchMerging` keeps the grid before the widths of last stages.
            if next.is_some_and(|next| !keeps_grid(next)) {
                side = side.div_ceil(2);
            }
        }
        let width = x.size(-1);
        cx.module("norm_head", |cx| {
            cx.param("weight", [width]);
            cx.param("bias", [width]);
        });
        if self.classes > 0 {
            cx.module("head", |cx| {
                cx.param("weight", [self.classes, width]);
                cx.param("bias", [self.classes]);
            });
        }
        x = x
            .view(&[x.size(0), side, side, width])
            .permute(&[0, 3, 1, 2]);
        cx.module("neck", |cx| {
            let plain = Conv::default();
            x = cx.conv2d("0", &x, self.neck, 1, plain, false);
            x = layer_norm_2d(cx, "1", &x);
            x = cx.conv2d("2", &x, self.neck, 3, plain.padded(1), false);
            layer_norm_2d(cx, "3", &x)
        })
    }
}

fn keeps_grid(width: u64) -> bool {
    matches!(width, 320 | 448 | 576)
}

/// `Conv2d_BN`.
fn conv_norm(cx: &Cx, name: &'static str, x: &Tensor, out: u64, kernel: u64, conv: Conv) -> Tensor {
    cx.module(name, |cx| {
        let conv = conv.padded(kernel / 2);
        let y = cx.conv2d("conv", x, out, kernel, conv, false);
        y.pipe(|y| cx.batch_norm("bn", y))
    })
}

/// `MBConv`: four times as wide inside.
fn mb_conv(cx: &Cx, input: &Tensor) -> Tensor {
    let width = input.size(1);
    let mut x = bottleneck(cx, input, [4 * width, width], 1);
    x = x.add_(input);
    x.gelu()
}

/// The three convolutions of `MBConv` and `PatchMerging`, the middle one over each channel by itself.
fn bottleneck(cx: &Cx, input: &Tensor, [inside, out]: [u64; 2], stride: u64) -> Tensor {
    let mut x = conv_norm(cx, "conv1", input, inside, 1, Conv::default());
    x = x.gelu();
    x = conv_norm(
        cx,
        "conv2",
        &x,
        inside,
        3,
        Conv::stride(stride).grouped(inside),
    );
    x = x.gelu();
    conv_norm(cx, "conv3", &x, out, 1, Conv::default())
}

/// `PatchMerging`: to rows `[B, L, C]` of the next width.
fn patch_merging(cx: &Cx, input: &Tensor, side: u64, out: u64) -> Tensor {
    let mut x = input.clone();
    if x.shape().len() == 3 {
        x = x
            .view(&[x.size(0), side, side, x.size(2)])
            .permute(&[0, 3, 1, 2]);
    }
    let stride = if keeps_grid(out) { 1 } else { 2 };
    x = bottleneck(cx, &x, [out, out], stride);
    let tokens = x.size(2) * x.size(3);
    x.view(&[x.size(0), out, tokens]).transpose(1, 2)
}

/// `TinyViTBlock`.
fn tiny_vit_block(cx: &Cx, input: &Tensor, side: u64, heads: u64, window: u64) -> Tensor {
    let (b, tokens, width) = (input.size(0), input.size(1), input.size(2));
    let mut x = input.clone();
    if side == window {
        x = cx.module("attn", |cx| attention(cx, &x, heads, window));
    } else {
        let whole = side.round_up(window);
        let count = whole / window;
        x = x.view(&[b, side, side, width]);
        if whole > side {
            x = x.pad_to(&[b, whole, whole, width]);
        }
        x = x
            .view(&[b, count, window, count, window, width])
            .transpose(2, 3)
            .reshape(&[b * count * count, window * window, width]);
        x = cx.module("attn", |cx| attention(cx, &x, heads, window));
        x = x
            .view(&[b, count, count, window, window, width])
            .transpose(2, 3)
            .reshape(&[b, whole, whole, width]);
        if whole > side {
            x = x.narrow(1, side).narrow(2, side).contiguous();
        }
        x = x.view(&[b, tokens, width]);
    }
    x = input.add(&x);
    x = x.transpose(1, 2).reshape(&[b, width, side, side]);
    x = conv_norm(
        cx,
        "local_conv",
        &x,
        width,
        3,
        Conv::default().grouped(width),
    );
    x = x.view(&[b, width, tokens]).transpose(1, 2);
    let mlp_output = cx.module("mlp", |cx| feed_forward(cx, &x));
    x.add(&mlp_output)
}

fn feed_forward(cx: &Cx, x: &Tensor) -> Tensor {
    let width = x.size(-1);
    let mut y = cx.layer_norm("norm", x);
    y = cx.linear("fc1", &y, 4 * width, true);
    y = y.gelu();
    cx.linear("fc2", &y, width, true)
}

/// `attention_biases`: a learned bias for each offset within a window, looked up for each pair of its tokens.
fn attention_biases(cx: &Cx, heads: u64, window: u64) -> Tensor {
    let area = window * window;
    let biases = cx.param("attention_biases", [heads, area]).tensor();
    let indices = cx.buffer("attention_bias_idxs", [area, area], DType::I64);
    biases.columns(&indices)
}

/// `Attention`, within windows.
fn attention(cx: &Cx, input: &Tensor, heads: u64, window: u64) -> Tensor {
    let (rows, n, width) = (input.size(0), input.size(1), input.size(2));
    let d = width / heads.max(1);
    let x = cx.layer_norm("norm", input);
    let qkv = cx.linear("qkv", &x, 3 * width, true);
    let parts = qkv.view(&[rows, n, heads, 3 * d]).split(&[d, d, d], 3);
    let [q, k, v] = parts.as_slice() else {
        return x;
    };
    let [q, k, v] = [q, k, v].map(|part| part.permute(&[0, 2, 1, 3]));
    let mut weights = {
        let scores = q.matmul(&k.transpose(2, 3)).pipe(Tensor::mul_scalar);
        let bias = attention_biases(cx, heads, window);
        scores.add(&bias)
    };
    weights = weights.softmax(None);
    let mixed = weights.matmul(&v).transpose(1, 2);
    let mixed = mixed.reshape(&[rows, n, width]);
    cx.linear("proj", &mixed, width, true)
}

/// `LayerNorm2d`, written out over the channels.
fn layer_norm_2d(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    cx.module(name, |cx| {
        let channels = x.size(1);
        let [weight, bias] = ["weight", "bias"].map(|name| {
            let param = cx.param(name, [channels]).tensor();
            param.view(&[channels, 1, 1])
        });
        let mean = x.mean(&[1]);
        let spread = {
            let apart = x.sub(&mean);
            let squares = apart.pipe(Tensor::pow);
            squares.pipe(|squares| squares.mean(&[1]))
        };
        let mut y = {
            let apart = x.sub(&mean);
            let deviation = spread.add_scalar().pipe(Tensor::sqrt);
            apart.div(&deviation)
        };
        y = weight.mul(&y);
        y.add(&bias)
    })
}
