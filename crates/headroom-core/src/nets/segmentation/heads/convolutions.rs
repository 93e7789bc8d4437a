//! `FCNHead`, by itself, as the auxiliary head, and with something between its convolutions.

use super::super::backbone::{Kind, Maps};
use super::super::layers::{joined, point, three};
use super::DROPOUT;
use crate::nets::{Cx, Sizes};
use crate::tape::Tensor;

/// The head on the map before the last.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Auxiliary {
    channels: u64,
}

impl Auxiliary {
    /// `None` without `aux_channels`.
    pub(in super::super) fn of(sizes: &Sizes) -> Option<Self> {
        let channels = sizes.get("aux_channels").filter(|n| *n > 0)?;
        Some(Self { channels })
    }

    pub(in super::super) fn logits(self, cx: &Cx, maps: &Maps, classes: u64) -> Tensor {
        single(cx, maps.before_last(), self.channels, classes)
    }
}

/// One convolution and the classes.
pub(super) fn single(cx: &Cx, map: &Tensor, channels: u64, classes: u64) -> Tensor {
    let x = cx.module("convs", |cx| cx.conv_module("0", map, three(channels)));
    cx.classified(&x, classes, DROPOUT)
}

/// What stands between the two convolutions.
pub(super) type Between = fn(&Cx, &Tensor) -> Tensor;

/// Two convolutions, and their result with their input through a third (`concat_input`).
pub(super) fn around(cx: &Cx, x: &Tensor, channels: u64, between: Between) -> Tensor {
    let first = cx.module("convs", |cx| cx.conv_module("0", x, three(channels)));
    let inner = between(cx, &first);
    drop(first);
    let second = cx.module("convs", |cx| cx.conv_module("1", &inner, three(channels)));
    drop(inner);
    let both = joined(x, &[second]);
    cx.conv_module("conv_cat", &both, three(channels))
}

/// The logits of an FCN of these channels.
pub(super) fn logits(cx: &Cx, maps: &Maps, channels: u64, classes: u64) -> Tensor {
    let last = maps.last();
    match maps.kind {
        Kind::Stages => {
            let x = around(cx, last, channels, |_, x| x.clone());
            cx.classified(&x, classes, DROPOUT)
        }
        Kind::Parallel => resized(cx, maps, classes),
        Kind::Decoded => single(cx, last, channels, classes),
        Kind::Guided => cx.classified(last, classes, 0.0),
    }
}

/// `FCNHead` with `input_transform='resize_concat'`: one convolution of one place, without dropout.
pub(super) fn resized(cx: &Cx, maps: &Maps, classes: u64) -> Tensor {
    let all = maps.concatenated();
    let x = cx.module("convs", |cx| cx.conv_module("0", &all, point(all.size(1))));
    drop(all);
    cx.classified(&x, classes, 0.0)
}
