//! HRNet (mmseg/models/backbones/hrnet.py): maps of several sizes side by side, which are mixed after every few blocks.

use std::cmp::Ordering;

use super::layers::plane;
use crate::nets::error::at_most;
use crate::nets::sizes::MOST_RUNS;
use crate::nets::vision::index_name;
use crate::nets::vision::resnet::{R50, basic};
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

#[derive(Clone, Debug)]
pub(in crate::nets) struct HrNet {
    /// Channels of the finest map; each coarser one has twice as many.
    width: u64,
    /// `num_blocks` of every branch, and of the first stage.
    blocks: u64,
    /// `num_modules` of the second, third and fourth stage.
    modules: Vec<u64>,
}

/// The most maps.
const BRANCHES: u64 = 4;
const STAGES: [(&str, &str); 3] = [
    ("transition1", "stage2"),
    ("transition2", "stage3"),
    ("transition3", "stage4"),
];

impl HrNet {
    pub(in crate::nets) fn of(sizes: &Sizes, width: u64) -> Result<Self, ModelError> {
        let modules = sizes.list("modules").ok().filter(|all| all.len() == 3);
        let blocks = sizes.or("blocks", 4);
        let modules = modules.map_or_else(|| vec![1, 4, 3], <[u64]>::to_vec);
        let all = modules.iter().copied().fold(0, u64::saturating_add);
        at_most("modules × blocks", all.saturating_mul(blocks), MOST_RUNS)?;
        Ok(Self {
            width,
            blocks,
            modules,
        })
    }

    pub(in crate::nets) fn maps(&self, cx: &Cx, image: &Tensor) -> Vec<Tensor> {
        let halved = |conv, norm, x: &Tensor| layer(cx, [conv, norm], x, (64, 2)).relu_();
        let x = halved("conv1", "bn1", image).pipe(|x| halved("conv2", "bn2", x));
        let mut maps = vec![R50.first_stage(cx, &x, self.blocks)];
        for ((transition, stage), modules) in STAGES.into_iter().zip(&self.modules) {
            maps = cx.module(transition, |cx| self.widened(cx, &maps));
            for i in 0..*modules as usize {
                maps = cx.list_item(stage, i, |cx| {
                    let blocks = self.blocks as usize;
                    let deep = |(i, x): (usize, &Tensor)| {
                        cx.list_item("branches", i, |cx| branch(cx, x, blocks))
                    };
                    let deep: Vec<Tensor> = maps.iter().enumerate().map(deep).collect();
                    mixed(cx, deep)
                });
            }
        }
        maps
    }

    /// `_make_transition_layer`: one map more, of half the last one's side.
    fn widened(&self, cx: &Cx, maps: &[Tensor]) -> Vec<Tensor> {
        let count = maps.len().min(BRANCHES as usize);
        let out = |i: usize| self.width.saturating_mul(1 << i);
        let Some(last) = maps.last() else {
            return Vec::new();
        };
        let mut all: Vec<Tensor> = (maps.iter().take(count).enumerate())
            .map(|(i, map)| {
                if map.size(1) == out(i) {
                    return map.clone();
                }
                cx.module(index_name(i), |cx| {
                    layer(cx, ["0", "1"], map, (out(i), 1)).relu_()
                })
            })
            .collect();
        all.push(cx.module(index_name(count), |cx| {
            cx.module("0", |cx| {
                layer(cx, ["0", "1"], last, (out(count), 2)).relu_()
            })
        }));
        all
    }
}

/// A convolution of three by three and its norm.
fn layer(
    cx: &Cx,
    [conv, norm]: [&'static str; 2],
    x: &Tensor,
    (out, stride): (u64, u64),
) -> Tensor {
    let y = cx.conv2d(conv, x, out, 3, Conv::stride(stride).padded(1), false);
    cx.batch_norm(norm, &y)
}

fn branch(cx: &Cx, x: &Tensor, blocks: usize) -> Tensor {
    let channels = x.size(1);
    cx.blocks(blocks, x, move |cx, x, _| {
        basic(cx, x, channels, Conv::stride(1).padded(1))
    })
}

/// `HRModule.forward`: each map with all others at its size.
fn mixed(cx: &Cx, maps: Vec<Tensor>) -> Vec<Tensor> {
    let fused = |i: usize, map: &Tensor| {
        let [height, width] = plane(map);
        let mut sum: Option<Tensor> = None;
        for (j, other) in maps.iter().enumerate() {
            let part = match j.cmp(&i) {
                Ordering::Equal => other.clone(),
                Ordering::Greater => {
                    let small = cx.list_item("fuse_layers", i, |cx| {
                        cx.module(index_name(j), |cx| {
                            let y = cx.conv2d("0", other, map.size(1), 1, Conv::default(), false);
                            cx.batch_norm("1", &y)
                        })
                    });
                    // `Upsample` to the size, and `resize` to the same once more.
                    let large = small.pipe(|small| small.interpolate(height, width));
                    large.pipe(|large| large.interpolate(height, width))
                }
                Ordering::Less => cx.list_item("fuse_layers", i, |cx| {
                    cx.module(index_name(j), |cx| {
                        halved_times(cx, other, i - j, map.size(1))
                    })
                }),
            };
            sum = Some(match sum {
                None => part,
                // `y += x` writes to a tensor of its own from the second on; the first sum is `0 + x`.
                Some(sum) => sum.add(&part),
            });
        }
        sum.unwrap_or_else(|| map.clone()).relu()
    };
    maps.iter()
        .enumerate()
        .map(|(i, map)| fused(i, map))
        .collect()
}

/// Halved so many times; the last time to the other map's channels, without an activation.
fn halved_times(cx: &Cx, x: &Tensor, times: usize, channels: u64) -> Tensor {
    let own = x.size(1);
    (0..times).fold(x.clone(), |x, k| {
        cx.module(index_name(k), |cx| {
            if k + 1 == times {
                layer(cx, ["0", "1"], &x, (channels, 2))
            } else {
                layer(cx, ["0", "1"], &x, (own, 2)).relu()
            }
        })
    })
}
