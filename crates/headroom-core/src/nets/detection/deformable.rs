//! Deformable attention: each query samples some points of each map around a place of its own
//! (`MultiScaleDeformableAttention` in transformers' models of the DETR family, without its kernel).

use super::joined;
use crate::nets::Cx;
use crate::tape::{DType, Tensor};

/// How queries look at maps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampling {
    pub(super) heads: u64,
    /// Points of each map.
    pub(super) points: u64,
    /// All maps are sampled from one copy of the values (RT-DETRv2).
    pub(super) one_copy: bool,
}

/// Maps of features, joined: `[B, places, H]`, the sides of each, and `[B, places, 1]`, which of them are padding.
#[derive(Clone)]
pub(super) struct Maps {
    pub(super) features: Tensor,
    pub(super) grids: Vec<[u64; 2]>,
    pub(super) mask: Option<Tensor>,
}

impl Sampling {
    /// Around boxes `[B, Q, 4]` or `[B, Q, maps, 4]`, or places of each map `[B, Q, maps, 2]`.
    pub(super) fn run(self, cx: &Cx, x: &Tensor, reference: &Tensor, maps: &Maps) -> Tensor {
        let (n, queries, heads) = (x.size(0), x.size(1), self.heads);
        let hidden = maps.features.size(-1);
        let (levels, width) = (maps.grids.len() as u64, hidden / heads);
        let points = levels.saturating_mul(self.points);
        let mut value = cx.linear("value_proj", &maps.features, hidden, true);
        if let Some(mask) = &maps.mask {
            value = value.masked_fill(mask);
        }
        let value = value.view(&[n, value.size(1), heads, width]);
        let offsets = cx.linear(
            "sampling_offsets",
            x,
            heads.saturating_mul(2 * points),
            true,
        );
        let weights = cx.linear("attention_weights", x, heads.saturating_mul(points), true);
        let weights = weights.view(&[n, queries, heads, points]).softmax(None);
        let locations = self.locations(cx, &offsets, reference, [heads, points]);
        let grids = locations.mul_scalar().pipe(Tensor::add_scalar);
        let rows = n.saturating_mul(heads);
        let sampled = if self.one_copy {
            self.from_one_copy(&value, &grids, maps)
        } else {
            self.level_by_level(&value, &grids, maps)
        };
        let weights = weights.transpose(1, 2).reshape(&[rows, 1, queries, points]);
        let mut out = {
            let all = if self.one_copy {
                joined(&sampled, -1, x)
            } else {
                let stacked = Tensor::stack(&sampled, -2).unwrap_or_else(|| x.clone());
                stacked.reshape(&[rows, width, queries, points])
            };
            all.mul(&weights).pipe(|product| product.sum(&[-1]))
        };
        out = out.view(&[n, hidden, queries]).transpose(1, 2).contiguous();
        drop((sampled, grids, locations, weights, value, offsets));
        cx.linear("output_proj", &out, hidden, true)
    }

    /// Where the points are, as shares of the maps' sides.
    fn locations(
        self,
        cx: &Cx,
        offsets: &Tensor,
        reference: &Tensor,
        [heads, points]: [u64; 2],
    ) -> Tensor {
        let (n, queries) = (offsets.size(0), offsets.size(1));
        if reference.size(-1) == 2 {
            let levels = reference.size(2);
            let offsets = offsets.view(&[n, queries, heads, levels, self.points, 2]);
            let sides = reference.constant("tensor", &[1, 1, 1, levels, 1, 2], DType::I64);
            let own = reference.unsqueeze(2).unsqueeze(4);
            return offsets.div(&sides).pipe(|scaled| scaled.add(&own));
        }
        // Boxes of queries alone, or for each map.
        let (offsets, own) = if reference.shape().len() == 4 {
            let levels = reference.size(2);
            let shape = [n, queries, heads, levels, self.points, 2];
            (offsets.view(&shape), reference.unsqueeze(2).unsqueeze(4))
        } else {
            let shape = [n, queries, heads, points, 2];
            (offsets.view(&shape), reference.unsqueeze(2).unsqueeze(2))
        };
        let scaled = if self.one_copy {
            let scale = cx.buffer("n_points_scale", [points], cx.env.weights);
            offsets.mul(&scale.unsqueeze(-1))
        } else {
            offsets.mul_scalar()
        };
        let scaled = scaled.pipe(|scaled| scaled.mul(&own.narrow(-1, 2)));
        let scaled = scaled.pipe(Tensor::mul_scalar);
        scaled.pipe(|scaled| scaled.add(&own.narrow(-1, 2)))
    }

    fn level_by_level(self, value: &Tensor, grids: &Tensor, maps: &Maps) -> Vec<Tensor> {
        let (n, queries) = (grids.size(0), grids.size(1));
        let (heads, width) = (value.size(2), value.size(3));
        let rows = n.saturating_mul(heads);
        let counts: Vec<u64> = maps.grids.iter().map(|[h, w]| h * w).collect();
        let values = value.split(&counts, 1);
        let levels = grids.view(&[n, queries, heads, counts.len() as u64, self.points, 2]);
        let sample = |(part, [h, w]): (&Tensor, &[u64; 2])| {
            let map = part
                .reshape(&[n, h * w, heads * width])
                .transpose(1, 2)
                .reshape(&[rows, width, *h, *w]);
            let grid = levels
                .select(3)
                .transpose(1, 2)
                .reshape(&[rows, queries, self.points, 2]);
            map.grid_sample(&grid)
        };
        values.iter().zip(&maps.grids).map(sample).collect()
    }

    /// `multi_scale_deformable_attention_v2`.
    fn from_one_copy(self, value: &Tensor, grids: &Tensor, maps: &Maps) -> Vec<Tensor> {
        let (n, queries) = (grids.size(0), grids.size(1));
        let (heads, width) = (value.size(2), value.size(3));
        let rows = n.saturating_mul(heads);
        let counts: Vec<u64> = maps.grids.iter().map(|[h, w]| h * w).collect();
        let values = value
            .permute(&[0, 2, 3, 1])
            .reshape(&[rows, width, value.size(1)])
            .split(&counts, -1);
        let grids = grids
            .permute(&[0, 2, 1, 3, 4])
            .reshape(&[rows, queries, grids.size(3), 2])
            .split(&vec![self.points; counts.len()], -2);
        let pairs = values.iter().zip(&grids).zip(&maps.grids);
        pairs
            .map(|((part, grid), [h, w])| part.reshape(&[rows, width, *h, *w]).grid_sample(grid))
            .collect()
    }
}
