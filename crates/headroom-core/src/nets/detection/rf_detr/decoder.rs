//! `RfDetrDecoder`: queries attend to those of their group, then to some points of the map.

use crate::nets::attention::{Eager, attend, heads};
use crate::nets::detection::deformable::{Maps, Sampling};
use crate::nets::detection::{joined, perceptron};
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;

#[derive(Clone, Copy, Debug)]
pub(super) struct Decoder {
    hidden: u64,
    layers: u64,
    heads: u64,
    cross_heads: u64,
    ffn: u64,
    points: u64,
    groups: u64,
    dropout: f64,
}

impl Decoder {
    pub(super) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        Ok(Self {
            hidden: sizes.need("hidden")?,
            layers: sizes.or("decoder_layers", 3),
            heads: sizes.or("heads", 8).max(1),
            cross_heads: sizes.or("decoder_heads", 16).max(1),
            ffn: sizes.or("decoder_ffn", 2048),
            points: sizes.or("points", 2),
            groups: sizes.or("query_groups", 13).max(1),
            dropout: if sizes.is_set("drop") { 0.1 } else { 0.0 },
        })
    }

    /// The states behind each layer, normed.
    pub(super) fn run(
        &self,
        cx: &Cx,
        [target, reference]: [&Tensor; 2],
        flat: &Tensor,
        grid: [u64; 2],
        padding: &Tensor,
    ) -> Tensor {
        let ratios = reference.constant("cat", &[reference.size(0), 1, 1, 4], reference.dtype());
        let around = reference.unsqueeze(2).mul(&ratios);
        let encoded = self.encoded(&around.select(2));
        let places = cx.module("ref_point_head", |cx| {
            perceptron(cx, &encoded, &[self.hidden, self.hidden])
        });
        drop(encoded);
        let maps = Maps {
            features: flat.clone(),
            grids: vec![grid],
            mask: Some(padding.unsqueeze(-1)),
        };
        let mut hidden = target.clone();
        let mut all = Vec::new();
        for i in 0..self.layers as usize {
            if cx.tape.is_over_budget() {
                break;
            }
            let (this, maps) = (*self, maps.clone());
            let beside = [places.clone(), around.clone()];
            let outputs = cx.layer("layers", i, vec![hidden.clone()], move |cx, state| {
                let run = |x| this.layer(cx, x, &beside, &maps);
                state.iter().map(run).collect()
            });
            hidden = outputs.into_iter().next().unwrap_or(hidden.clone());
            all.push(cx.layer_norm("layernorm", &hidden));
        }
        Tensor::stack(&all, 0).unwrap_or_else(|| target.clone())
    }

    /// `encode_sinusoidal_position_embedding` of four coordinates.
    fn encoded(&self, boxes: &Tensor) -> Tensor {
        let parts = boxes.unbind_along(-1);
        let width = self.hidden / 2;
        let frequencies = boxes.constant("pow", &[width], crate::tape::DType::F32);
        let angles: Vec<Tensor> = parts
            .iter()
            .map(|part| {
                let scaled = part.unsqueeze(-1).mul_scalar();
                scaled.div(&frequencies)
            })
            .collect();
        let turned: Vec<Tensor> = angles
            .iter()
            .filter_map(|angles| {
                let sin = angles.every_second(-1).sin();
                let cos = angles.every_second(-1).cos();
                let pairs = Tensor::stack(&[sin, cos], -1)?;
                let shape = [boxes.size(0), boxes.size(1), width];
                Some(pairs.view(&shape))
            })
            .collect();
        drop(angles);
        joined(&turned, -1, boxes).to(boxes.dtype())
    }

    /// `RfDetrDecoderLayer.forward`.
    fn layer(self, cx: &Cx, input: &Tensor, [places, around]: &[Tensor; 2], maps: &Maps) -> Tensor {
        let attended = cx.module("self_attn", |cx| self.among_groups(cx, input, places));
        let attended = cx.dropout(&attended, self.dropout);
        let mut hidden = input.add(&attended);
        hidden = cx.layer_norm("self_attn_layer_norm", &hidden);
        let sampling = Sampling {
            heads: self.cross_heads,
            points: self.points,
            one_copy: false,
        };
        let sampled = cx.module("cross_attn", |cx| {
            let placed = hidden.add(places);
            sampling.run(cx, &placed, around, maps)
        });
        let sampled = cx.dropout(&sampled, self.dropout);
        hidden = hidden.add(&sampled);
        hidden = cx.layer_norm("cross_attn_layer_norm", &hidden);
        hidden = cx.module("mlp", |cx| {
            let mut x = cx.linear("fc1", &hidden, self.ffn, true);
            x = x.relu();
            x = cx.dropout(&x, self.dropout);
            x = cx.linear("fc2", &x, self.hidden, true);
            x = cx.dropout(&x, self.dropout);
            hidden.add(&x)
        });
        let out = cx.layer_norm("layer_norm", &hidden);
        drop((attended, sampled));
        out
    }

    /// `RfDetrAttention.forward` in training: groups are rows of the batch.
    fn among_groups(self, cx: &Cx, x: &Tensor, places: &Tensor) -> Tensor {
        let (n, each) = (x.size(0), x.size(1) / self.groups);
        let placed = x.add(places);
        let as_rows = |x: &Tensor| {
            let parts = x.split(&vec![each; self.groups as usize], 1);
            joined(&parts, 0, x)
        };
        let own = as_rows(x);
        let placed = as_rows(&placed);
        let project = |name, x: &Tensor| heads(&cx.linear(name, x, self.hidden, true), self.heads);
        let (q, k, v) = (
            project("q_proj", &placed),
            project("k_proj", &placed),
            project("v_proj", &own),
        );
        let none = AttentionMask::None;
        let (mut out, weights) = attend(cx, [&q, &k, &v], &none, 0.0, Eager::default());
        out = out.reshape(own.shape());
        out = cx.linear("o_proj", &out, self.hidden, true);
        let parts = out.split(&vec![n; self.groups as usize], 0);
        let joined = joined(&parts, 1, x);
        drop(weights);
        joined
    }
}
