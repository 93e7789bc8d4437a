//! Deformable DETR: every place of four maps samples some points around it, queries around a place that they learn
//! (transformers/models/deformable_detr/modeling_deformable_detr.py). The objects of all pictures are one list.

mod loss;

use super::backbone::resnet_50;
use super::deformable::{Maps, Sampling};
use super::{Pictures, joined, perceptron};
use crate::nets::attention::{Eager, attend, heads};
use crate::nets::vision::index_name;
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Deformable {
    layers: u64,
    decoder_layers: u64,
    hidden: u64,
    heads: u64,
    decoder_heads: u64,
    ffn: u64,
    decoder_ffn: u64,
    points: u64,
    decoder_points: u64,
    queries: u64,
    classes: u64,
    dropout: f64,
    pictures: Pictures,
}

/// Groups of the norms behind the projections of maps.
const GROUPS: u64 = 32;

pub(super) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let (layers, hidden) = (sizes.need("layers")?, sizes.need("hidden")?);
    Ok(Box::new(Deformable {
        layers,
        decoder_layers: sizes.or("decoder_layers", layers),
        hidden,
        heads: sizes.or("heads", 8).max(1),
        decoder_heads: sizes.or("decoder_heads", 8).max(1),
        ffn: sizes.or("ffn", 1024),
        decoder_ffn: sizes.or("decoder_ffn", 1024),
        points: sizes.or("points", 4),
        decoder_points: sizes.or("decoder_points", 4),
        queries: sizes.or("queries", 300),
        classes: sizes.or("classes", 91),
        dropout: if sizes.or("drop", 1) != 0 { 0.1 } else { 0.0 },
        pictures: Pictures::of(sizes, 800),
    }))
}

impl Net for Deformable {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        self.pictures.batch(cx, data.micro_batch)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, _, boxes] = batch else {
            return Output::empty(cx);
        };
        let found = cx.module("model", |cx| self.model(cx, image));
        let (mut logits, mut places) = (Vec::new(), Vec::new());
        for layer in 0..self.decoder_layers {
            let reference = if layer == 0 {
                found.first.clone()
            } else {
                found.references.select(1)
            };
            let before = logit(&reference);
            let own = found.states.select(1);
            // One head for all layers.
            logits.push(cx.list_item("class_embed", 0, |cx| {
                let weight = cx.param("weight", [self.classes, self.hidden]).tensor();
                let bias = cx.param("bias", [self.classes]).tensor();
                own.linear(&weight, Some(&bias))
            }));
            let moved = cx.list_item("bbox_embed", 0, |cx| {
                perceptron(cx, &own, &[self.hidden, self.hidden, 4])
            });
            let sum = moved.narrow(-1, 2).add(&before);
            places.push(moved.put(&sum).pipe(Tensor::sigmoid));
        }
        let stacked = |all: &[Tensor]| Tensor::stack(all, 0).unwrap_or_else(|| image.clone());
        let (all_logits, all_places) = (stacked(&logits), stacked(&places));
        let loss = cx.module("loss", |cx| {
            loss::loss(cx, [&all_logits.select(0), &all_places.select(0)], boxes)
        });
        drop((logits, places));
        let mut held = found.held;
        held.extend([
            all_logits,
            all_places,
            found.states,
            found.references,
            found.first,
        ]);
        Output { loss, held }
    }
}

/// What the model without heads returns: states and places behind each layer, and the first places.
struct Found {
    states: Tensor,
    references: Tensor,
    first: Tensor,
    held: Vec<Tensor>,
}

