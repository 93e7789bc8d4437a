//! `Mask2FormerPixelLevelModule`: the backbone, deformable attention over its three coarser maps, and a finer map for masks.

use super::Mask2Former;
use crate::nets::Cx;
use crate::nets::detection::deformable::{Maps, Sampling};
use crate::nets::vision::index_name;
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};

/// Points of each map that a place looks at.
const POINTS: u64 = 4;
const GROUPS: u64 = 32;

impl Mask2Former {
    /// The maps that queries attend to, coarsest first, and the map that masks are made of.
    pub(super) fn pixel_level(&self, cx: &Cx, image: &Tensor) -> (Vec<Tensor>, Tensor) {
        let features = cx.module("encoder", |cx| self.backbone.features(cx, image, 0));
        cx.module("decoder", |cx| self.pixel_decoder(cx, &features))
    }

    fn pixel_decoder(&self, cx: &Cx, features: &[Tensor]) -> (Vec<Tensor>, Tensor) {
        let hidden = self.hidden;
        let count = features.len().saturating_sub(1);
        let coarse: Vec<&Tensor> = features.iter().rev().take(count).collect();
        let levels = cx.param("level_embed", [count as u64, hidden]).tensor();
        let projected: Vec<Tensor> = coarse
            .iter()
            .enumerate()
            .map(|(i, map)| {
                cx.module("input_projections", |cx| {
                    cx.module(index_name(i), |cx| {
                        let x = cx.conv2d("0", map, hidden, 1, Conv::stride(1), true);
                        normed(cx, "1", &x)
                    })
                })
            })
            .collect();
        let places: Vec<Tensor> = projected.iter().map(positions).collect();
        let rows = |maps: &[Tensor]| -> Vec<Tensor> {
            let row = |map: &Tensor| {
                let shape = [
                    map.size(0),
                    map.size(1),
                    map.size(2).saturating_mul(map.size(3)),
                ];
                map.reshape(&shape).transpose(1, 2)
            };
            maps.iter().map(row).collect()
        };
        let joined = |all: &[Tensor]| super::super::joined(all, 1, &levels);
        let flat = joined(&rows(&projected));
        let placed = {
            let own: Vec<Tensor> = rows(&places)
                .iter()
                .map(|places| places.add(&levels.select(0).view(&[1, 1, hidden])))
                .collect();
            joined(&own)
        };
        let grids: Vec<[u64; 2]> = projected
            .iter()
            .map(|map| [map.size(2), map.size(3)])
            .collect();
        let (n, total) = (flat.size(0), flat.size(1));
        let mask = flat.constant("cat", &[n, total, 1], DType::Bool);
        let reference = flat.constant("mul", &[n, total, grids.len() as u64, 2], flat.dtype());
        let (this, maps) = (self.clone(), grids.clone());
        let encoded = cx.module("encoder", |cx| {
            cx.equal_stack("layers", self.layers, flat, move |cx, x| {
                this.pixel_layer(cx, x, [&placed, &reference, &mask], &maps)
            })
        });
        let counts: Vec<u64> = grids.iter().map(|[h, w]| h * w).collect();
        let mut outputs: Vec<Tensor> = encoded
            .split(&counts, 1)
            .iter()
            .zip(&grids)
            .map(|(part, [h, w])| part.transpose(1, 2).view(&[n, hidden, *h, *w]))
            .collect();
        let finest = match (features.first(), outputs.last()) {
            (Some(map), Some(last)) => self.finest(cx, map, last),
            _ => encoded,
        };
        outputs.truncate(count);
        let pixels = cx.conv2d("mask_projection", &finest, hidden, 1, Conv::stride(1), true);
        drop((projected, places));
        (outputs, pixels)
    }

    /// One more level of the pyramid.
    fn finest(&self, cx: &Cx, map: &Tensor, last: &Tensor) -> Tensor {
        let own = cx.module("adapter_1", |cx| {
            let x = cx.conv2d("0", map, self.hidden, 1, Conv::stride(1), false);
            normed(cx, "1", &x)
        });
        let larger = last.interpolate(own.size(2), own.size(3));
        let sum = own.add(&larger);
        drop((own, larger));
        cx.module("layer_1", |cx| {
            let form = Conv::stride(1).padded(1);
            let x = cx.conv2d("0", &sum, self.hidden, 3, form, false);
            normed(cx, "1", &x).pipe(Tensor::relu)
        })
    }

    /// `Mask2FormerPixelDecoderEncoderLayer.forward`.
    fn pixel_layer(
        &self,
        cx: &Cx,
        input: &Tensor,
        [places, reference, mask]: [&Tensor; 3],
        grids: &[[u64; 2]],
    ) -> Tensor {
        let sampling = Sampling {
            heads: self.heads,
            points: POINTS,
            one_copy: false,
        };
        let sampled = cx.module("self_attn", |cx| {
            let placed = input.add(places);
            let maps = Maps {
                features: input.clone(),
                grids: grids.to_vec(),
                mask: Some(mask.clone()),
            };
            sampling.run(cx, &placed, reference, &maps)
        });
        let mut hidden = input.add(&sampled);
        drop(sampled);
        hidden = cx.layer_norm("self_attn_layer_norm", &hidden);
        let out = {
            let x = cx.linear("fc1", &hidden, self.ffn, true).pipe(Tensor::relu);
            cx.linear("fc2", &x, self.hidden, true)
        };
        hidden = hidden.add(&out);
        drop(out);
        hidden = cx.layer_norm("final_layer_norm", &hidden);
        let size = hidden.constant("abs", hidden.shape(), hidden.dtype());
        let finite = hidden.constant("ne", hidden.shape(), DType::Bool);
        drop((size, finite));
        hidden
    }
}

fn normed(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    cx.module(name, |cx| {
        let weight = cx.param("weight", [x.size(1)]).tensor();
        let bias = cx.param("bias", [x.size(1)]).tensor();
        x.group_norm(GROUPS, &weight, &bias)
    })
}

/// `Mask2FormerSinePositionEmbedding.forward`.
pub(super) fn positions(map: &Tensor) -> Tensor {
    let [n, c, h, w] = [map.size(0), map.size(1), map.size(2), map.size(3)];
    let half = [n, h, w, c / 2];
    let make = |op| map.constant(op, &half, map.dtype());
    let parts = (make("flatten"), make("flatten"));
    let all = map.constant("cat", &[n, h, w, c], map.dtype());
    drop(parts);
    all.permute(&[0, 3, 1, 2])
}
