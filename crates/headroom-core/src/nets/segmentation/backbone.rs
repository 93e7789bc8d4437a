//! What the maps come from.

use super::cgnet;
use super::hrnet::HrNet;
use super::layers::{joined, plane};
use super::mobilenet;
use super::resnest::ResNest;
use super::unet;
use crate::nets::vision::resnet::ResNet;
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::Tensor;

#[derive(Clone, Debug)]
pub(super) enum Backbone {
    ResNet(ResNet),
    ResNest(ResNest),
    HrNet(HrNet),
    MobileNetV2,
    MobileNetV3 { small: bool },
    UNet { width: u64 },
    CgNet,
}

impl Backbone {
    /// By the sizes that only one of them has.
    pub(super) fn of(sizes: &Sizes) -> Result<Self, ModelError> {
        Ok(if let Some(width) = sizes.get("branch") {
            Self::HrNet(HrNet::of(sizes, width)?)
        } else if sizes.is_set("mobilenet-v2") {
            Self::MobileNetV2
        } else if sizes.is_set("mobilenet-v3") || sizes.is_set("mobilenet-v3-small") {
            Self::MobileNetV3 {
                small: sizes.is_set("mobilenet-v3-small"),
            }
        } else if let Some(width) = sizes.get("base") {
            Self::UNet { width }
        } else if sizes.is_set("cgnet") {
            Self::CgNet
        } else if sizes.is_set("split-attention") {
            Self::ResNest(ResNest::of(sizes)?)
        } else {
            let plain = ResNet::of_depths(sizes)?.dilated(sizes.or("stride", 8));
            Self::ResNet(if sizes.is_set("deep_stem") {
                plain.with_deep_stem()
            } else {
                plain
            })
        })
    }

    pub(super) fn maps(&self, cx: &Cx, image: &Tensor) -> Maps {
        let (kind, all) = match self {
            Self::ResNet(net) => (Kind::Stages, net.features(cx, image)),
            Self::ResNest(net) => (Kind::Stages, net.maps(cx, image)),
            Self::HrNet(net) => (Kind::Parallel, net.maps(cx, image)),
            Self::MobileNetV2 => (Kind::Stages, mobilenet::second(cx, image)),
            Self::MobileNetV3 { small } => (Kind::Stages, mobilenet::third(cx, image, *small)),
            Self::UNet { width } => (Kind::Decoded, unet::maps(cx, image, *width)),
            Self::CgNet => (Kind::Guided, cgnet::maps(cx, image)),
        };
        Maps::new(kind, all, image)
    }
}

/// What the maps of a backbone are to each other.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Each stage's, the finest first.
    Stages,
    /// HRNet's, which heads put together.
    Parallel,
    /// Those of a UNet's decoder, the finest last.
    Decoded,
    /// CGNet's.
    Guided,
}

/// A backbone's maps, of which there is one at least.
pub(super) struct Maps {
    pub kind: Kind,
    first: Tensor,
    rest: Vec<Tensor>,
}

impl Maps {
    pub(super) fn new(kind: Kind, all: Vec<Tensor>, image: &Tensor) -> Self {
        let mut all = all.into_iter();
        Self {
            kind,
            first: all.next().unwrap_or_else(|| image.clone()),
            rest: all.collect(),
        }
    }

    pub(super) fn first(&self) -> &Tensor {
        &self.first
    }

    pub(super) fn last(&self) -> &Tensor {
        self.rest.last().unwrap_or(&self.first)
    }

    /// The one before the last, on which the auxiliary head stands.
    pub(super) fn before_last(&self) -> &Tensor {
        self.rest.iter().rev().nth(1).unwrap_or(&self.first)
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Tensor> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// `resize_concat`: every map at the first one's size, the first too.
    pub(super) fn concatenated(&self) -> Tensor {
        let [height, width] = plane(&self.first);
        let first = self.first.interpolate(height, width);
        let rest = self.rest.iter().map(|map| map.interpolate(height, width));
        joined(&first, &rest.collect::<Vec<_>>())
    }
}