impl Deformable {
    fn model(&self, cx: &Cx, image: &Tensor) -> Found {
        let (n, hidden) = (image.size(0), self.hidden);
        let pixels = [n, image.size(2), image.size(3)];
        let mask = image.constant("ones", &pixels, DType::I64);
        let features = cx.module("backbone", |cx| {
            cx.module("model", |cx| resnet_50(cx, image))
        });
        drop(mask.constant("float", &pixels, DType::F32));
        let features = &features[features.len().saturating_sub(3)..];
        let count = features.len();
        let levels: Vec<Tensor> = (0..=count)
            .filter_map(|i| {
                let map = features.get(i).or_else(|| features.last())?;
                Some(self.level(cx, i, map, i == count))
            })
            .collect();
        let places: Vec<Tensor> = levels.iter().map(sine_positions).collect();
        // The class keeps the last table in a cache.
        if let Some(last) = places.last() {
            cx.buffer("position_embedding", *last.shape(), last.dtype());
        }
        let queries = cx.module("query_position_embeddings", |cx| {
            cx.param("weight", [self.queries, 2 * hidden]).tensor()
        });
        let grids: Vec<[u64; 2]> = levels
            .iter()
            .map(|map| [map.size(2), map.size(3)])
            .collect();
        let rows = |map: &Tensor| {
            map.reshape(&[n, hidden, map.size(2).saturating_mul(map.size(3))])
                .transpose(1, 2)
        };
        let table = cx
            .param("level_embed", [levels.len() as u64, hidden])
            .tensor();
        let own: Vec<Tensor> = places
            .iter()
            .map(|map| rows(map).add(&table.select(0).view(&[1, 1, hidden])))
            .collect();
        let flat = {
            let all: Vec<Tensor> = levels.iter().map(rows).collect();
            joined(&all, 1, image)
        };
        let placed = joined(&own, 1, image);
        drop(own);
        let seen = flat.constant("cat", &[n, flat.size(1), 1], DType::Bool);
        let maps = Maps {
            features: flat,
            grids,
            mask: Some(seen),
        };
        let encoded = cx.module("encoder", |cx| self.encoder(cx, &maps, &placed));
        let maps = Maps {
            features: encoded,
            ..maps
        };
        let parts = queries.split(&[hidden, hidden], 1);
        let wide = |part: &Tensor| part.unsqueeze(0).expand(&[n, self.queries, hidden]);
        let [own, target] =
            [parts.first(), parts.last()].map(|part| part.map_or_else(|| queries.clone(), &wide));
        let first = cx
            .linear("reference_points", &own, 2, true)
            .pipe(Tensor::sigmoid);
        let [states, references, last] = cx.module("decoder", |cx| {
            self.decoder(cx, [&target, &own, &first], &maps)
        });
        let held = vec![maps.features.clone(), last];
        drop((mask, levels, places, placed));
        Found {
            states,
            references,
            first,
            held,
        }
    }

    /// A map at the model's width; the last is halved once more.
    fn level(&self, cx: &Cx, i: usize, map: &Tensor, halves: bool) -> Tensor {
        cx.module("input_proj", |cx| {
            cx.module(index_name(i), |cx| {
                let x = if halves {
                    let form = Conv::stride(2).padded(1);
                    cx.conv2d("0", map, self.hidden, 3, form, true)
                } else {
                    cx.conv2d("0", map, self.hidden, 1, Conv::stride(1), true)
                };
                cx.module("1", |cx| {
                    let weight = cx.param("weight", [self.hidden]).tensor();
                    let bias = cx.param("bias", [self.hidden]).tensor();
                    x.group_norm(GROUPS, &weight, &bias)
                })
            })
        })
    }

    fn encoder(&self, cx: &Cx, maps: &Maps, placed: &Tensor) -> Tensor {
        let x = &maps.features;
        let levels = maps.grids.len() as u64;
        let first = cx.dropout(x, self.dropout);
        let reference = x.constant("mul", &[x.size(0), x.size(1), levels, 2], x.dtype());
        let (this, maps, placed) = (*self, maps.clone(), placed.clone());
        cx.equal_stack("layers", self.layers, first, move |cx, x| {
            let sampling = Sampling {
                heads: this.heads,
                points: this.points,
                one_copy: false,
            };
            let sampled = cx.module("self_attn", |cx| {
                let own = x.add(&placed);
                let maps = Maps {
                    features: x.clone(),
                    ..maps.clone()
                };
                sampling.run(cx, &own, &reference, &maps)
            });
            let mut hidden = this.finished(cx, "self_attn_layer_norm", x, sampled);
            hidden = this.fed(cx, &hidden, this.ffn);
            // It asks whether all are finite.
            let size = hidden.constant("abs", hidden.shape(), hidden.dtype());
            let finite = hidden.constant("ne", hidden.shape(), DType::Bool);
            drop((size, finite));
            hidden
        })
    }

