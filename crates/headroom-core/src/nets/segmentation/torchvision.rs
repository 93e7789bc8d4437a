//! torchvision's FCN and DeepLabV3 (torchvision/models/segmentation): logits by name, with an auxiliary head if it is asked for.

use super::Picture;
use super::layers::{Window, joined, plane, three, window};
use crate::nets::vision::index_name;
use crate::nets::vision::resnet::ResNet;
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Segmenter {
    body: ResNet,
    /// ASPP, else convolutions.
    dilated: bool,
    auxiliary: bool,
    classes: u64,
    picture: Picture,
}

pub(super) fn fcn(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, false)
}

pub(super) fn deeplab(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, true)
}

fn build(sizes: &Sizes, dilated: bool) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Segmenter {
        body: ResNet::of_depths(sizes)?.dilated(8),
        dilated,
        auxiliary: sizes.is_set("aux"),
        classes: sizes.or("classes", 21),
        picture: Picture::of(sizes, [480, 480]),
    }))
}

impl Net for Segmenter {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        self.picture.batch(cx, data.micro_batch)
    }

    fn computes_loss_outside(&self) -> bool {
        true
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, labels] = batch else {
            return Output::empty(cx);
        };
        let run = |batch: Vec<Tensor>| match batch.first() {
            Some(image) => self.logits(cx, image),
            None => Vec::new(),
        };
        let logits = cx.as_model(vec![image.clone()], &run);
        let loss = cx.module("loss", |_| {
            let of = |logits: &Tensor| logits.cross_entropy(labels);
            let mut all = logits.iter().map(of);
            let first = all.next();
            // `losses["out"] + 0.5 * losses["aux"]`.
            match (first, all.next()) {
                (Some(first), Some(other)) => first.add(&other.mul_scalar()),
                (Some(first), None) => first,
                (None, _) => Output::empty(cx).loss,
            }
        });
        Output { loss, held: logits }
    }
}

impl Segmenter {
    /// `_SimpleSegmentationModel.forward`.
    fn logits(&self, cx: &Cx, image: &Tensor) -> Vec<Tensor> {
        let mut maps = cx.module("backbone", |cx| self.body.features(cx, image));
        let last = maps.pop().unwrap_or_else(|| image.clone());
        // `IntermediateLayerGetter` returns what the heads read.
        let middle = maps.pop().filter(|_| self.auxiliary);
        drop(maps);
        let [height, width] = plane(image);
        let mut x = cx.module("classifier", |cx| {
            if self.dilated {
                self.pooled(cx, &last)
            } else {
                self.convolved(cx, &last)
            }
        });
        x = x.interpolate(height, width);
        let other = middle.map(|middle| {
            let x = cx.module("aux_classifier", |cx| self.convolved(cx, &middle));
            x.interpolate(height, width)
        });
        std::iter::once(x).chain(other).collect()
    }

    /// `FCNHead`.
    fn convolved(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let mut y = layer(cx, ["0", "1"], x, three(x.size(1) / 4)).relu();
        y = cx.dropout(&y, 0.1);
        cx.conv2d("4", &y, self.classes, 1, Conv::default(), true)
    }

    /// `DeepLabHead`.
    fn pooled(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let [height, width] = plane(x);
        let mut y = cx.module("0", |cx| {
            let all = cx.module("convs", |cx| {
                let windows = [
                    window(256, 1, 1),
                    window(256, 3, 12),
                    window(256, 3, 24),
                    window(256, 3, 36),
                ];
                let mut all: Vec<Tensor> = (windows.into_iter().enumerate())
                    .map(|(i, window)| {
                        cx.module(index_name(i), |cx| layer(cx, ["0", "1"], x, window).relu())
                    })
                    .collect();
                all.push(cx.module("4", |cx| {
                    let mean = x.adaptive_avg_pool2d(1);
                    let mean = layer(cx, ["1", "2"], &mean, window(256, 1, 1)).relu();
                    mean.interpolate(height, width)
                }));
                all
            });
            let all = match all.split_first() {
                Some((first, rest)) => joined(first, rest),
                None => x.clone(),
            };
            cx.module("project", |cx| {
                let y = layer(cx, ["0", "1"], &all, window(256, 1, 1)).relu();
                cx.dropout(&y, 0.5)
            })
        });
        y = layer(cx, ["1", "2"], &y, three(256)).relu();
        cx.conv2d("4", &y, self.classes, 1, Conv::default(), true)
    }
}

/// A convolution and its norm.
fn layer(cx: &Cx, [conv, norm]: [&'static str; 2], x: &Tensor, window: Window) -> Tensor {
    let y = cx.conv2d(conv, x, window.out, window.kernel, window.form(), false);
    cx.batch_norm(norm, &y)
}
