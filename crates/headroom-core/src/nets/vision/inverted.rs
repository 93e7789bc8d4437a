//! EfficientNet and MobileNet as timm builds them, block by block (timm/models/efficientnet.py, mobilenetv3.py).

use super::layers::Activation;
use super::{ImageModel, classifier};
use crate::nets::{Cx, ModelError, Net, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    EfficientNet,
    MobileNet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockType {
    DepthwiseSeparable,
    InvertedResidual,
    Edge,
    Plain,
}

#[derive(Clone, Copy, Debug)]
struct BlockArgs {
    block_type: BlockType,
    mid: u64,
    out: u64,
    kernel: u64,
    stride: u64,
    /// Channels of the squeezed vector; none for zero.
    squeezed: u64,
    activation: Activation,
    /// The gate is a hard sigmoid.
    hard: bool,
}

struct Inverted {
    stem: u64,
    stem_activation: Activation,
    blocks: Vec<BlockArgs>,
    head: u64,
    /// `MobileNetV3` pools before the last convolution.
    pooled_head: bool,
}

/// A network of the catalogue: one number of each list a block.
pub(crate) fn from_sizes(sizes: &Sizes, style: Style) -> Result<Box<dyn Net>, ModelError> {
    let pooled_head = sizes.is_set("v3_head");
    let block_types = sizes.list("kind")?;
    let [mid, out, kernel, stride, squeezed] = [
        sizes.list("mid")?,
        sizes.list("out")?,
        sizes.list("kernel")?,
        sizes.list("stride")?,
        sizes.list("se")?,
    ];
    let at = |list: &[u64], i: usize| list.get(i).copied().unwrap_or(1);
    // The first stages of MobileNetV3, up to 40 channels, use ReLU; its version 2 cuts at six throughout.
    let activation = |out: u64| match style {
        Style::EfficientNet => Activation::Silu,
        Style::MobileNet if !pooled_head => Activation::Relu6,
        Style::MobileNet if out <= 40 => Activation::Relu,
        Style::MobileNet => Activation::Hardswish,
    };
    let blocks = (0..block_types.len())
        .map(|i| BlockArgs {
            block_type: match at(block_types, i) {
                0 => BlockType::DepthwiseSeparable,
                1 => BlockType::InvertedResidual,
                2 => BlockType::Edge,
                _ => BlockType::Plain,
            },
            mid: at(mid, i),
            out: at(out, i),
            kernel: at(kernel, i),
            stride: at(stride, i),
            squeezed: at(squeezed, i),
            activation: activation(at(out, i)),
            hard: pooled_head,
        })
        .collect();
    let body = Inverted {
        stem: sizes.need("stem")?,
        stem_activation: activation(u64::MAX),
        blocks,
        head: sizes.need("head")?,
        pooled_head,
    };
    Ok(classifier(sizes, body))
}

impl ImageModel for Inverted {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let stem = Conv::stride(2).padded(1);
        let mut x = cx.conv2d("conv_stem", image, self.stem, 3, stem, false);
        x = cx.batch_norm("bn1", &x);
        x = self.stem_activation.in_place(&x);
        x = cx.module("blocks", |cx| {
            let blocks = self.blocks.clone();
            cx.blocks(blocks.len(), &x, move |cx, x, i| match blocks.get(i) {
                Some(block) => block.forward(cx, x),
                None => x.clone(),
            })
        });
        if self.pooled_head {
            x = x.adaptive_avg_pool2d(1);
            x = cx.conv2d("conv_head", &x, self.head, 1, Conv::default(), true);
            x = self.stem_activation.in_place(&x);
        } else {
            x = cx.conv2d("conv_head", &x, self.head, 1, Conv::default(), false);
            x = cx.batch_norm("bn2", &x);
            x = self.stem_activation.in_place(&x);
            x = x.adaptive_avg_pool2d(1);
        }
        x = x.flattened_from_one();
        cx.linear("classifier", &x, classes, true)
    }
}

impl BlockArgs {
    fn forward(&self, cx: &Cx, input: &Tensor) -> Tensor {
        let Self {
            mid,
            out,
            kernel,
            stride,
            activation,
            ..
        } = *self;
        let wide = Conv::stride(stride).padded(kernel / 2);
        let narrow = Conv::default();
        let acts = |cx: &Cx, name, x: &Tensor| {
            let mut x = cx.batch_norm(name, x);
            x = activation.in_place(&x);
            x
        };
        let mut x = match self.block_type {
            BlockType::DepthwiseSeparable => {
                let mut x = cx.conv2d("conv_dw", input, mid, kernel, wide.grouped(mid), false);
                x = acts(cx, "bn1", &x);
                x = self.squeeze(cx, &x);
                x = cx.conv2d("conv_pw", &x, out, 1, narrow, false);
                cx.batch_norm("bn2", &x)
            }
            BlockType::InvertedResidual => {
                let mut x = cx.conv2d("conv_pw", input, mid, 1, narrow, false);
                x = acts(cx, "bn1", &x);
                x = cx.conv2d("conv_dw", &x, mid, kernel, wide.grouped(mid), false);
                x = acts(cx, "bn2", &x);
                x = self.squeeze(cx, &x);
                x = cx.conv2d("conv_pwl", &x, out, 1, narrow, false);
                cx.batch_norm("bn3", &x)
            }
            BlockType::Edge => {
                let mut x = cx.conv2d("conv_exp", input, mid, kernel, wide, false);
                x = acts(cx, "bn1", &x);
                x = self.squeeze(cx, &x);
                x = cx.conv2d("conv_pwl", &x, out, 1, narrow, false);
                cx.batch_norm("bn2", &x)
            }
            BlockType::Plain => {
                let x = cx.conv2d("conv", input, out, kernel, wide, false);
                acts(cx, "bn1", &x)
            }
        };
        if stride == 1 && input.size(1) == out {
            x = x.add(input);
        }
        x
    }

    /// `SqueezeExcite`.
    fn squeeze(&self, cx: &Cx, x: &Tensor) -> Tensor {
        if self.squeezed == 0 {
            return x.clone();
        }
        cx.module("se", |cx| {
            let mut gate = x.mean(&[2, 3]);
            gate = cx.conv2d(
                "conv_reduce",
                &gate,
                self.squeezed,
                1,
                Conv::default(),
                true,
            );
            gate = if self.hard {
                gate.relu_()
            } else {
                gate.silu_()
            };
            gate = cx.conv2d("conv_expand", &gate, x.size(1), 1, Conv::default(), true);
            gate = if self.hard {
                gate.hardsigmoid()
            } else {
                gate.sigmoid()
            };
            x.mul(&gate)
        })
    }
}
