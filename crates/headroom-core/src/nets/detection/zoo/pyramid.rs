//! Pyramids: FPN with what it adds at its top, and HRNet's (mmdet/models/necks/fpn.py and hrfpn.py).

use super::trunk::Norm;
use crate::nets::Cx;
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// Channels of every map.
pub(super) const WIDE: u64 = 256;

/// The maps above those of the backbone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Top {
    /// Every second place of the coarsest.
    Pooled,
    /// Two convolutions, the first over the backbone's last map.
    OnInput,
    /// Two convolutions over the last output.
    OnOutput,
}

pub(super) fn fpn(cx: &Cx, maps: &[Tensor], top: Top, norm: Option<Norm>) -> Vec<Tensor> {
    let module = |cx: &Cx, list, i, x: &Tensor, (kernel, stride): (u64, u64)| {
        cx.list_item(list, i, |cx| {
            let form = Conv::stride(stride).padded(kernel / 2);
            let y = cx.conv2d("conv", x, WIDE, kernel, form, norm.is_none());
            match norm {
                Some(norm) => norm.apply(cx, "bn", &y),
                None => y,
            }
        })
    };
    let mut laterals: Vec<Tensor> = (maps.iter().enumerate())
        .map(|(i, map)| module(cx, "lateral_convs", i, map, (1, 1)))
        .collect();
    for i in (1..laterals.len()).rev() {
        let (Some(own), Some(above)) = (laterals.get(i - 1), laterals.get(i)) else {
            continue;
        };
        let larger = above.interpolate(own.size(2), own.size(3));
        let sum = own.add_(&larger);
        if let Some(place) = laterals.get_mut(i - 1) {
            *place = sum;
        }
    }
    let mut outs: Vec<Tensor> = (laterals.iter().enumerate())
        .map(|(i, map)| module(cx, "fpn_convs", i, map, (3, 1)))
        .collect();
    drop(laterals);
    let (Some(last), Some(input)) = (outs.last().cloned(), maps.last()) else {
        return outs;
    };
    let count = outs.len();
    match top {
        Top::Pooled => outs.push(last.max_pool2d(1, Conv::stride(2))),
        Top::OnInput | Top::OnOutput => {
            let source = if top == Top::OnInput { input } else { &last };
            let first = module(cx, "fpn_convs", count, source, (3, 2));
            let active = if top == Top::OnOutput {
                first.relu()
            } else {
                first.clone()
            };
            let second = module(cx, "fpn_convs", count + 1, &active, (3, 2));
            outs.extend([first, second]);
        }
    }
    outs
}

/// `HRFPN.forward`; its last convolutions may step by two.
pub(super) fn hrfpn(cx: &Cx, maps: &[Tensor], stride: u64) -> Vec<Tensor> {
    const LEVELS: usize = 5;
    let Some((first, rest)) = maps.split_first() else {
        return Vec::new();
    };
    let larger: Vec<Tensor> = (rest.iter())
        .map(|map| map.interpolate(first.size(2), first.size(3)))
        .collect();
    let all = Tensor::cat(first, &larger.iter().collect::<Vec<_>>(), 1);
    drop(larger);
    let reduced = cx.module("reduction_conv", |cx| {
        cx.conv2d("conv", &all, WIDE, 1, Conv::default(), true)
    });
    drop(all);
    let pooled: Vec<Tensor> = (0..LEVELS)
        .map(|i| match i {
            0 => reduced.clone(),
            _ => reduced.avg_pool2d(1 << i, Conv::stride(1 << i)),
        })
        .collect();
    (pooled.iter().enumerate())
        .map(|(i, map)| {
            cx.list_item("fpn_convs", i, |cx| {
                cx.conv2d("conv", map, WIDE, 3, Conv::stride(stride).padded(1), true)
            })
        })
        .collect()
}
