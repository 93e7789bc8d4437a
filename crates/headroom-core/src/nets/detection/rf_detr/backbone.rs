//! DINOv2 over windows of patches, of which some layers see all, and the projector of several layers' maps
//! (`RfDetrDinov2Backbone`, `RfDetrScaleProjector`).

use crate::nets::detection::joined;
use crate::nets::vision::index_name;
use crate::nets::vit::{Layer, patches};
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

#[derive(Clone, Debug)]
pub(super) struct Backbone {
    layers: u64,
    layer: Layer,
    patch: u64,
    /// Windows along a side.
    windows: u64,
    /// Pixels along the side that the table of positions is for.
    table: u64,
    /// Behind so many layers are the maps; the layers of these numbers attend to all windows.
    outs: Vec<u64>,
    /// Blocks of the projector, and their width in percent.
    blocks: u64,
    inner: u64,
}

impl Backbone {
    pub(super) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        let hidden = sizes.need("v_hidden")?;
        let share = sizes.or("expansion_percent", 50);
        Ok(Self {
            layers: sizes.need("v_layers")?,
            layer: Layer {
                hidden,
                heads: sizes.need("v_heads")?.max(1),
                ffn: 4 * hidden,
                dropout: 0.0,
                scaled: true,
                gated: false,
            },
            patch: sizes.or("patch", 14).max(1),
            windows: sizes.or("windows", 4).max(1),
            table: sizes.or("table", 518),
            outs: sizes.list("taps")?.to_vec(),
            blocks: sizes.or("fusion_blocks", 3),
            inner: sizes.need("hidden")?.saturating_mul(share) / 100,
        })
    }

    /// What pictures' sides are multiples of.
    pub(super) fn step(&self) -> u64 {
        self.patch.saturating_mul(self.windows)
    }

    /// One map of all.
    pub(super) fn run(&self, cx: &Cx, image: &Tensor, out: u64) -> Tensor {
        let maps = cx.module("backbone", |cx| self.maps(cx, image));
        cx.module("projector", |cx| self.projected(cx, &maps, out))
    }

    fn maps(&self, cx: &Cx, image: &Tensor) -> Vec<Tensor> {
        let n = image.size(0);
        let grid = [2, 3].map(|axis| image.size(axis) / self.patch);
        let mut hidden = cx.module("embeddings", |cx| self.embedded(cx, image, grid));
        let mut states = vec![hidden.clone()];
        let squared = self.windows.saturating_mul(self.windows);
        cx.module("encoder", |cx| {
            for i in 0..self.layers as usize {
                if cx.tape.is_over_budget() {
                    break;
                }
                let (layer, sees_all) = (self.layer, self.outs.contains(&(i as u64)));
                let outputs = cx.layer("layer", i, vec![hidden.clone()], move |cx, state| {
                    let run = |x: &Tensor| {
                        if !sees_all {
                            return layer.run(cx, x);
                        }
                        let (all, count) = (x.size(0) / squared, x.size(1));
                        let merged = x.view(&[all, squared * count, x.size(2)]);
                        layer.run(cx, &merged).view(x.shape())
                    };
                    state.iter().map(run).collect()
                });
                hidden = outputs.into_iter().next().unwrap_or(hidden.clone());
                states.push(hidden.clone());
            }
        });
        let chosen = self.outs.iter().filter_map(|i| states.get(*i as usize));
        let maps = chosen.map(|state| {
            let normed = cx.layer_norm("layernorm", state);
            let patches = normed.narrow(1, normed.size(1).saturating_sub(1));
            let width = patches.size(-1);
            let [down, across] = grid;
            let patches = if self.windows > 1 {
                let each = grid.map(|side| side / self.windows);
                let shape = [n, self.windows, self.windows, each[0], each[1], width];
                let all = patches.reshape(&[n, down * across, width]);
                all.view(&shape).transpose(2, 3)
            } else {
                patches
            };
            patches
                .reshape(&[n, down, across, width])
                .permute(&[0, 3, 1, 2])
                .contiguous()
        });
        maps.collect()
    }

    /// `RfDetrDinov2Embeddings.forward`.
    fn embedded(&self, cx: &Cx, image: &Tensor, [down, across]: [u64; 2]) -> Tensor {
        let (n, width) = (image.size(0), self.layer.hidden);
        let side = self.table / self.patch;
        let first = cx.param("cls_token", [1, 1, width]);
        // Only its pre-training reads it.
        cx.param("mask_token", [1, width]);
        let positions = cx.param("position_embeddings", [1, side * side + 1, width]);
        let grid = cx.module("patch_embeddings", |cx| {
            patches(cx, "projection", image, width, self.patch)
        });
        let tokens = first.tensor().expand(&[n, 1, width]);
        let mut embedded = Tensor::cat(&tokens, &[&grid], 1);
        drop(grid);
        let places = if [down, across] == [side, side] {
            positions.tensor()
        } else {
            let table = positions.tensor();
            let rest = table.narrow(1, side * side);
            let picture = rest.reshape(&[1, side, side, width]).permute(&[0, 3, 1, 2]);
            let resized = picture
                .to(crate::tape::DType::F32)
                .interpolate(down, across)
                .to(table.dtype());
            let list = resized
                .permute(&[0, 2, 3, 1])
                .reshape(&[1, down * across, width]);
            Tensor::cat(&table.narrow(1, 1), &[&list], 1)
        };
        embedded = embedded.add(&places);
        if self.windows == 1 {
            return embedded;
        }
        let each = [down, across].map(|side| side / self.windows);
        let squared = self.windows.saturating_mul(self.windows);
        let parted = embedded
            .narrow(1, down * across)
            .view(&[n, self.windows, each[0], self.windows, each[1], width])
            .transpose(2, 3)
            .reshape(&[n * squared, each[0] * each[1], width]);
        let first = embedded.narrow(1, 1).repeated(&[n * squared, 1, width]);
        Tensor::cat(&first, &[&parted], 1)
    }

    /// `RfDetrScaleProjector.forward`.
    fn projected(&self, cx: &Cx, maps: &[Tensor], out: u64) -> Tensor {
        let Some(first) = maps.first() else {
            return cx.tape.empty("map", [0; 0], cx.env.weights);
        };
        let all = joined(maps, 1, first);
        let fused = cx.module("projector_layer", |cx| {
            let x = Self::convolved(cx, "conv1", &all, 2 * self.inner, 1);
            let mut parts = x.split(&[self.inner, self.inner], 1);
            drop(x);
            let last = parts.last().map_or_else(|| all.clone(), Tensor::clone);
            let mut hidden = last.contiguous();
            drop(last);
            for i in 0..self.blocks as usize {
                hidden = cx.module("bottlenecks", |cx| {
                    cx.module(index_name(i), |cx| {
                        let x = Self::convolved(cx, "conv1", &hidden, self.inner, 3);
                        Self::convolved(cx, "conv2", &x, self.inner, 3)
                    })
                });
                parts.push(hidden.clone());
            }
            let together = joined(&parts, 1, &all);
            Self::convolved(cx, "conv2", &together, out, 1)
        });
        channel_norm(cx, "layer_norm", &fused)
    }

    /// `RfDetrConvNormLayer.forward`.
    fn convolved(cx: &Cx, name: &'static str, x: &Tensor, out: u64, kernel: u64) -> Tensor {
        cx.module(name, |cx| {
            let form = Conv::stride(1).padded(kernel / 2);
            let x = cx.conv2d("conv", x, out, kernel, form, false);
            channel_norm(cx, "norm", &x).pipe(Tensor::silu)
        })
    }
}

/// A layer norm over channels.
fn channel_norm(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    let last = x.permute(&[0, 2, 3, 1]);
    cx.layer_norm(name, &last).permute(&[0, 3, 1, 2])
}
