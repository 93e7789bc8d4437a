//! YOLOS: a ViT with tokens for objects (transformers/models/yolos/modeling_yolos.py). Positions are interpolated to the picture's
//! size even where they have it.

use super::loss::set_loss;
use super::{Pictures, prediction_head};
use crate::nets::pictures::PlainLayer;
use crate::nets::vit::patches;
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::Tensor;
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Yolos {
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    pictures: Pictures,
    /// Patches along the sides that the tables of positions are for.
    grid: [u64; 2],
    patch: u64,
    /// `num_detection_tokens`.
    queries: u64,
    /// `use_mid_position_embeddings`: positions are added behind each layer too.
    middle: bool,
    classes: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    let patch = sizes.or("patch", 16).max(1);
    let pictures = Pictures::of(sizes, 512);
    let table = [
        sizes.or("table_h", pictures.height),
        sizes.or("table_w", pictures.width),
    ];
    Ok(Box::new(Yolos {
        layers: sizes.need("layers")?,
        hidden,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.or("ffn", 4 * hidden),
        pictures,
        grid: table.map(|side| side / patch),
        patch,
        queries: sizes.or("queries", 100),
        middle: sizes.or("middle", 1) != 0,
        classes: sizes.or("classes", 91),
    }))
}

impl Net for Yolos {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        self.pictures.batch(cx, data.micro_batch)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, _classes, boxes] = batch else {
            return Output::empty(cx);
        };
        let last = cx.module("vit", |cx| self.model(cx, image));
        let read = last.narrow(1, self.queries);
        let logits = prediction_head(cx, "class_labels_classifier", &read, self.classes + 1);
        let found = prediction_head(cx, "bbox_predictor", &read, 4).sigmoid();
        let mut output = set_loss(cx, &logits, &found, boxes);
        output.held.push(last);
        output
    }
}

impl Yolos {
    fn model(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let [down, across] = [image.size(2) / self.patch, image.size(3) / self.patch];
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, image));
        let middle = self.middle.then(|| {
            cx.module("encoder", |cx| {
                cx.module("interpolation", |cx| {
                    let count = self.layers.saturating_sub(1);
                    let shape = [count, 1, self.places(self.grid), self.hidden];
                    let table = cx.param("mid_position_embeddings", shape).tensor();
                    self.interpolated(&table, [down, across])
                })
            })
        });
        let mut hidden = embedded;
        for i in 0..self.layers as usize {
            if cx.tape.is_over_budget() {
                break;
            }
            let layer = PlainLayer {
                hidden: self.hidden,
                heads: self.heads,
                ffn: self.ffn,
                biases: [true; 3],
            };
            let outputs = cx.module("encoder", |cx| {
                cx.layer("layer", i, vec![hidden.clone()], move |cx, state| {
                    state.iter().map(|x| layer.run(cx, x)).collect()
                })
            });
            hidden = outputs.into_iter().next().unwrap_or(hidden);
            if let Some(places) = middle.as_ref().filter(|_| i as u64 + 1 < self.layers) {
                hidden = hidden.add(&places.select(0));
            }
        }
        cx.layer_norm("layernorm", &hidden)
    }

    /// Tokens of a picture of so many patches.
    fn places(&self, [down, across]: [u64; 2]) -> u64 {
        down.saturating_mul(across)
            .saturating_add(self.queries)
            .saturating_add(1)
    }

    fn embeddings(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let (n, hidden) = (image.size(0), self.hidden);
        let first = cx.param("cls_token", [1, 1, hidden]);
        let objects = cx.param("detection_tokens", [1, self.queries, hidden]);
        let shape = [1, 1, self.places(self.grid), hidden];
        let table = cx.param("position_embeddings", shape).tensor();
        let grid = cx.module("patch_embeddings", |cx| {
            patches(cx, "projection", image, hidden, self.patch)
        });
        let first = first.tensor().expand(&[n, 1, hidden]);
        let objects = objects.tensor().expand(&[n, self.queries, hidden]);
        let joined = Tensor::cat(&first, &[&grid, &objects], 1);
        let sides = [image.size(2) / self.patch, image.size(3) / self.patch];
        let places = self.interpolated(&table, sides).select(0);
        joined.add(&places)
    }

    /// Positions `[L, 1, T, H]` for a picture of these sides: those of patches are interpolated.
    fn interpolated(&self, table: &Tensor, [down, across]: [u64; 2]) -> Tensor {
        let (count, hidden) = (table.size(0), self.hidden);
        let [own_down, own_across] = self.grid;
        let grid = table
            .narrow(2, own_down * own_across)
            .transpose(2, 3)
            .reshape(&[count, hidden, own_down, own_across]);
        let resized = grid.interpolate(down, across);
        let rows = resized
            .reshape(&[count, hidden, down * across])
            .transpose(1, 2)
            .contiguous()
            .view(&[count, 1, down * across, hidden]);
        let ends = [table.narrow(2, 1), table.narrow(2, self.queries)];
        Tensor::cat(&ends[0], &[&rows, &ends[1]], 2)
    }
}
