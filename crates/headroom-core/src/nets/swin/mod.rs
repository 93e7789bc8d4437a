//! Swin and Swin V2: attention within windows that shift from layer to layer (transformers/models/{swin,swinv2}/modeling_*.py).

mod layer;
mod second;
mod windows;

use std::rc::Rc;

use super::error::at_most;
use super::vit::{images_and_labels, patches};
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::Tensor;
use headroom_scenario::Data;
use layer::Layer;
use windows::merge_patches;

#[derive(Clone, Debug)]
pub(crate) struct Swin {
    embed: u64,
    depths: Vec<u64>,
    heads: Vec<u64>,
    window: u64,
    image: u64,
    patch: u64,
    classes: u64,
    /// Whether it is the second generation: cosine attention, norms behind what they follow.
    second: bool,
    /// As a backbone windows keep their size on small maps, and maps are those before patches are merged.
    whole: bool,
    /// Stochastic depth.
    paths: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build_as(sizes, false)
}

pub(crate) fn second(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build_as(sizes, true)
}

fn build_as(sizes: &Sizes, second: bool) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Swin::new(sizes, second)?))
}

impl Swin {
    fn new(sizes: &Sizes, second: bool) -> Result<Self, ModelError> {
        let (depths, heads) = (sizes.list("depths")?, sizes.list("heads")?);
        if depths.len() != heads.len() {
            return Err(ModelError::MismatchedLists {
                names: "`depths` and `heads`",
                expected: "one of each for every stage",
            });
        }
        let stages = sizes
            .get("stages")
            .and_then(|stages| usize::try_from(stages.max(1)).ok())
            .unwrap_or(usize::MAX);
        let window = sizes.or("window", 7).max(1);
        at_most("window", window, 256)?;
        Ok(Self {
            embed: sizes.need("embed")?,
            depths: depths.iter().copied().take(stages).collect(),
            heads: heads.iter().map(|&n| n.max(1)).take(stages).collect(),
            window,
            image: sizes.or("img", 224),
            patch: sizes.or("patch", 4).max(1),
            classes: sizes.or("classes", 1000),
            second,
            whole: false,
            paths: sizes.or("paths", 1) != 0,
        })
    }

    /// `SwinBackbone`.
    pub(crate) fn backbone(sizes: &Sizes) -> Result<Self, ModelError> {
        Ok(Self {
            whole: true,
            ..Self::new(sizes, false)?
        })
    }

    /// The normed maps of the stages from this one on.
    pub(crate) fn features(&self, cx: &Cx, image: &Tensor, first: usize) -> Vec<Tensor> {
        let maps = cx.module("swin", |cx| {
            let patch = self.patch;
            let [side, even] = [image.size(2), image.size(2).div_ceil(patch) * patch];
            let padded = if even > side {
                image.pad_to(&[image.size(0), image.size(1), even, even])
            } else {
                image.clone()
            };
            let (last, maps) = self.stages(cx, &padded);
            drop(cx.layer_norm("layernorm", &last));
            maps
        });
        let stages = maps.iter().enumerate().skip(first);
        cx.module("hidden_states_norms", |cx| {
            stages
                .map(|(i, map)| {
                    let [n, c, h, w] = [map.size(0), map.size(1), map.size(2), map.size(3)];
                    let rows = map.permute(&[0, 2, 3, 1]).contiguous().view(&[n, h * w, c]);
                    let name = STAGE_NAMES.get(i).copied().unwrap_or("stem");
                    let normed = cx.layer_norm(name, &rows);
                    normed
                        .view(&[n, h, w, c])
                        .permute(&[0, 3, 1, 2])
                        .contiguous()
                })
                .collect()
        })
    }

    /// The last states, and the map of each stage.
    fn stages(&self, cx: &Cx, image: &Tensor) -> (Tensor, Vec<Tensor>) {
        let embedded = cx.module("embeddings", |cx| {
            let embedded = cx.module("patch_embeddings", |cx| {
                patches(cx, "projection", image, self.embed, self.patch)
            });
            cx.layer_norm("norm", &embedded)
        });
        let own = Self {
            image: image.size(2),
            ..self.clone()
        };
        let mut maps = Vec::new();
        let mut hidden = embedded;
        cx.module("encoder", |cx| {
            for i in 0..self.depths.len() {
                let own = own.clone();
                let state = vec![hidden.clone()];
                let outputs = cx.layer("layers", i, state, move |cx, state| match state.first() {
                    Some(input) => own.stage(cx, input, i),
                    None => Vec::new(),
                });
                let mut outputs = outputs.into_iter();
                if let Some(next) = outputs.next() {
                    hidden = next;
                }
                maps.extend(outputs.next());
            }
        });
        (hidden, maps)
    }
}

const STAGE_NAMES: [&str; 4] = ["stage1", "stage2", "stage3", "stage4"];

