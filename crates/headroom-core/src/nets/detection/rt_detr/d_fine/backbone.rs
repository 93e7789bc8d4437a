//! HGNetV2: blocks whose layers' results are all joined and squeezed (transformers/models/hgnet_v2/modeling_hgnet_v2.py).

use crate::nets::detection::backbone::frozen_norm;
use crate::nets::detection::joined;
use crate::nets::detection::rt_detr::Features;
use crate::nets::vision::index_name;
use crate::nets::{Cx, ModelError, Region, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

#[derive(Clone, Debug)]
pub(super) struct HgNet {
    /// Widths of the stem: inside, and at its end (the list begins with the colours).
    stem: [u64; 2],
    stages: Vec<Stage>,
    /// The last so many stages' maps are returned.
    outs: usize,
    form: Form,
}

#[derive(Clone, Copy, Debug)]
struct Stage {
    middle: u64,
    out: u64,
    blocks: u64,
    layers: u64,
}

/// How its convolutions are followed.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// A learned factor and summand behind each activation (`use_learnable_affine_block`).
    affine: bool,
    /// `freeze_backbone_batch_norms`.
    frozen: bool,
}

impl HgNet {
    pub(super) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        let [middle, out, blocks, layers] = [
            sizes.list("middles")?,
            sizes.list("dims")?,
            sizes.list("depths")?,
            sizes.list("block_layers")?,
        ];
        let stages = middle.iter().zip(out).zip(blocks).zip(layers);
        let stages = stages.map(|(((middle, out), blocks), layers)| Stage {
            middle: *middle,
            out: *out,
            blocks: *blocks,
            layers: *layers,
        });
        let stem = sizes.list("stems")?;
        let at = |i: usize| stem.get(i).copied().unwrap_or(32).max(2);
        Ok(Self {
            stem: [at(1), at(2)],
            stages: stages.collect(),
            outs: sizes.or("levels", 3) as usize,
            form: Form {
                affine: sizes.is_set("affine"),
                frozen: sizes.or("frozen_norms", 1) != 0,
            },
        })
    }

    /// `HGNetV2Embeddings.forward`.
    fn embedded(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let [inner, out] = self.stem;
        let form = self.form;
        let layer = |name, x: &Tensor, out, kernel, stride| {
            cx.module(name, |cx| form.run(cx, x, out, [kernel, stride, 1], true))
        };
        let mut x = layer("stem1", image, inner, 3, 2);
        x = x.padded_plane_at_end([1, 1]);
        let mut second = layer("stem2a", &x, inner / 2, 2, 1);
        second = second.padded_plane_at_end([1, 1]);
        second = layer("stem2b", &second, inner, 2, 1);
        let pooled = x.max_pool2d(2, Conv::stride(1));
        x = Tensor::cat(&pooled, &[&second], 1);
        x = layer("stem3", &x, inner, 3, 2);
        layer("stem4", &x, out, 1, 1)
    }

    fn stage(&self, cx: &Cx, x: &Tensor, stage: Stage, at: usize) -> Tensor {
        let form = self.form;
        let mut x = x.clone();
        if at > 0 {
            let width = x.size(1);
            x = cx.module("downsample", |cx| {
                form.run(cx, &x, width, [3, 2, width], false)
            });
        }
        cx.module("blocks", |cx| {
            (0..stage.blocks as usize).fold(x, |x, i| {
                cx.module(index_name(i), |cx| {
                    cx.unary_block(Region::Convolutions, &x, move |cx, x| {
                        form.block(cx, x, stage, at, i > 0)
                    })
                })
            })
        })
    }
}

impl Features for HgNet {
    fn features(&self, cx: &Cx, image: &Tensor) -> Vec<Tensor> {
        let mut x = cx.module("embedder", |cx| self.embedded(cx, image));
        let mut all = vec![x.clone()];
        cx.module("encoder", |cx| {
            for (at, stage) in self.stages.iter().enumerate() {
                x = cx.module("stages", |cx| {
                    cx.module(index_name(at), |cx| self.stage(cx, &x, *stage, at))
                });
                all.push(x.clone());
            }
        });
        all.split_off(all.len().saturating_sub(self.outs))
    }
}

impl Form {
    /// `HGNetV2ConvLayer.forward`.
    fn run(
        self,
        cx: &Cx,
        x: &Tensor,
        out: u64,
        [kernel, stride, groups]: [u64; 3],
        activates: bool,
    ) -> Tensor {
        let padding = kernel.saturating_sub(1) / 2;
        let form = Conv::stride(stride).padded(padding).grouped(groups);
        let mut x = cx.conv2d("convolution", x, out, kernel, form, false);
        x = if self.frozen {
            frozen_norm(cx, "normalization", &x)
        } else {
            cx.batch_norm("normalization", &x)
        };
        if !activates {
            return x;
        }
        x = x.relu();
        if !self.affine {
            return x;
        }
        cx.module("lab", |cx| {
            let scale = cx.param("scale", [1]).tensor();
            let bias = cx.param("bias", [1]).tensor();
            scale.mul(&x).pipe(|scaled| scaled.add(&bias))
        })
    }

    /// `HGNetV2BasicLayer.forward`: light convolutions in the later two stages, with a wider kernel.
    fn block(self, cx: &Cx, x: &Tensor, stage: Stage, at: usize, residual: bool) -> Tensor {
        let middle = stage.middle;
        let mut all = vec![x.clone()];
        cx.module("layers", |cx| {
            for i in 0..stage.layers as usize {
                let Some(last) = all.last().cloned() else {
                    break;
                };
                let next = cx.module(index_name(i), |cx| {
                    if at < 2 {
                        return self.run(cx, &last, middle, [3, 1, 1], true);
                    }
                    let point =
                        cx.module("conv1", |cx| self.run(cx, &last, middle, [1, 1, 1], false));
                    cx.module("conv2", |cx| {
                        self.run(cx, &point, middle, [5, 1, middle], true)
                    })
                });
                all.push(next);
            }
        });
        let together = joined(&all, 1, x);
        let out = cx.module("aggregation", |cx| {
            let narrow = cx.module("0", |cx| {
                self.run(cx, &together, stage.out / 2, [1, 1, 1], true)
            });
            cx.module("1", |cx| self.run(cx, &narrow, stage.out, [1, 1, 1], true))
        });
        if residual { out.add(x) } else { out }
    }
}
