//! Estimators of depth: DPT and Depth Anything (transformers/models/{dpt,depth_anything}/modeling_*.py). Their classes leave the
//! loss to others: here it is the mean distance to a map of depths.

mod neck;

use neck::Neck;

use super::net::Build;
use super::pictures::PlainLayer;
use super::vit::{Layer, patches};
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("depth_anything", |sizes| build(sizes, Model::DepthAnything)),
    ("dpt", |sizes| build(sizes, Model::Dpt)),
];

/// Maps of the neck: one of each of so many layers.
const MAPS: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    /// A ViT of its own; each patch reads the class token of its layer.
    Dpt,
    /// DINOv2's backbone, whose states are normed.
    DepthAnything,
}

#[derive(Clone, Debug)]
struct Depth {
    model: Model,
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    image: u64,
    /// The side of the pictures that the table of positions is for.
    table: u64,
    patch: u64,
    /// Behind how many layers a map is taken.
    outs: Vec<u64>,
    neck: Neck,
    /// `head_hidden_size`.
    head: u64,
}

fn build(sizes: &Sizes, model: Model) -> Result<Box<dyn Net>, ModelError> {
    let (hidden, layers) = (sizes.need("hidden")?, sizes.need("layers")?);
    let anything = model == Model::DepthAnything;
    let image = sizes.or("img", if anything { 518 } else { 384 });
    let patch = sizes.or("patch", if anything { 14 } else { 16 }).max(1);
    if image < patch {
        return Err(ModelError::TooSmall {
            name: "img",
            value: image,
            least: patch,
        });
    }
    let last = layers.saturating_sub(MAPS) + 1..=layers;
    let outs = match sizes.list("outs") {
        // The last ones of a model with fewer layers than these.
        Ok(outs) if outs.iter().all(|out| *out <= layers) => outs.to_vec(),
        _ => last.collect(),
    };
    let neck = Neck::of(sizes, anything)?;
    if outs.len() != neck.widths.len() {
        return Err(ModelError::MismatchedLists {
            names: "`outs` and `necks`",
            expected: "one of each for four maps",
        });
    }
    Ok(Box::new(Depth {
        model,
        layers,
        hidden,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.or("ffn", hidden.saturating_mul(4)),
        image,
        table: sizes.or("table", image),
        patch,
        outs,
        neck,
        head: sizes.or("head_hidden", 32),
    }))
}

impl Net for Depth {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let (n, side) = (data.micro_batch, self.image);
        let weights = cx.env.weights;
        vec![
            cx.tape.empty("pixel_values", [n, 3, side, side], weights),
            cx.tape.empty("depth", [n, side, side], weights),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, depths] = batch else {
            return Output::empty(cx);
        };
        let side = self.image / self.patch;
        let (states, maps) = match self.model {
            Model::Dpt => cx.module("dpt", |cx| self.features(cx, image)),
            Model::DepthAnything => cx.module("backbone", |cx| self.features(cx, image)),
        };
        let fused = cx.module("neck", |cx| self.neck.forward(cx, &maps, [side, side]));
        let mut held = states;
        match self.model {
            Model::Dpt => drop(maps),
            // The backbone's output holds them.
            Model::DepthAnything => held.extend(maps),
        }
        let found = cx.module("head", |cx| self.head(cx, &fused));
        let loss = cx.module("loss", |_| {
            let (found, depths) = (found.to(DType::F32), depths.to(DType::F32));
            found.sub(&depths).abs().mean_all()
        });
        held.push(found);
        Output { loss, held }
    }
}

