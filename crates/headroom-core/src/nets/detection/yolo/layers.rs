//! The layers in their order, with the channels of each scale (ultralytics/cfg/models/{v8,11,26}/*.yaml, `parse_model` in
//! ultralytics/nn/tasks.py).

use super::attention;
use super::blocks::{Inside, Split, Unit, pooled};
use super::head::Found;
use super::{Generation, Yolo, joined};
use crate::nets::Cx;
use crate::nets::vision::index_name;
use crate::tape::Tensor;

/// How deep and wide a network is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub depth_percent: u64,
    pub width_percent: u64,
    /// Channels before they are scaled.
    pub most: u64,
    pub deep: bool,
}

impl Scale {
    /// Channels, in steps of eight.
    pub(super) fn channels(&self, full: u64) -> u64 {
        let scaled = full.min(self.most).saturating_mul(self.width_percent);
        scaled.div_ceil(800).max(1).saturating_mul(8)
    }

    /// How often a block repeats: to the nearest, halves to even as Python's `round`.
    pub(super) fn repeats(&self, full: u64) -> usize {
        let exact = full as f64 * self.depth_percent as f64 / 100.0;
        (exact.round_ties_even() as usize).clamp(1, 1_000)
    }
}

/// The modules of an `nn.Sequential`, in their order.
pub(super) struct Layers<'a> {
    cx: &'a Cx,
    at: usize,
}

impl<'a> Layers<'a> {
    pub(super) const fn new(cx: &'a Cx) -> Self {
        Self { cx, at: 0 }
    }

    pub(super) fn next<T>(&mut self, body: impl Fn(&Cx) -> T) -> T {
        let name = index_name(self.at);
        self.at += 1;
        self.cx.module(name, body)
    }

    /// `nn.Upsample` and `Concat`, which have no parameters.
    pub(super) fn doubled_with(&mut self, x: &Tensor, other: &Tensor) -> Tensor {
        self.at += 2;
        let large = x.interpolate(other.size(2), other.size(3));
        joined(&[large, other.clone()], 1, x)
    }

    /// `Concat`.
    pub(super) fn with(&mut self, x: &Tensor, other: &Tensor) -> Tensor {
        self.at += 1;
        joined(&[x.clone(), other.clone()], 1, x)
    }
}

/// A place for a block of the table: its channels, how often it repeats, and half of how many channels go through it.
#[derive(Clone, Copy)]
struct Block {
    full: u64,
    repeats: u64,
    /// Of the channels, the share of a half, in percent.
    half_percent: u64,
    inside: Inside,
}

impl Yolo {
    fn block(&self, layers: &mut Layers, x: &Tensor, block: Block) -> Tensor {
        let out = self.scale.channels(block.full);
        let split = Split {
            out,
            half: out * block.half_percent / 100,
            count: self.scale.repeats(block.repeats),
            inside: block.inside,
        };
        layers.next(|cx| split.run_here(cx, x))
    }

    /// A block of the backbone, by stage.
    fn in_backbone(&self, stage: usize) -> Block {
        let full = [128, 256, 512, 1024].get(stage).copied().unwrap_or(1024);
        if self.generation == Generation::Eight {
            return Block {
                full,
                repeats: if matches!(stage, 1 | 2) { 6 } else { 3 },
                half_percent: 50,
                inside: Inside::Wide(true),
            };
        }
        let early = stage < 2;
        Block {
            // The first two are as wide as those of the stage after.
            full: if early { 2 * full } else { full },
            repeats: 2,
            half_percent: if early { 25 } else { 50 },
            inside: self.deep_where(!early),
        }
    }

    fn deep_where(&self, listed: bool) -> Inside {
        if listed || self.scale.deep {
            Inside::Deep
        } else {
            Inside::Narrow
        }
    }

    /// A block of the pyramid.
    fn in_pyramid(&self, full: u64, last: bool) -> Block {
        let (repeats, inside) = match self.generation {
            Generation::Eight => (3, Inside::Wide(false)),
            Generation::Eleven => (2, self.deep_where(last)),
            Generation::TwentySix if last => (1, Inside::Attention),
            Generation::TwentySix => (2, Inside::Deep),
        };
        Block {
            full,
            repeats,
            half_percent: 50,
            inside,
        }
    }

    /// The maps of the backbone's stages.
    fn stages(&self, layers: &mut Layers, image: &Tensor) -> Vec<Tensor> {
        let mut x = self.halved(layers, image, 64);
        let mut stages = Vec::new();
        for (stage, full) in [128, 256, 512, 1024].into_iter().enumerate() {
            x = self.halved(layers, &x, full);
            x = self.block(layers, &x, self.in_backbone(stage));
            stages.push(x.clone());
        }
        stages
    }

    fn halved(&self, layers: &mut Layers, x: &Tensor, full: u64) -> Tensor {
        let unit = Unit::new(self.scale.channels(full), 3).halving();
        layers.next(|cx| unit.run_here(cx, x))
    }

    /// `C2PSA`, which the generations from 11 on have.
    fn attended(&self, layers: &mut Layers, x: &Tensor) -> Tensor {
        if self.generation == Generation::Eight {
            return x.clone();
        }
        let count = self.scale.repeats(2);
        layers.next(|cx| attention::split(cx, x, count))
    }

    /// Scores of the classes of a whole picture (`Classify` in ultralytics/nn/modules/head.py).
    pub(super) fn classified(&self, cx: &Cx, image: &Tensor) -> Tensor {
        const WIDTH: u64 = 1280;
        let mut layers = Layers::new(cx);
        let mut x = image.clone();
        if let Some(last) = self.stages(&mut layers, image).pop() {
            x = last;
        }
        x = self.attended(&mut layers, &x);
        layers.next(|cx| {
            let pooled = Unit::new(WIDTH, 1)
                .run(cx, "conv", &x)
                .pipe(|y| y.adaptive_avg_pool2d(1))
                .pipe(Tensor::flattened_from_one);
            cx.linear("linear", &pooled, self.classes, true)
        })
    }

    /// The maps that the head sees, and what it found in them.
    pub(super) fn found(&self, cx: &Cx, image: &Tensor) -> (Vec<Tensor>, Vec<Found>) {
        let scale = &self.scale;
        let mut layers = Layers::new(cx);
        let stages = self.stages(&mut layers, image);
        let Some(mut x) = stages.last().cloned() else {
            return (Vec::new(), Vec::new());
        };
        let out = scale.channels(1024);
        let newer = self.generation == Generation::TwentySix;
        x = layers.next(|cx| pooled(cx, &x, out, newer));
        x = self.attended(&mut layers, &x);
        let coarse = x.clone();
        let [_, fine, middle, _] = &stages[..] else {
            return (Vec::new(), Vec::new());
        };
        // Up to the finest map, and down again.
        x = layers.doubled_with(&x, middle);
        x = self.block(&mut layers, &x, self.in_pyramid(512, false));
        let between = x.clone();
        x = layers.doubled_with(&x, fine);
        x = self.block(&mut layers, &x, self.in_pyramid(256, false));
        let mut maps = vec![x.clone()];
        for (full, other) in [(512, &between), (1024, &coarse)] {
            x = self.halved(&mut layers, &x, full / 2);
            x = layers.with(&x, other);
            x = self.block(&mut layers, &x, self.in_pyramid(full, full == 1024));
            maps.push(x.clone());
        }
        let heads = cx.module(index_name(layers.at), |cx| self.heads(cx, &maps));
        drop((stages, coarse, between, x));
        (maps, heads)
    }
}
