//! `DPTNeck` and `DepthAnythingNeck`: hidden states as maps of four resolutions, fused from the coarsest.

use crate::nets::vision::index_name;
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

#[derive(Clone, Debug)]
pub(super) struct Neck {
    /// `neck_hidden_sizes`.
    pub widths: Vec<u64>,
    /// `fusion_hidden_size`.
    pub fusion: u64,
    /// Depth Anything's: maps are resized to the next one, and class tokens are not read.
    anything: bool,
}

impl Neck {
    pub(super) fn of(sizes: &Sizes, anything: bool) -> Result<Self, ModelError> {
        Ok(Self {
            widths: sizes.list("necks")?.to_vec(),
            fusion: sizes.or("fusion", if anything { 64 } else { 256 }),
            anything,
        })
    }

    /// The fused maps, finest last.
    pub(super) fn forward(&self, cx: &Cx, states: &[Tensor], sides: [u64; 2]) -> Vec<Tensor> {
        let maps = cx.module("reassemble_stage", |cx| self.reassemble(cx, states, sides));
        let three = Conv::stride(1).padded(1);
        let features: Vec<Tensor> = maps
            .iter()
            .enumerate()
            .map(|(i, map)| {
                cx.module("convs", |cx| {
                    cx.conv2d(index_name(i), map, self.fusion, 3, three, false)
                })
            })
            .collect();
        let fused = cx.module("fusion_stage", |cx| self.fuse(cx, &features));
        drop((maps, features));
        fused
    }

    fn reassemble(&self, cx: &Cx, states: &[Tensor], [down, across]: [u64; 2]) -> Vec<Tensor> {
        let mut maps = Vec::new();
        for (i, (state, width)) in states.iter().zip(&self.widths).enumerate() {
            let (n, hidden) = (state.size(0), state.size(2));
            let count = down.saturating_mul(across);
            let shape = [n, hidden, down, across];
            let mut grid = state
                .narrow(1, count)
                .reshape(&[n, down, across, hidden])
                .permute(&[0, 3, 1, 2])
                .contiguous();
            if !self.anything {
                // `readout_type` "project".
                let rows = grid.reshape(&[n, hidden, count]).transpose(1, 2);
                let token = state.narrow(1, 1).expand(&[n, count, hidden]);
                let read = Tensor::cat(&rows, &[&token], -1);
                drop((rows, grid));
                let read = cx.list_item("readout_projects", i, |cx| {
                    let x = read.pipe(|read| cx.linear("0", read, hidden, true));
                    x.gelu()
                });
                grid = read.transpose(1, 2).reshape(&shape);
            }
            maps.push(cx.list_item("layers", i, |cx| resized(cx, &grid, i, *width)));
        }
        maps
    }

    fn fuse(&self, cx: &Cx, features: &[Tensor]) -> Vec<Tensor> {
        let mut fused: Vec<Tensor> = Vec::new();
        for (i, feature) in features.iter().rev().enumerate() {
            let next = features.iter().rev().nth(i + 1).filter(|_| self.anything);
            let next = next.map(|map| [map.size(2), map.size(3)]);
            let made = cx.list_item("layers", i, |cx| match fused.last() {
                // Its first unit is not run.
                None => {
                    if cx.tape.declaring() {
                        unit(cx, "residual_layer1", feature);
                    }
                    last_part(cx, feature, next)
                }
                Some(before) => {
                    let residual = if before.shape() == feature.shape() {
                        feature.clone()
                    } else {
                        feature.interpolate(before.size(2), before.size(3))
                    };
                    let joined = before.add(&unit(cx, "residual_layer1", &residual));
                    let out = last_part(cx, &joined, next);
                    drop(residual);
                    out
                }
            });
            fused.push(made);
        }
        fused
    }
}

/// `DPTReassembleLayer`: a projection, and a map four and two times as large, as large, and half as large.
fn resized(cx: &Cx, grid: &Tensor, i: usize, width: u64) -> Tensor {
    let x = cx.conv2d("projection", grid, width, 1, Conv::stride(1), true);
    let wider = |factor| Conv {
        transposed: Some(0),
        ..Conv::stride(factor)
    };
    match i {
        0 => cx.conv2d("resize", &x, width, 4, wider(4), true),
        1 => cx.conv2d("resize", &x, width, 2, wider(2), true),
        2 => x,
        _ => cx.conv2d("resize", &x, width, 3, Conv::stride(2).padded(1), true),
    }
}

/// `DPTPreActResidualLayer`.
fn unit(cx: &Cx, name: &'static str, input: &Tensor) -> Tensor {
    let (width, three) = (input.size(1), Conv::stride(1).padded(1));
    cx.module(name, |cx| {
        let mut x = input.relu();
        x = cx.conv2d("convolution1", &x, width, 3, three, true);
        x = x.relu();
        x = cx.conv2d("convolution2", &x, width, 3, three, true);
        x.add(input)
    })
}

/// The second unit, and its map resized and projected.
fn last_part(cx: &Cx, input: &Tensor, to: Option<[u64; 2]>) -> Tensor {
    let width = input.size(1);
    let mut x = unit(cx, "residual_layer2", input);
    let [down, across] = to.unwrap_or([2, 3].map(|axis| x.size(axis).saturating_mul(2)));
    x = x.interpolate(down, across);
    cx.conv2d("projection", &x, width, 1, Conv::stride(1), true)
}
