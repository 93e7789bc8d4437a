//! UNet of five stages (mmseg/models/backbones/unet.py): its maps are those of the decoder, the coarsest first.

use super::layers::{joined, plane, point, three};
use crate::nets::vision::index_name;
use crate::nets::{Cx, Region};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

const STAGES: usize = 5;

pub(super) fn maps(cx: &Cx, image: &Tensor, width: u64) -> Vec<Tensor> {
    let channels = |stage: usize| width.saturating_mul(1 << stage);
    let mut encoded: Vec<Tensor> = Vec::new();
    for stage in 0..STAGES {
        let input = match encoded.last() {
            Some(x) => x.max_pool2d(2, Conv::stride(2)),
            None => image.clone(),
        };
        let place = if stage == 0 { "0" } else { "1" };
        encoded.push(cx.list_item("encoder", stage, |cx| {
            cx.module(place, |cx| twice(cx, &input, channels(stage)))
        }));
    }
    let mut decoded: Vec<Tensor> = encoded.pop().into_iter().collect();
    for (stage, skip) in encoded.iter().enumerate().rev() {
        let Some(below) = decoded.last() else {
            break;
        };
        let out = cx.list_item("decoder", stage, |cx| {
            // `InterpConv`.
            let [height, width] = plane(skip);
            let larger = below.interpolate(height, width);
            let larger = cx.module("upsample", |cx| {
                cx.conv_module("1", &larger, point(channels(stage)))
            });
            let both = joined(skip, &[larger]);
            cx.module("conv_block", |cx| twice(cx, &both, channels(stage)))
        });
        decoded.push(out);
    }
    decoded
}

/// `BasicConvBlock`.
fn twice(cx: &Cx, x: &Tensor, channels: u64) -> Tensor {
    cx.module("convs", |cx| {
        cx.unary_block(Region::Convolutions, x, move |cx, x| {
            (0..2).fold(x.clone(), |x, i| {
                cx.conv_module(index_name(i), &x, three(channels))
            })
        })
    })
}
