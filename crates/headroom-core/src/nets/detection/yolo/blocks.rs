//! The blocks that the networks are made of (ultralytics/nn/modules/{conv,block}.py).

use super::attention;
use super::joined;
use crate::nets::Cx;
use crate::nets::vision::index_name;
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// `Conv`: a convolution without a bias, its batch norm and, mostly, SiLU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    out: u64,
    kernel: u64,
    stride: u64,
    padding: u64,
    groups: u64,
    active: bool,
}

impl Unit {
    pub(super) const fn new(out: u64, kernel: u64) -> Self {
        Self {
            out,
            kernel,
            stride: 1,
            padding: kernel / 2,
            groups: 1,
            active: true,
        }
    }

    /// The same that halves the map.
    pub(super) const fn halving(self) -> Self {
        Self { stride: 2, ..self }
    }

    pub(super) const fn padded(self, padding: u64) -> Self {
        Self { padding, ..self }
    }

    pub(super) const fn grouped(self, groups: u64) -> Self {
        Self { groups, ..self }
    }

    /// The same without an activation.
    pub(super) const fn linear(self) -> Self {
        Self {
            active: false,
            ..self
        }
    }

    pub(super) fn run(self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        cx.module(name, |cx| self.run_here(cx, x))
    }

    /// The same in the module that is open.
    pub(super) fn run_here(self, cx: &Cx, x: &Tensor) -> Tensor {
        let form = Conv::stride(self.stride)
            .padded(self.padding)
            .grouped(self.groups);
        let y = cx
            .conv2d("conv", x, self.out, self.kernel, form, false)
            .pipe(|y| cx.batch_norm("bn", y));
        if self.active { y.pipe(Tensor::silu) } else { y }
    }
}

/// `Bottleneck` of two convolutions around `inner` channels.
pub(super) fn bottleneck(cx: &Cx, x: &Tensor, inner: u64, adds: bool) -> Tensor {
    let y = Unit::new(inner, 3)
        .run(cx, "cv1", x)
        .pipe(|y| Unit::new(x.size(1), 3).run(cx, "cv2", y));
    if adds { x.add(&y) } else { y }
}

/// What stands in a `C2f` or `C3k2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// `C2f`: bottlenecks as wide inside; with or without the sum.
    Wide(bool),
    /// `C3k2`: bottlenecks half as wide inside.
    Narrow,
    /// `C3k2` of `C3k` blocks.
    Deep,
    /// `C3k2` of a bottleneck and attention.
    Attention,
}

/// `C2f`: half of the channels go through blocks one after the other, and all that they make is joined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    pub out: u64,
    /// Channels of a half.
    pub half: u64,
    pub count: usize,
    pub inside: Inside,
}

impl Split {
    pub(super) fn run_here(self, cx: &Cx, x: &Tensor) -> Tensor {
        let mut parts = Unit::new(2 * self.half, 1)
            .run(cx, "cv1", x)
            .pipe(|both| both.chunk(2, 1));
        for i in 0..self.count {
            let Some(last) = parts.last().cloned() else {
                break;
            };
            let next = cx.module("m", |cx| {
                cx.module(index_name(i), |cx| self.inside.run(cx, &last))
            });
            parts.push(next);
        }
        let all = joined(&parts, 1, x);
        Unit::new(self.out, 1).run(cx, "cv2", &all)
    }
}

impl Inside {
    fn run(self, cx: &Cx, x: &Tensor) -> Tensor {
        let channels = x.size(1);
        match self {
            Self::Wide(adds) => bottleneck(cx, x, channels, adds),
            Self::Narrow => bottleneck(cx, x, channels / 2, true),
            Self::Deep => deep(cx, x),
            Self::Attention => {
                let y = cx.module("0", |cx| bottleneck(cx, x, channels / 2, true));
                cx.module("1", |cx| attention::block(cx, &y))
            }
        }
    }
}

/// `C3k` of two bottlenecks.
fn deep(cx: &Cx, x: &Tensor) -> Tensor {
    const COUNT: usize = 2;
    let half = x.size(1) / 2;
    let first = {
        let mut y = Unit::new(half, 1).run(cx, "cv1", x);
        for i in 0..COUNT {
            y = cx.module("m", |cx| {
                cx.module(index_name(i), |cx| bottleneck(cx, &y, half, true))
            });
        }
        y
    };
    let second = Unit::new(half, 1).run(cx, "cv2", x);
    let all = joined(&[first, second], 1, x);
    Unit::new(x.size(1), 1).run(cx, "cv3", &all)
}

/// `C3` of `count` blocks: they follow one of two convolutions, and a third joins both. Each block has a small convolution before its own.
pub(super) fn joined_by_third(cx: &Cx, x: &Tensor, out: u64, count: usize, adds: bool) -> Tensor {
    let half = out / 2;
    let mut first = Unit::new(half, 1).run(cx, "cv1", x);
    for i in 0..count {
        first = cx.module("m", |cx| {
            cx.module(index_name(i), |cx| {
                let y = Unit::new(half, 1)
                    .run(cx, "cv1", &first)
                    .pipe(|y| Unit::new(half, 3).run(cx, "cv2", y));
                if adds { first.add(&y) } else { y }
            })
        });
    }
    let second = Unit::new(half, 1).run(cx, "cv2", x);
    let all = joined(&[first, second], 1, x);
    Unit::new(out, 1).run(cx, "cv3", &all)
}

/// `SPPBottleneck` of MMYOLO: three poolings of the same map, joined.
pub(super) fn pooled_side_by_side(cx: &Cx, x: &Tensor, out: u64) -> Tensor {
    let first = Unit::new(x.size(1) / 2, 1).run(cx, "conv1", x);
    let mut maps = vec![first.clone()];
    for window in [5, 9, 13] {
        maps.push(first.max_pool2d(window, Conv::stride(1).padded(window / 2)));
    }
    drop(first);
    let all = joined(&maps, 1, x);
    Unit::new(out, 1).run(cx, "conv2", &all)
}

/// `SPPF`: three poolings one after the other, joined. The newer one has no activation before them, and adds what it pools.
pub(super) fn pooled(cx: &Cx, x: &Tensor, out: u64, newer: bool) -> Tensor {
    const WINDOW: u64 = 5;
    let first = Unit::new(x.size(1) / 2, 1);
    let first = if newer { first.linear() } else { first };
    let mut maps = vec![first.run(cx, "cv1", x)];
    for _ in 0..3 {
        let Some(last) = maps.last() else { break };
        let next = last.max_pool2d(WINDOW, Conv::stride(1).padded(WINDOW / 2));
        maps.push(next);
    }
    let all = joined(&maps, 1, x);
    let y = Unit::new(out, 1).run(cx, "cv2", &all);
    if newer && x.size(1) == out {
        y.add(x)
    } else {
        y
    }
}
