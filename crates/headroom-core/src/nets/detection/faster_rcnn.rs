//! Faster R-CNN (torchvision/models/detection/faster_rcnn.py): a ResNet's pyramid, the head of proposals, and the head of boxes over
//! given regions. Which anchors become proposals depends on the data; so many regions of each picture are kept (`regions`).

use super::Pictures;
use crate::nets::vision::index_name;
use crate::nets::vision::resnet::R50;
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct FasterRcnn {
    /// Channels of the pyramid.
    hidden: u64,
    /// Width of the head of boxes.
    wide: u64,
    regions: u64,
    classes: u64,
    pictures: Pictures,
}

/// Anchors at each place.
const ANCHORS: u64 = 3;
/// The side of a region's map.
const SIDE: u64 = 7;

// Like the other networks' builders, so that one table can list them all.
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(FasterRcnn {
        hidden: sizes.or("hidden", 256),
        wide: sizes.or("ffn", 1024),
        regions: sizes.or("regions", 512),
        classes: sizes.or("classes", 91),
        pictures: Pictures::of(sizes, 800),
    }))
}

impl Net for FasterRcnn {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let b = data.micro_batch;
        let regions = b.saturating_mul(self.regions);
        let pixels = [b, 3, self.pictures.height, self.pictures.width];
        vec![
            cx.tape.empty("images", pixels, cx.env.weights),
            cx.tape.empty("boxes", [regions, 4], cx.env.weights),
            cx.tape.empty("labels", [regions], DType::I64),
            cx.tape
                .empty("regression_targets", [regions, 4], cx.env.weights),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, boxes, labels, targets] = batch else {
            return Output::empty(cx);
        };
        let maps = cx.module("backbone", |cx| {
            let features = cx.module("body", |cx| R50.features(cx, image));
            cx.module("fpn", |cx| self.pyramid(cx, &features))
        });
        let proposals = cx.module("rpn", |cx| {
            cx.module("head", |cx| {
                maps.iter()
                    .flat_map(|map| self.proposed(cx, map))
                    .collect::<Vec<_>>()
            })
        });
        let [scores, moved] = cx.module("roi_heads", |cx| self.boxes(cx, &maps, boxes));
        let loss = cx.module("loss", |_| {
            let by_class = scores.cross_entropy(labels);
            let by_place = {
                let own = moved.narrow(1, 4).sub(targets);
                own.mean_all()
            };
            let squares = |part: &Tensor| {
                let wide = part.to(DType::F32);
                wide.pow().pipe(Tensor::mean_all)
            };
            let first = by_class.add(&by_place);
            proposals
                .iter()
                .fold(first, |sum, part| sum.add(&squares(part)))
        });
        let mut held = vec![scores, moved];
        held.extend(proposals);
        Output { loss, held }
    }
}

impl FasterRcnn {
    /// `FeaturePyramidNetwork.forward`, finest first, and a map of every second place of the coarsest.
    fn pyramid(&self, cx: &Cx, features: &[Tensor]) -> Vec<Tensor> {
        let block = |cx: &Cx, list: &'static str, i: usize, x: &Tensor, kernel: u64| {
            cx.module(list, |cx| {
                cx.module(index_name(i), |cx| {
                    let form = Conv::stride(1).padded(kernel / 2);
                    cx.conv2d("0", x, self.hidden, kernel, form, true)
                })
            })
        };
        let mut maps = Vec::new();
        let mut inner: Option<Tensor> = None;
        for (i, map) in features.iter().enumerate().rev() {
            let lateral = block(cx, "inner_blocks", i, map, 1);
            let sum = match inner {
                Some(top) => {
                    let larger = top.interpolate(lateral.size(2), lateral.size(3));
                    lateral.add(&larger)
                }
                None => lateral,
            };
            maps.push(block(cx, "layer_blocks", i, &sum, 3));
            inner = Some(sum);
        }
        maps.reverse();
        let pooled = maps
            .last()
            .map(|coarsest| coarsest.max_pool2d(1, Conv::stride(2)));
        maps.extend(pooled);
        maps
    }

    /// `RPNHead.forward` of a map.
    fn proposed(&self, cx: &Cx, map: &Tensor) -> [Tensor; 2] {
        let x = cx.module("conv", |cx| {
            cx.module("0", |cx| {
                let form = Conv::stride(1).padded(1);
                cx.conv2d("0", map, self.hidden, 3, form, true)
                    .pipe(Tensor::relu_)
            })
        });
        let point = |name, out| cx.conv2d(name, &x, out, 1, Conv::stride(1), true);
        [
            point("cls_logits", ANCHORS),
            point("bbox_pred", 4 * ANCHORS),
        ]
    }

    /// Classes and boxes of regions: a quarter of them on each map.
    fn boxes(&self, cx: &Cx, maps: &[Tensor], boxes: &Tensor) -> [Tensor; 2] {
        let count = boxes.size(0);
        let regions = boxes.constant("cat", &[count, 5], boxes.dtype());
        let levels = boxes.constant("floor", &[count], DType::I64);
        let shape = [count, self.hidden, SIDE, SIDE];
        let dtype = maps.first().map_or(boxes.dtype(), Tensor::dtype);
        let mut pooled = boxes.constant("zeros", &shape, dtype);
        let used = maps.len().saturating_sub(1);
        for (i, map) in maps.iter().take(used).enumerate() {
            let used = used as u64;
            let share = (count + used - 1 - i as u64) / used;
            let index = levels.constant("nonzero", &[share], DType::I64);
            let own = regions.constant("index", &[share, 5], regions.dtype());
            let found = map.roi_align(&own, SIDE);
            pooled = pooled.put_where(&index, &found);
        }
        let flat = pooled.reshape(&[count, self.hidden * SIDE * SIDE]);
        drop((regions, levels, pooled));
        let x = cx.module("box_head", |cx| {
            let x = cx.linear("fc6", &flat, self.wide, true).pipe(Tensor::relu);
            cx.linear("fc7", &x, self.wide, true).pipe(Tensor::relu)
        });
        cx.module("box_predictor", |cx| {
            [
                cx.linear("cls_score", &x, self.classes, true),
                cx.linear("bbox_pred", &x, self.classes.saturating_mul(4), true),
            ]
        })
    }
}
