//! Backbones as detectors train them: the stem and the first stages frozen, norms by their running statistics
//! (mmdet/models/backbones/resnet.py, detectron2/modeling/backbone/resnet.py).

use super::super::backbone::frozen_norm;
use crate::nets::segmentation::{HrNet, context_block};
use crate::nets::vision::index_name;
use crate::nets::{Cx, ModelError, Region, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// What stands behind a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Norm {
    /// Batch norm by its running statistics, whose factors are trained (`norm_eval=True`).
    Running,
    /// Batch norm that is frozen altogether (`FrozenBatchNorm2d` of detectron2).
    Frozen,
    /// Batch norm of the batch (`SyncBN`).
    Batch,
    Group,
}

impl Norm {
    pub(super) fn of(sizes: &Sizes, usual: Self) -> Self {
        if sizes.is_set("group_norm") {
            Self::Group
        } else if sizes.is_set("batch_norm") {
            Self::Batch
        } else {
            usual
        }
    }

    pub(super) fn apply(self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        match self {
            Self::Running => cx.running_norm(name, x),
            Self::Frozen => frozen_norm(cx, name, x),
            Self::Batch => cx.batch_norm(name, x),
            Self::Group => cx.group_norm(name, x, 32),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Trunk {
    Residual(ResNet),
    Regular(RegNet),
    Parallel(HrNet),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ResNet {
    depths: [u64; 4],
    groups: u64,
    /// Of 64, for each group.
    width: u64,
    pub(super) norm: Norm,
    /// Frozen stages, the stem being part of the first.
    frozen: u64,
    /// The first convolution of a stage steps by two, not the second (`style='caffe'`, `STRIDE_IN_1X1`).
    steps_first: bool,
    /// Deformable convolutions in the last three stages: 1 as first published, 2 with masks.
    deformable: u64,
    /// Context blocks in the last three stages, of channels divided by this.
    context: u64,
    /// The last stage is dilated (DC5).
    dilated: bool,
}

const STAGES: [&str; 4] = ["layer1", "layer2", "layer3", "layer4"];

impl Trunk {
    pub(super) fn of(sizes: &Sizes, usual: Norm) -> Result<Self, ModelError> {
        if let Some(width) = sizes.get("branch") {
            return Ok(Self::Parallel(HrNet::of(sizes, width)?));
        }
        if let Ok(widths) = sizes.list("widths") {
            return RegNet::of(sizes, widths, usual).map(Self::Regular);
        }
        let [a, b, c, d] = sizes.list("depths")? else {
            return Err(ModelError::MismatchedLists {
                names: "`depths`",
                expected: "one for each of four stages",
            });
        };
        Ok(Self::Residual(ResNet {
            depths: [*a, *b, *c, *d],
            groups: sizes.or("groups", 1).max(1),
            width: sizes.or("width", 64),
            norm: Norm::of(sizes, usual),
            frozen: sizes.or("frozen", 1),
            steps_first: sizes.is_set("steps_first"),
            deformable: sizes.or("deformable", 0),
            context: sizes.or("context", 0),
            dilated: sizes.is_set("dc5"),
        }))
    }

    /// The maps of so many stages, the finest first.
    pub(super) fn maps(&self, cx: &Cx, image: &Tensor, stages: usize) -> Vec<Tensor> {
        match self {
            Self::Residual(net) => {
                let mut x = net.stem(cx, image);
                (0..stages)
                    .map(|stage| {
                        x = net.stage(cx, &x, stage);
                        x.clone()
                    })
                    .collect()
            }
            Self::Regular(net) => net.maps(cx, image),
            Self::Parallel(net) => net.maps(cx, image),
        }
    }
}

impl ResNet {
    fn part(&self, cx: &Cx, stage: u64) -> Cx {
        if stage < self.frozen {
            cx.frozen()
        } else {
            cx.clone()
        }
    }

    fn stem(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let cx = &self.part(cx, 0);
        let mut x = cx.conv2d("conv1", image, 64, 7, Conv::stride(2).padded(3), false);
        x = self.norm.apply(cx, "bn1", &x).pipe(Tensor::relu_);
        x.max_pool2d(3, Conv::stride(2).padded(1))
    }

    pub(super) fn stage(&self, cx: &Cx, x: &Tensor, stage: usize) -> Tensor {
        let (this, planes) = (*self, 64 << stage);
        let blocks = self.depths.get(stage).copied().unwrap_or(0) as usize;
        let name = STAGES.get(stage).copied().unwrap_or_default();
        self.part(cx, stage as u64).module(name, |cx| {
            (0..blocks).fold(x.clone(), |x, i| {
                let halves = i == 0 && stage > 0 && !(this.dilated && stage == 3);
                let stride = if halves { 2 } else { 1 };
                cx.module(index_name(i), |cx| {
                    cx.unary_block(Region::Convolutions, &x, move |cx, x| {
                        this.block(cx, x, planes, stride, stage > 0)
                    })
                })
            })
        })
    }

    fn block(self, cx: &Cx, input: &Tensor, planes: u64, stride: u64, later: bool) -> Tensor {
        let (width, out) = (planes * self.width / 64 * self.groups, 4 * planes);
        let (first, second) = if self.steps_first {
            (stride, 1)
        } else {
            (1, stride)
        };
        let mut x = cx.conv2d("conv1", input, width, 1, Conv::stride(first), false);
        x = self.norm.apply(cx, "bn1", &x).pipe(Tensor::relu_);
        let form = Conv::stride(second).padded(1).grouped(self.groups);
        x = if later && self.deformable > 0 {
            cx.module("conv2", |cx| {
                deformed(cx, &x, width, form, self.deformable > 1)
            })
        } else {
            cx.conv2d("conv2", &x, width, 3, form, false)
        };
        x = self.norm.apply(cx, "bn2", &x).pipe(Tensor::relu_);
        x = cx.conv2d("conv3", &x, out, 1, Conv::default(), false);
        x = self.norm.apply(cx, "bn3", &x);
        if later && self.context > 0 {
            x = cx.module("context_block", |cx| context_block(cx, &x, self.context));
        }
        let shortcut = if input.size(1) == out && stride == 1 {
            input.clone()
        } else {
            cx.module("downsample", |cx| {
                let x = cx.conv2d("0", input, out, 1, Conv::stride(stride), false);
                self.norm.apply(cx, "1", &x)
            })
        };
        x.add_(&shortcut).pipe(Tensor::relu_)
    }
}

/// `DeformConv2dPack` and `ModulatedDeformConv2dPack` of mmcv.
fn deformed(cx: &Cx, x: &Tensor, out: u64, form: Conv, masked: bool) -> Tensor {
    const TAPS: u64 = 9;
    let weight = cx
        .param("weight", [out, x.size(1) / form.groups.max(1), 3, 3])
        .tensor();
    let around = Conv { groups: 1, ..form };
    let places = if masked { 3 * TAPS } else { 2 * TAPS };
    let offsets = cx.conv2d("conv_offset", x, places, 3, around, true);
    if !masked {
        return x.deform_conv(&offsets, None, &weight);
    }
    let parts = offsets.chunk(3, 1);
    let [first, second, mask] = &parts[..] else {
        return x.deform_conv(&offsets, None, &weight);
    };
    let offsets = Tensor::cat(first, &[second], 1);
    let mask = mask.sigmoid();
    x.deform_conv(&offsets, Some(&mask), &weight)
}

/// RegNetX (mmdet/models/backbones/regnet.py): blocks of one width, grouped.
#[derive(Clone, Debug)]
pub(super) struct RegNet {
    /// Blocks and channels of each stage.
    stages: Vec<(u64, u64)>,
    /// Channels of a group.
    group: u64,
    norm: Norm,
    frozen: u64,
}

impl RegNet {
    fn of(sizes: &Sizes, widths: &[u64], usual: Norm) -> Result<Self, ModelError> {
        let depths = sizes.list("depths")?;
        if depths.len() != STAGES.len() || widths.len() != STAGES.len() {
            return Err(ModelError::MismatchedLists {
                names: "`depths` and `widths`",
                expected: "one of each for each of four stages",
            });
        }
        Ok(Self {
            stages: depths.iter().copied().zip(widths.iter().copied()).collect(),
            group: sizes.or("group", 48).max(1),
            norm: Norm::of(sizes, usual),
            frozen: sizes.or("frozen", 1),
        })
    }

    fn maps(&self, cx: &Cx, image: &Tensor) -> Vec<Tensor> {
        let part = |stage: u64| {
            if stage < self.frozen {
                cx.frozen()
            } else {
                cx.clone()
            }
        };
        let first = part(0);
        let mut x = first.conv2d("conv1", image, 32, 3, Conv::stride(2).padded(1), false);
        x = self.norm.apply(&first, "bn1", &x).pipe(Tensor::relu_);
        let stages = STAGES.into_iter().zip(&self.stages).enumerate();
        stages
            .map(|(stage, (name, (blocks, width)))| {
                x = part(stage as u64).module(name, |cx| {
                    (0..*blocks as usize).fold(x.clone(), |x, i| {
                        let stride = if i == 0 { 2 } else { 1 };
                        cx.module(index_name(i), |cx| self.block(cx, &x, *width, stride))
                    })
                });
                x.clone()
            })
            .collect()
    }

    fn block(&self, cx: &Cx, input: &Tensor, width: u64, stride: u64) -> Tensor {
        let mut x = cx.conv2d("conv1", input, width, 1, Conv::default(), false);
        x = self.norm.apply(cx, "bn1", &x).pipe(Tensor::relu_);
        let groups = (width / self.group).max(1);
        let form = Conv::stride(stride).padded(1).grouped(groups);
        x = cx.conv2d("conv2", &x, width, 3, form, false);
        x = self.norm.apply(cx, "bn2", &x).pipe(Tensor::relu_);
        x = cx.conv2d("conv3", &x, width, 1, Conv::default(), false);
        x = self.norm.apply(cx, "bn3", &x);
        let shortcut = if stride == 1 && input.size(1) == width {
            input.clone()
        } else {
            cx.module("downsample", |cx| {
                let x = cx.conv2d("0", input, width, 1, Conv::stride(stride), false);
                self.norm.apply(cx, "1", &x)
            })
        };
        x.add_(&shortcut).pipe(Tensor::relu_)
    }
}
