//! `DFineDecoder`: each layer predicts, for the four sides of a box, a distribution over distances that is added to the one before.

use crate::nets::detection::deformable::Maps;
use crate::nets::detection::rt_detr::Queries;
use crate::nets::detection::rt_detr::decoder::{Decoded, inverse_sigmoid};
use crate::nets::detection::rt_detr::hybrid::self_attention;
use crate::nets::detection::{joined, perceptron};
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;

#[derive(Clone, Debug)]
pub(super) struct FineDecoder {
    hidden: u64,
    layers: u64,
    heads: u64,
    ffn: u64,
    /// Points in each map.
    points: Vec<u64>,
    bins: u64,
    learned: bool,
}

impl FineDecoder {
    pub(super) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        Ok(Self {
            hidden: sizes.need("hidden")?,
            layers: sizes.or("decoder_layers", 6),
            heads: sizes.or("decoder_heads", 8).max(1),
            ffn: sizes.or("decoder_ffn", 1024),
            points: sizes.list("points")?.to_vec(),
            bins: sizes.or("bins", 32),
            learned: sizes.is_set("learned_queries"),
        })
    }

    /// `DFineDecoderLayer.forward`.
    fn layer(
        &self,
        cx: &Cx,
        input: &Tensor,
        [places, reference]: &[Tensor; 2],
        maps: &Maps,
        mask: &AttentionMask,
    ) -> Tensor {
        let attended = cx.module("self_attn", |cx| {
            self_attention(cx, input, Some(places), self.heads, mask)
        });
        let mut hidden = input.add(&attended);
        drop(attended);
        hidden = cx.layer_norm("self_attn_layer_norm", &hidden);
        let sampled = {
            let placed = hidden.add(places);
            cx.module("encoder_attn", |cx| {
                self.sampled(cx, &placed, reference, maps)
            })
        };
        hidden = cx.module("gateway", |cx| {
            let both = Tensor::cat(&hidden, &[&sampled], -1);
            let width = self.hidden.saturating_mul(2);
            let gates = cx.linear("gate", &both, width, true).pipe(Tensor::sigmoid);
            let parts = gates.chunk(2, -1);
            let [first, second] = parts.as_slice() else {
                return hidden.clone();
            };
            let kept = first.mul(&hidden);
            let added = second.mul(&sampled);
            let sum = kept.add(&added);
            drop((kept, added));
            cx.layer_norm("norm", &sum)
        });
        drop(sampled);
        let out = cx.module("mlp", |cx| {
            perceptron(cx, &hidden, &[self.ffn, self.hidden])
        });
        hidden = hidden.add(&out);
        drop(out);
        hidden = hidden.clamp_between();
        cx.layer_norm("final_layer_norm", &hidden)
    }

    /// `DFineMultiscaleDeformableAttention.forward`: the maps are sampled as they are.
    fn sampled(&self, cx: &Cx, x: &Tensor, reference: &Tensor, maps: &Maps) -> Tensor {
        let (n, queries, heads) = (x.size(0), x.size(1), self.heads);
        let width = self.hidden / heads;
        let points: u64 = self.points.iter().sum();
        let count = heads.saturating_mul(points);
        let value = maps
            .features
            .view(&[n, maps.features.size(1), heads, width]);
        let offsets = cx
            .linear("sampling_offsets", x, count.saturating_mul(2), true)
            .view(&[n, queries, heads, points, 2]);
        let weights = cx
            .linear("attention_weights", x, count, true)
            .view(&[n, queries, heads, points])
            .softmax(None);
        let own = reference.unsqueeze(2).unsqueeze(2);
        let scale = cx.buffer("num_points_scale", [points], cx.env.weights);
        let scale = scale.unsqueeze(-1);
        let scaled = offsets.mul(&scale);
        let scaled = scaled.pipe(|scaled| scaled.mul(&own.narrow(-1, 2)));
        let scaled = scaled.pipe(Tensor::mul_scalar);
        let locations = own.narrow(-1, 2).add(&scaled);
        drop(scaled);
        let rows = n.saturating_mul(heads);
        let counts: Vec<u64> = maps.grids.iter().map(|[h, w]| h * w).collect();
        let values = value
            .permute(&[0, 2, 3, 1])
            .reshape(&[rows, width, value.size(1)])
            .split(&counts, -1);
        let grids = locations
            .mul_scalar()
            .pipe(Tensor::add_scalar)
            .permute(&[0, 2, 1, 3, 4])
            .reshape(&[rows, queries, points, 2])
            .split(&self.points, -2);
        let each = values.iter().zip(&grids).zip(&maps.grids);
        let found: Vec<Tensor> = each
            .map(|((part, grid), [h, w])| part.reshape(&[rows, width, *h, *w]).grid_sample(grid))
            .collect();
        let own_weights = weights
            .permute(&[0, 2, 1, 3])
            .reshape(&[rows, 1, queries, points]);
        let out = {
            let all = joined(&found, -1, x);
            all.mul(&own_weights).pipe(|product| product.sum(&[-1]))
        };
        drop((found, grids, values, own_weights, weights, locations));
        out.view(&[n, self.hidden, queries])
            .transpose(1, 2)
            .contiguous()
    }

    /// `DFineIntegral.forward` and `distance2bbox`: boxes of the expected distances.
    fn boxes(&self, start: &Tensor, corners: &Tensor, project: &Tensor, scale: &Tensor) -> Tensor {
        let (n, queries) = (corners.size(0), corners.size(1));
        let rows = n.saturating_mul(queries).saturating_mul(4);
        let distances = corners
            .reshape(&[rows, self.bins.saturating_add(1)])
            .softmax(None)
            .pipe(|shares| shares.times_vector(project))
            .view(&[n, queries, 4]);
        let ends: Vec<Tensor> = (0..4)
            .map(|_| {
                let moved = {
                    let own = distances.select(-1);
                    scale.mul_scalar().add(&own)
                };
                let side = start.select(-1).div(scale);
                let way = moved.mul(&side);
                drop((moved, side));
                start.select(-1).sub(&way)
            })
            .collect();
        let edges = Tensor::stack(&ends, -1).unwrap_or_else(|| start.clone());
        drop(ends);
        let parts = edges.unbind_along(-1);
        let [x0, y0, x1, y1] = parts.as_slice() else {
            return edges;
        };
        let middle = |a: &Tensor, b: &Tensor| a.add(b).pipe(Tensor::mul_scalar);
        let sides = [middle(x0, x1), middle(y0, y1), x1.sub(x0), y1.sub(y0)];
        Tensor::stack(&sides, -1).unwrap_or_else(|| edges.clone())
    }

    /// `DFineLQE.forward`: the classes' scores with one of how sharp the distributions are.
    fn judged(&self, cx: &Cx, scores: &Tensor, corners: &Tensor) -> Tensor {
        let (n, queries) = (corners.size(0), corners.size(1));
        let shares = corners
            .reshape(&[n, queries, 4, self.bins.saturating_add(1)])
            .softmax(None);
        let (best, places) = shares.topk(4);
        drop(shares);
        let mean = best.mean(&[-1]);
        let facts = Tensor::cat(&best, &[&mean], -1);
        drop((best, mean, places));
        let quality = cx.module("reg_conf", |cx| {
            perceptron(cx, &facts.reshape(&[n, queries, 20]), &[64, 1])
        });
        scores.add(&quality)
    }
}

