//! ResNet, Wide ResNet and ResNeXt (torchvision/models/resnet.py; timm's plain variants run alike).

use super::{ImageModel, classifier};
use crate::nets::{Cx, ModelError, Net, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{ConstructionPoint, Tensor};

#[derive(Clone, Copy, Debug)]
pub(crate) struct ResNet {
    blocks: [u64; 4],
    bottleneck: bool,
    groups: u64,
    width_per_group: u64,
}

const fn plain(blocks: [u64; 4], bottleneck: bool) -> ResNet {
    ResNet {
        blocks,
        bottleneck,
        groups: 1,
        width_per_group: 64,
    }
}

pub(crate) const R18: ResNet = plain([2, 2, 2, 2], false);
pub(crate) const R34: ResNet = plain([3, 4, 6, 3], false);
pub(crate) const R50: ResNet = plain([3, 4, 6, 3], true);
pub(crate) const R101: ResNet = plain([3, 4, 23, 3], true);
pub(crate) const R152: ResNet = plain([3, 8, 36, 3], true);

impl ResNet {
    pub(crate) fn wide(self, width_per_group: u64) -> Self {
        Self {
            width_per_group,
            ..self
        }
    }

    pub(crate) fn grouped(self, groups: u64) -> Self {
        Self { groups, ..self }
    }
}

// Like the other networks' builders, so that one table can list them all.
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn build(sizes: &Sizes, body: ResNet) -> Result<Box<dyn Net>, ModelError> {
    Ok(classifier(sizes, body))
}

/// A network of the catalogue: its stages are sizes.
pub(crate) fn from_sizes(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let [a, b, c, d] = sizes.list("depths")? else {
        return Err(ModelError::MismatchedLists {
            names: "`depths`",
            expected: "one for each of four stages",
        });
    };
    let blocks = plain([*a, *b, *c, *d], sizes.is_set("bottleneck"));
    build(sizes, blocks.wide(sizes.or("width", 64)))
}

impl ImageModel for ResNet {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let mut x = stem(cx, image);
        for stage in 0..STAGES.len() {
            x = self.stage(cx, &x, stage);
        }
        x = x.adaptive_avg_pool2d(1);
        x = x.flattened_from_one();
        cx.linear("fc", &x, classes, true)
    }
}

const STAGES: [&str; 4] = ["layer1", "layer2", "layer3", "layer4"];

impl ResNet {
    fn stage(&self, cx: &Cx, x: &Tensor, stage: usize) -> Tensor {
        let this = *self;
        let planes = 64 << stage;
        let blocks = self.blocks.get(stage).copied().unwrap_or(0) as usize;
        let name = STAGES.get(stage).copied().unwrap_or_default();
        cx.module(name, |cx| {
            cx.blocks(blocks, x, move |cx, x, i| {
                let stride = if stage > 0 && i == 0 { 2 } else { 1 };
                if this.bottleneck {
                    this.bottleneck(cx, x, planes, stride)
                } else {
                    basic(cx, x, planes, stride)
                }
            })
        })
    }

    /// The maps of all stages, the last one last.
    pub(crate) fn features(&self, cx: &Cx, image: &Tensor) -> Vec<Tensor> {
        let mut x = stem(cx, image);
        let stages = 0..STAGES.len();
        stages
            .map(|stage| {
                x = self.stage(cx, &x, stage);
                x.clone()
            })
            .collect()
    }

    fn bottleneck(&self, cx: &Cx, x: &Tensor, planes: u64, stride: u64) -> Tensor {
        let width = planes * self.width_per_group / 64 * self.groups;
        let (start, identity) = (cx.tape.construction_point(), x.clone());
        let mut out = cx.conv2d("conv1", x, width, 1, Conv::default(), false);
        out = cx.batch_norm("bn1", &out);
        out = out.relu_();
        let conv = Conv::stride(stride).padded(1).grouped(self.groups);
        out = cx.conv2d("conv2", &out, width, 3, conv, false);
        out = cx.batch_norm("bn2", &out);
        out = out.relu_();
        out = cx.conv2d("conv3", &out, 4 * planes, 1, Conv::default(), false);
        out = cx.batch_norm("bn3", &out);
        add_identity(cx, start, [&out, &identity], 4 * planes, stride)
    }
}

fn stem(cx: &Cx, image: &Tensor) -> Tensor {
    let mut x = cx.conv2d("conv1", image, 64, 7, Conv::stride(2).padded(3), false);
    x = cx.batch_norm("bn1", &x);
    x = x.relu_();
    x.max_pool2d(3, Conv::stride(2).padded(1))
}

fn basic(cx: &Cx, x: &Tensor, planes: u64, stride: u64) -> Tensor {
    let (start, identity) = (cx.tape.construction_point(), x.clone());
    let mut out = cx.conv2d("conv1", x, planes, 3, Conv::stride(stride).padded(1), false);
    out = cx.batch_norm("bn1", &out);
    out = out.relu_();
    out = cx.conv2d("conv2", &out, planes, 3, Conv::stride(1).padded(1), false);
    out = cx.batch_norm("bn2", &out);
    add_identity(cx, start, [&out, &identity], planes, stride)
}

/// The end of a block: the input is added, through `downsample` where its size differs.
fn add_identity(
    cx: &Cx,
    start: ConstructionPoint,
    [out, input]: [&Tensor; 2],
    channels: u64,
    stride: u64,
) -> Tensor {
    let mut identity = input.clone();
    if stride != 1 || identity.size(1) != channels {
        let made = cx.tape.construction_point();
        identity = cx.module("downsample", |cx| {
            let mut y = cx.conv2d("0", &identity, channels, 1, Conv::stride(stride), false);
            y = cx.batch_norm("1", &y);
            y
        });
        // `_make_layer` makes it before the block.
        cx.tape.allocate_before(start, made);
    }
    out.add_(&identity).pipe(Tensor::relu_)
}
