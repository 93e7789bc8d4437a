//! The backbone and the pyramid (models/yolov5*.yaml, models/hub/yolov5*6.yaml; mmyolo/models/{backbones,necks}).

use super::super::blocks::{Unit, joined_by_third, pooled, pooled_side_by_side};
use super::super::layers::Layers;
use super::{Csp, Kind};
use crate::tape::Tensor;

/// A stage of the backbone: its channels, and how often its block repeats.
type Stage = (u64, u64);

const THREE_MAPS: [Stage; 4] = [(128, 3), (256, 6), (512, 9), (1024, 3)];
const FOUR_MAPS: [Stage; 5] = [(128, 3), (256, 6), (512, 9), (768, 3), (1024, 3)];
const OF_X: [Stage; 4] = [(128, 3), (256, 9), (512, 9), (1024, 3)];

impl Csp {
    fn stages(&self) -> &'static [Stage] {
        match self.kind {
            Kind::X => &OF_X,
            _ if self.has_fourth_map => &FOUR_MAPS,
            Kind::Five | Kind::FiveU | Kind::MmFive => &THREE_MAPS,
        }
    }

    /// The maps that heads see, from the finest to the coarsest.
    pub(super) fn maps(&self, layers: &mut Layers, image: &Tensor) -> Vec<Tensor> {
        let stages = self.backbone(layers, image);
        self.pyramid(layers, &stages)
    }

    fn block(&self, layers: &mut Layers, x: &Tensor, (full, repeats): Stage, adds: bool) -> Tensor {
        let (out, count) = (self.scale.channels(full), self.scale.repeats(repeats));
        layers.next(|cx| joined_by_third(cx, x, out, count, adds))
    }

    fn stem(&self, layers: &mut Layers, image: &Tensor) -> Tensor {
        let width = self.scale.channels(64);
        if self.kind == Kind::X {
            // `Focus`: four pictures of every second pixel, one after the other.
            let shape = [
                image.size(0),
                4 * image.size(1),
                image.size(2) / 2,
                image.size(3) / 2,
            ];
            let patches = image.constant("cat", &shape, image.dtype());
            return next(layers, &patches, Unit::new(width, 3));
        }
        next(layers, image, Unit::new(width, 6).halving().padded(2))
    }

    /// The maps of all stages but the first.
    fn backbone(&self, layers: &mut Layers, image: &Tensor) -> Vec<Tensor> {
        let mut x = self.stem(layers, image);
        let mut maps = Vec::new();
        let last = self.stages().len() - 1;
        for (i, stage) in self.stages().iter().enumerate() {
            let width = self.scale.channels(stage.0);
            x = next(layers, &x, Unit::new(width, 3).halving());
            if self.kind == Kind::X && i == last {
                x = layers.next(|cx| pooled_side_by_side(cx, &x, width));
            }
            x = self.block(layers, &x, *stage, self.kind != Kind::X || i < last);
            if self.kind != Kind::X && i == last {
                x = layers.next(|cx| pooled(cx, &x, width, false));
            }
            if i > 0 {
                maps.push(x.clone());
            }
        }
        maps
    }

    /// Down from the coarsest map, and up again.
    fn pyramid(&self, layers: &mut Layers, maps: &[Tensor]) -> Vec<Tensor> {
        const REPEATS: u64 = 3;
        let full: Vec<u64> = self.stages().iter().skip(1).map(|stage| stage.0).collect();
        let Some(mut x) = maps.last().cloned() else {
            return Vec::new();
        };
        // What is joined on the way up, from the coarsest.
        let mut kept = Vec::new();
        for (finer, full) in maps.iter().zip(&full).rev().skip(1) {
            let narrowed = next(layers, &x, Unit::new(self.scale.channels(*full), 1));
            x = layers.doubled_with(&narrowed, finer);
            kept.push(narrowed);
            x = self.block(layers, &x, (*full, REPEATS), false);
        }
        let mut outputs = vec![x.clone()];
        let widths = full.iter().zip(full.iter().skip(1));
        for (own, coarser) in widths {
            let Some(other) = kept.pop() else { break };
            let halved = Unit::new(self.scale.channels(*own), 3).halving();
            x = next(layers, &x, halved);
            x = layers.with(&x, &other);
            x = self.block(layers, &x, (*coarser, REPEATS), false);
            outputs.push(x.clone());
        }
        outputs
    }
}

/// A convolution as the next layer.
fn next(layers: &mut Layers, x: &Tensor, unit: Unit) -> Tensor {
    layers.next(|cx| unit.run_here(cx, x))
}