impl Net for Swin {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        images_and_labels(cx, data, self.image)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, labels] = batch else {
            return Output::empty(cx);
        };
        let (_sequence, pooled) = cx.module(if self.second { "swinv2" } else { "swin" }, |cx| {
            self.model(cx, image)
        });
        let logits = cx.linear("classifier", &pooled, self.classes, true);
        let loss = cx.module("loss", |_| logits.cross_entropy(labels));
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl Swin {
    fn model(&self, cx: &Cx, image: &Tensor) -> (Tensor, Tensor) {
        let embedded = cx.module("embeddings", |cx| {
            let embedded = cx.module("patch_embeddings", |cx| {
                patches(cx, "projection", image, self.embed, self.patch)
            });
            cx.layer_norm("norm", &embedded)
        });
        let (stages, this) = (self.depths.len(), self.clone());
        let last = cx.module("encoder", |cx| {
            in_turn(
                cx,
                ("layers", stages as u64),
                &embedded,
                move |cx, input, i| this.stage(cx, input, i),
            )
        });
        // The encoder's output is held to the end.
        let encoded = last.into_iter().next().unwrap_or(embedded);
        let sequence = cx.layer_norm("layernorm", &encoded);
        // `AdaptiveAvgPool1d(1)` pools an image of one row.
        let pooled = sequence
            .transpose(1, 2)
            .unsqueeze(2)
            .adaptive_avg_pool2d(1)
            .squeeze(2)
            .squeeze(2);
        (sequence, pooled)
    }

    /// `SwinStage.forward`: the hidden states, the same as an image, and the last attention weights where there are any.
    fn stage(&self, cx: &Cx, input: &Tensor, i: usize) -> Vec<Tensor> {
        let Some(&depth) = self.depths.get(i) else {
            return Vec::new();
        };
        let layers_before: u64 = self.depths.iter().take(i).sum();
        let side = (0..i).fold(self.image / self.patch, |side, _| side.div_ceil(2));
        let heads = self.heads.get(i).copied().unwrap_or(1);
        let fits = if self.whole { self.window } else { side };
        let window = self.window.min(fits).max(1);
        let shifts = self.whole || side > self.window;
        let paths = self.paths;
        let layer = move |block: usize| Layer {
            heads,
            side,
            window,
            shifted: shifts && block % 2 == 1,
            drop_path: paths && layers_before + block as u64 > 0,
        };
        if self.second {
            return self.second_stage(cx, input, (i, depth), layer);
        }
        let mut outputs = in_turn(cx, ("blocks", depth), input, move |cx, input, block| {
            layer(block).forward(cx, input)
        });
        let Some(hidden) = outputs.first().cloned() else {
            return outputs;
        };
        let (merged, merged_side) = if i + 1 < self.depths.len() {
            let merged = cx.module("downsample", |cx| merge_patches(cx, &hidden, side, false));
            (merged, side.div_ceil(2))
        } else {
            (hidden.clone(), side)
        };
        let (seen, side) = if self.whole {
            (&hidden, side)
        } else {
            (&merged, merged_side)
        };
        let (b, channels) = (seen.size(0), seen.size(2));
        let image = seen
            .view(&[b, side, side, channels])
            .permute(&[0, 3, 1, 2])
            .contiguous();
        drop(hidden);
        let weights = outputs.drain(1..);
        [merged, image].into_iter().chain(weights).collect()
    }
}

impl Swin {
    /// `Swinv2Stage.forward`, which is checkpointed as a whole: its layers are not.
    fn second_stage(
        &self,
        cx: &Cx,
        input: &Tensor,
        (i, depth): (usize, u64),
        layer: impl Fn(usize) -> Layer,
    ) -> Vec<Tensor> {
        let hidden = (0..depth as usize).fold(input.clone(), |x, block| {
            cx.list_item("blocks", block, |cx| layer(block).second(cx, &x))
        });
        if i + 1 == self.depths.len() {
            return vec![hidden];
        }
        let side = layer(0).side;
        let merged = cx.module("downsample", |cx| merge_patches(cx, &hidden, side, true));
        vec![merged, hidden]
    }
}

/// Layers of which each takes the first output of the one before. The others keep their names until the next layer
/// returns, and are no input of it.
fn in_turn(
    cx: &Cx,
    (name, count): (&'static str, u64),
    input: &Tensor,
    layer: impl Fn(&Cx, &Tensor, usize) -> Vec<Tensor> + 'static,
) -> Vec<Tensor> {
    let layer = Rc::new(layer);
    let mut outputs = vec![input.clone()];
    for i in 0..count as usize {
        let state = outputs.iter().take(1).cloned().collect();
        let layer = layer.clone();
        outputs = cx.layer(name, i, state, move |cx, state| match state.first() {
            Some(input) => layer(cx, input, i),
            None => Vec::new(),
        });
    }
    outputs
}