impl Queries for FineDecoder {
    fn learned(&self) -> bool {
        self.learned
    }

    fn forward(
        &self,
        cx: &Cx,
        [target, reference]: [&Tensor; 2],
        maps: &Maps,
        mask: Option<&Tensor>,
        classes: u64,
    ) -> Decoded {
        let mask = mask.map_or(AttentionMask::None, |mask| {
            AttentionMask::Given(mask.clone())
        });
        let fixed = |name| cx.param_as(name, [1], cx.env.weights, |_| false).tensor();
        let scale = fixed("reg_scale");
        let up = fixed("up");
        let bins = self.bins.saturating_add(1);
        let project = up.constant("cat", &[bins], up.dtype());
        let mut reference = reference.sigmoid();
        let mut hidden = target.clone();
        let mut before: Option<[Tensor; 2]> = None;
        let mut start: Option<Tensor> = None;
        let (mut states, mut logits, mut boxes) = (Vec::new(), Vec::new(), Vec::new());
        let (mut all_corners, mut starts) = (Vec::new(), Vec::new());
        for i in 0..self.layers as usize {
            if cx.tape.is_over_budget() {
                break;
            }
            let places = cx.module("query_pos_head", |cx| {
                let widths = [self.hidden.saturating_mul(2), self.hidden];
                perceptron(cx, &reference, &widths)
            });
            let places = places.clamp_between();
            let (this, maps, mask) = (self.clone(), maps.clone(), mask.clone());
            let around = [places, reference.clone()];
            let outputs = cx.layer("layers", i, vec![hidden.clone()], move |cx, state| {
                let run = |x| this.layer(cx, x, &around, &maps, &mask);
                state.iter().map(run).collect()
            });
            hidden = outputs.into_iter().next().unwrap_or(hidden);
            let mut first = None;
            let start = start.get_or_insert_with(|| {
                let found = cx.module("pre_bbox_head", |cx| {
                    perceptron(cx, &hidden, &[self.hidden, self.hidden, 4])
                });
                let around = inverse_sigmoid(&reference);
                let found = found.add(&around).pipe(Tensor::sigmoid);
                first = Some(found.clone());
                found.detach()
            });
            let corners = {
                let read = match &before {
                    Some([state, _]) => hidden.add(state),
                    None => hidden.add_scalar(),
                };
                let found = cx.list_item("bbox_embed", i, |cx| {
                    let width = self.hidden;
                    perceptron(cx, &read, &[width, width, 4 * bins])
                });
                match &before {
                    Some([_, corners]) => found.add(corners),
                    None => found.add_scalar(),
                }
            };
            let found = self.boxes(start, &corners, &project, &scale);
            reference = found.detach();
            before = Some([hidden.detach(), corners.clone()]);
            states.push(hidden.clone());
            let mut scores = cx.list_item("class_embed", i, |cx| {
                let weight = cx.param("weight", [classes, self.hidden]).tensor();
                let bias = cx.param("bias", [classes]).tensor();
                hidden.linear(&weight, Some(&bias))
            });
            if let Some(first) = first {
                logits.push(scores.clone());
                boxes.push(first);
            }
            scores = cx.list_item("lqe_layers", i, |cx| self.judged(cx, &scores, &corners));
            logits.push(scores);
            boxes.push(found);
            starts.push(start.clone());
            all_corners.push(corners);
        }
        let stacked = |all: &[Tensor], at| Tensor::stack(all, at).unwrap_or_else(|| target.clone());
        let states = stacked(&states, 0);
        let logits = stacked(&logits, 1);
        let corners = stacked(&all_corners, 1);
        let starts = stacked(&starts, 1);
        let boxes = stacked(&boxes, 1);
        Decoded {
            logits,
            boxes,
            held: vec![states, hidden],
            corners: Some([corners, starts]),
        }
    }
}