impl Depth {
    /// All hidden states, which the output holds, and those that maps are made of.
    fn features(&self, cx: &Cx, image: &Tensor) -> (Vec<Tensor>, Vec<Tensor>) {
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, image));
        let mut states = vec![embedded];
        for i in 0..self.layers as usize {
            if cx.tape.is_over_budget() {
                break;
            }
            let input: Vec<Tensor> = states.last().cloned().into_iter().collect();
            let made = cx.module("encoder", |cx| self.layer(cx, i, input));
            states.extend(made);
        }
        let maps: Vec<Tensor> = self
            .outs
            .iter()
            .filter_map(|out| states.get(*out as usize).cloned())
            .collect();
        match self.model {
            // The last state is normed and not read.
            Model::Dpt => {
                let last = states.last().map(|last| cx.layer_norm("layernorm", last));
                states.extend(last);
                (states, maps)
            }
            Model::DepthAnything => {
                let normed = |map: &Tensor| cx.layer_norm("layernorm", map);
                let maps = maps.iter().map(normed).collect();
                (states, maps)
            }
        }
    }

    fn layer(&self, cx: &Cx, i: usize, input: Vec<Tensor>) -> Vec<Tensor> {
        let (hidden, heads, ffn) = (self.hidden, self.heads, self.ffn);
        match self.model {
            Model::Dpt => {
                let layer = PlainLayer {
                    hidden,
                    heads,
                    ffn,
                    biases: [true; 3],
                };
                cx.layer("layer", i, input, move |cx, state| {
                    state.iter().map(|x| layer.run(cx, x)).collect()
                })
            }
            Model::DepthAnything => {
                let layer = Layer {
                    hidden,
                    heads,
                    ffn,
                    dropout: 0.0,
                    scaled: true,
                    gated: false,
                };
                cx.layer("layer", i, input, move |cx, state| {
                    state.iter().map(|x| layer.run(cx, x)).collect()
                })
            }
        }
    }

    fn embeddings(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let (hidden, own) = (self.hidden, self.table / self.patch);
        let token = cx.param("cls_token", [1, 1, hidden]);
        if self.model == Model::DepthAnything {
            // Only DINOv2's pre-training reads it.
            cx.param("mask_token", [1, hidden]);
        }
        let places = own.saturating_mul(own).saturating_add(1);
        let positions = cx
            .param("position_embeddings", [1, places, hidden])
            .tensor();
        // DPT resizes positions even where they fit, and first.
        let resized = (self.model == Model::Dpt).then(|| self.resized(&positions));
        let grid = cx.module("patch_embeddings", |cx| {
            patches(cx, "projection", image, hidden, self.patch)
        });
        let token = token.tensor().expand(&[image.size(0), 1, hidden]);
        let joined = Tensor::cat(&token, &[&grid], 1);
        let fits = self.table == self.image;
        let positions = match resized {
            Some(resized) => resized,
            None if fits => positions,
            None => self.resized(&positions),
        };
        joined.add(&positions)
    }

    /// `_resize_pos_embed` and `interpolate_pos_encoding`, which runs in fp32.
    fn resized(&self, table: &Tensor) -> Tensor {
        let (hidden, own) = (self.hidden, self.table / self.patch);
        let side = self.image / self.patch;
        let grid = table
            .narrow(1, own.saturating_mul(own))
            .reshape(&[1, own, own, hidden])
            .permute(&[0, 3, 1, 2]);
        let grid = match self.model {
            Model::Dpt => grid.interpolate(side, side),
            Model::DepthAnything => grid
                .to(DType::F32)
                .interpolate(side, side)
                .to(table.dtype()),
        };
        let rows = grid
            .permute(&[0, 2, 3, 1])
            .reshape(&[1, side.saturating_mul(side), hidden]);
        Tensor::cat(&table.narrow(1, 1), &[&rows], 1)
    }

    /// `DPTDepthEstimationHead` and `DepthAnythingDepthEstimationHead`.
    fn head(&self, cx: &Cx, fused: &[Tensor]) -> Tensor {
        let Some(last) = fused.last() else {
            return cx.tape.empty("depth", [0; 0], DType::F32);
        };
        let (width, three, one) = (self.neck.fusion, Conv::stride(1).padded(1), Conv::stride(1));
        // DPT's are a sequence, where each result replaces what it was made of.
        let (names, anything) = match self.model {
            Model::Dpt => (["0", "2", "4"], false),
            Model::DepthAnything => (["conv1", "conv2", "conv3"], true),
        };
        let run = |cx: &Cx| {
            let mut x = cx.conv2d(names[0], last, width / 2, 3, three, true);
            let sides = if anything {
                [self.image / self.patch * self.patch; 2]
            } else {
                [2, 3].map(|axis| x.size(axis).saturating_mul(2))
            };
            x = x.interpolate(sides[0], sides[1]);
            x = cx.conv2d(names[1], &x, self.head, 3, three, true);
            x = x.relu();
            x = cx.conv2d(names[2], &x, 1, 1, one, true);
            x = x.relu();
            if anything {
                // `max_depth`.
                x = x.mul_scalar();
            }
            x.squeeze(1)
        };
        if anything {
            run(cx)
        } else {
            cx.module("head", run)
        }
    }
}
