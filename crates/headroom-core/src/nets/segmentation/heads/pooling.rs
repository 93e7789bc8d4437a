//! `PSPHead` and `UPerHead`: means of parts of the map beside the map.

use super::super::backbone::Maps;
use super::super::layers::{joined, plane, point, three};
use crate::nets::Cx;
use crate::tape::Tensor;

pub(super) fn pooled(cx: &Cx, x: &Tensor, channels: u64) -> Tensor {
    let parts = cx.pooling_pyramid(x, channels);
    let all = joined(x, &parts);
    drop(parts);
    cx.conv_module("bottleneck", &all, three(channels))
}

/// The same on the last map, added up with finer ones, and all of them together.
pub(super) fn unified(cx: &Cx, maps: &Maps, channels: u64) -> Tensor {
    let all: Vec<&Tensor> = maps.iter().collect();
    let finer = all.len().saturating_sub(1);
    // `inplace=False`.
    let lateral = |(i, map): (usize, &&Tensor)| {
        cx.list_item("lateral_convs", i, |cx| {
            cx.unnamed_conv_module(map, point(channels))
        })
    };
    let mut laterals: Vec<Tensor> = all.iter().take(finer).enumerate().map(lateral).collect();
    laterals.push(pooled(cx, maps.last(), channels));
    for i in (1..laterals.len()).rev() {
        let (Some(own), Some(above)) = (laterals.get(i - 1), laterals.get(i)) else {
            continue;
        };
        let [height, width] = plane(own);
        let larger = above.interpolate(height, width);
        let sum = own.add(&larger);
        if let Some(place) = laterals.get_mut(i - 1) {
            *place = sum;
        }
    }
    let [height, width] = laterals.first().map_or([1, 1], plane);
    let smooth = |(i, map): (usize, &Tensor)| {
        if i == finer {
            map.clone()
        } else {
            cx.list_item("fpn_convs", i, |cx| {
                cx.unnamed_conv_module(map, three(channels))
            })
        }
    };
    let mut outs: Vec<Tensor> = laterals.iter().enumerate().map(smooth).collect();
    for map in outs.iter_mut().skip(1).rev() {
        *map = map.interpolate(height, width);
    }
    let all = match outs.split_first() {
        Some((first, rest)) => joined(first, rest),
        None => maps.first().clone(),
    };
    drop((laterals, outs));
    cx.conv_module("fpn_bottleneck", &all, three(channels))
}
