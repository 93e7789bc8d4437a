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
    /// Three convolutions of three by three in place of one of seven by seven (`ResNetV1c`).
    deep_stem: bool,
    /// By what the last stage divides the picture's side: later stages are dilated instead (`replace_stride_with_dilation`).
    output_stride: u64,
}

const fn plain(blocks: [u64; 4], bottleneck: bool) -> ResNet {
    ResNet {
        blocks,
        bottleneck,
        groups: 1,
        width_per_group: 64,
        deep_stem: false,
        output_stride: 32,
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

    pub(crate) fn dilated(self, output_stride: u64) -> Self {
        Self {
            output_stride,
            ..self
        }
    }

    pub(crate) fn with_deep_stem(self) -> Self {
        Self {
            deep_stem: true,
            ..self
        }
    }

    /// Its stages of a network of the catalogue.
    pub(crate) fn of_depths(sizes: &Sizes) -> Result<Self, ModelError> {
        let [a, b, c, d] = sizes.list("depths")? else {
            return Err(ModelError::MismatchedLists {
                names: "`depths`",
                expected: "one for each of four stages",
            });
        };
        let blocks = plain([*a, *b, *c, *d], sizes.is_set("bottleneck"));
        Ok(blocks.wide(sizes.or("width", 64)))
    }
}

// Like the other networks' builders, so that one table can list them all.
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn build(sizes: &Sizes, body: ResNet) -> Result<Box<dyn Net>, ModelError> {
    Ok(classifier(sizes, body))
}

/// A network of the catalogue: its stages are sizes.
pub(crate) fn from_sizes(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, ResNet::of_depths(sizes)?)
}

impl ImageModel for ResNet {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let mut x = self.stem(cx, image);
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
        // What this stage would divide the side by, over what it may.
        let dilation = ((4 << stage) / self.output_stride.max(1)).max(1);
        cx.module(name, |cx| {
            cx.blocks(blocks, x, move |cx, x, i| {
                let stride = if stage > 0 && i == 0 && dilation == 1 {
                    2
                } else {
                    1
                };
                // The first block has the dilation of the stage before.
                let dilation = if i == 0 {
                    dilation.div_ceil(2)
                } else {
                    dilation
                };
                let form = Conv {
                    dilation,
                    ..Conv::stride(stride).padded(dilation)
                };
                if this.bottleneck {
                    this.bottleneck(cx, x, planes, form)
                } else {
                    basic(cx, x, planes, form)
                }
            })
        })
    }

    fn stem(&self, cx: &Cx, image: &Tensor) -> Tensor {
        if !self.deep_stem {
            return stem(cx, image);
        }
        let x = cx.module("stem", |cx| deep_stem(cx, image, 64));
        x.max_pool2d(3, Conv::stride(2).padded(1))
    }

    /// The maps of all stages, the last one last.
    pub(crate) fn features(&self, cx: &Cx, image: &Tensor) -> Vec<Tensor> {
        let mut x = self.stem(cx, image);
        let stages = 0..STAGES.len();
        stages
            .map(|stage| {
                x = self.stage(cx, &x, stage);
                x.clone()
            })
            .collect()
    }

    /// The first stage alone, of so many blocks.
    pub(crate) fn first_stage(&self, cx: &Cx, x: &Tensor, blocks: u64) -> Tensor {
        let mut this = *self;
        this.blocks = [blocks, 0, 0, 0];
        this.stage(cx, x, 0)
    }

    fn bottleneck(&self, cx: &Cx, x: &Tensor, planes: u64, form: Conv) -> Tensor {
        let width = planes * self.width_per_group / 64 * self.groups;
        let (start, identity) = (cx.tape.construction_point(), x.clone());
        let mut out = cx.conv2d("conv1", x, width, 1, Conv::default(), false);
        out = cx.batch_norm("bn1", &out);
        out = out.relu_();
        out = cx.conv2d("conv2", &out, width, 3, form.grouped(self.groups), false);
        out = cx.batch_norm("bn2", &out);
        out = out.relu_();
        out = cx.conv2d("conv3", &out, 4 * planes, 1, Conv::default(), false);
        out = cx.batch_norm("bn3", &out);
        add_identity(cx, start, [&out, &identity], 4 * planes, form.stride)
    }
}

/// The convolutions of a deep stem, of half the channels but for the last.
pub(crate) fn deep_stem(cx: &Cx, image: &Tensor, channels: u64) -> Tensor {
    let layers = [
        ("0", "1", channels / 2, 2),
        ("3", "4", channels / 2, 1),
        ("6", "7", channels, 1),
    ];
    layers
        .into_iter()
        .fold(image.clone(), |x, (conv, norm, out, stride)| {
            let x = cx.conv2d(conv, &x, out, 3, Conv::stride(stride).padded(1), false);
            cx.batch_norm(norm, &x).pipe(Tensor::relu_)
        })
}

fn stem(cx: &Cx, image: &Tensor) -> Tensor {
    let mut x = cx.conv2d("conv1", image, 64, 7, Conv::stride(2).padded(3), false);
    x = cx.batch_norm("bn1", &x);
    x = x.relu_();
    x.max_pool2d(3, Conv::stride(2).padded(1))
}

/// `BasicBlock.forward`; its second convolution is not dilated.
pub(crate) fn basic(cx: &Cx, x: &Tensor, planes: u64, form: Conv) -> Tensor {
    let (start, identity) = (cx.tape.construction_point(), x.clone());
    let mut out = cx.conv2d("conv1", x, planes, 3, form, false);
    out = cx.batch_norm("bn1", &out);
    out = out.relu_();
    out = cx.conv2d("conv2", &out, planes, 3, Conv::stride(1).padded(1), false);
    out = cx.batch_norm("bn2", &out);
    add_identity(cx, start, [&out, &identity], planes, form.stride)
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