    /// States of all layers, the places that they look at, and the last states.
    fn decoder(&self, cx: &Cx, [target, own, reference]: [&Tensor; 3], maps: &Maps) -> [Tensor; 3] {
        let levels = maps.grids.len() as u64;
        let n = target.size(0);
        let ratios = reference.constant("stack", &[n, 1, levels, 2], reference.dtype());
        let mut hidden = target.clone();
        let (mut states, mut references) = (Vec::new(), Vec::new());
        for i in 0..self.decoder_layers as usize {
            if cx.tape.is_over_budget() {
                break;
            }
            let around = reference.unsqueeze(2).mul(&ratios);
            let (this, maps, own) = (*self, maps.clone(), own.clone());
            let outputs = cx.layer("layers", i, vec![hidden.clone()], move |cx, state| {
                let run = |x| this.decoder_layer(cx, x, [&own, &around], &maps);
                state.iter().map(run).collect()
            });
            hidden = outputs.into_iter().next().unwrap_or(hidden.clone());
            states.push(hidden.clone());
            references.push(reference.clone());
        }
        let stacked = |all: &[Tensor]| Tensor::stack(all, 1).unwrap_or_else(|| target.clone());
        [stacked(&states), stacked(&references), hidden]
    }

    fn decoder_layer(
        self,
        cx: &Cx,
        input: &Tensor,
        [own, around]: [&Tensor; 2],
        maps: &Maps,
    ) -> Tensor {
        let attended = cx.module("self_attn", |cx| {
            let placed = input.add(own);
            let project = |name, x: &Tensor| {
                heads(&cx.linear(name, x, self.hidden, true), self.decoder_heads)
            };
            let (q, k, v) = (
                project("q_proj", &placed),
                project("k_proj", &placed),
                project("v_proj", input),
            );
            let none = AttentionMask::None;
            let (mut out, weights) = attend(cx, [&q, &k, &v], &none, 0.0, Eager::default());
            out = out.reshape(input.shape());
            out = cx.linear("o_proj", &out, self.hidden, true);
            drop((placed, weights));
            out
        });
        let mut hidden = self.finished(cx, "self_attn_layer_norm", input, attended);
        let sampling = Sampling {
            heads: self.decoder_heads,
            points: self.decoder_points,
            one_copy: false,
        };
        let sampled = cx.module("encoder_attn", |cx| {
            let placed = hidden.add(own);
            sampling.run(cx, &placed, around, maps)
        });
        hidden = self.finished(cx, "encoder_attn_layer_norm", &hidden, sampled);
        self.fed(cx, &hidden, self.decoder_ffn)
    }

    /// A sublayer's result with its dropout, its residual and its norm.
    fn finished(&self, cx: &Cx, norm: &'static str, residual: &Tensor, made: Tensor) -> Tensor {
        let dropped = cx.dropout(&made, self.dropout);
        drop(made);
        let sum = residual.add(&dropped);
        drop(dropped);
        cx.layer_norm(norm, &sum)
    }

    fn fed(&self, cx: &Cx, hidden: &Tensor, width: u64) -> Tensor {
        let out = cx.module("mlp", |cx| {
            let x = cx.linear("fc1", hidden, width, true).pipe(Tensor::relu);
            cx.linear("fc2", &x, self.hidden, true)
        });
        self.finished(cx, "final_layer_norm", hidden, out)
    }
}

/// `inverse_sigmoid`.
fn logit(x: &Tensor) -> Tensor {
    let bounded = x.clamp_between();
    let over = bounded.clamp();
    let under = bounded.neg().pipe(Tensor::clamp);
    let ratio = over.div(&under);
    drop((over, under));
    ratio.log()
}

/// `build_sine_position_embedding` of a mask.
fn sine_positions(map: &Tensor) -> Tensor {
    let [n, c, h, w] = [0, 1, 2, 3].map(|axis| map.size(axis));
    let half = [n, h, w, c / 2];
    let make = |op| map.constant(op, &half, DType::F32);
    let angles = (make("div"), make("div"));
    let parts = (make("flatten"), make("flatten"));
    let all = map.constant("cat", &[n, h, w, c], DType::F32);
    drop((angles, parts));
    all.permute(&[0, 3, 1, 2]).to(map.dtype())
}
