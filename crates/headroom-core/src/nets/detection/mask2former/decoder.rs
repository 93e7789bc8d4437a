//! `Mask2FormerTransformerModule`: queries that attend to one map after the other, each within its own mask.

use super::Mask2Former;
use super::pixels::positions;
use crate::nets::Cx;
use crate::nets::vision::index_name;
use crate::tape::{DType, Tensor};

impl Mask2Former {
    /// The masks and the normed states before the first layer and behind each.
    pub(super) fn transformer(
        &self,
        cx: &Cx,
        maps: &[Tensor],
        pixels: &Tensor,
    ) -> (Vec<Tensor>, Vec<Tensor>) {
        let (n, hidden) = (pixels.size(0), self.hidden);
        let table = |name, rows| cx.module(name, |cx| cx.param("weight", [rows, hidden]).tensor());
        let embedder = table("queries_embedder", self.queries);
        let features = table("queries_features", self.queries);
        let levels = table("level_embed", maps.len() as u64);
        let flat =
            |map: &Tensor| map.reshape(&[n, hidden, map.size(2).saturating_mul(map.size(3))]);
        let read: Vec<[Tensor; 2]> = maps
            .iter()
            .map(|map| {
                let places = flat(&positions(map)).permute(&[2, 0, 1]);
                let level = levels.select(0).view(&[1, hidden, 1]);
                [flat(map).add(&level).permute(&[2, 0, 1]), places]
            })
            .collect();
        let spread = |table: &Tensor| {
            let shape = [self.queries, n, hidden];
            table.unsqueeze(1).expand(&shape).contiguous()
        };
        let (places, first) = (spread(&embedder), spread(&features));
        cx.module("decoder", |cx| {
            let judge = |x: &Tensor, at: usize| {
                let states = cx.layer_norm("layernorm", x);
                let grid = maps.get(at % maps.len().max(1)).unwrap_or(pixels);
                let [found, hides] = cx.module("mask_predictor", |cx| {
                    self.predicted(cx, &states, pixels, [grid.size(2), grid.size(3)])
                });
                (states, found, hides)
            };
            let (states, found, mut hides) = judge(&first, 0);
            let (mut masks, mut all) = (vec![found], vec![states]);
            let mut hidden = first;
            for i in 0..self.decoder_layers.saturating_sub(1) as usize {
                let Some(level) = read.get(i % read.len().max(1)) else {
                    break;
                };
                if cx.tape.is_over_budget() {
                    break;
                }
                hides = hides.constant("mul", hides.shape(), DType::Bool);
                let (this, level, places) = (self.clone(), level.clone(), places.clone());
                let hidden_places = hides.clone();
                let outputs = cx.layer("layers", i, vec![hidden.clone()], move |cx, state| {
                    let run = |x| this.query_layer(cx, x, &level, &places, &hidden_places);
                    state.iter().map(run).collect()
                });
                hidden = outputs.into_iter().next().unwrap_or(hidden);
                let (states, found, next) = judge(&hidden, i + 1);
                hides = next;
                masks.push(found);
                all.push(states);
            }
            (masks, all)
        })
    }

    /// `Mask2FormerMaskPredictor.forward`: the masks, and for each head where none is in a map of this grid.
    fn predicted(&self, cx: &Cx, states: &Tensor, pixels: &Tensor, grid: [u64; 2]) -> [Tensor; 2] {
        let embedded = cx.module("mask_embedder", |cx| {
            (0..3).fold(states.transpose(0, 1), |x, i| {
                cx.module(index_name(i), |cx| {
                    let y = cx.linear("0", &x, self.hidden, true);
                    if i < 2 { y.relu() } else { y }
                })
            })
        });
        let found = embedded.einsum("bqc", pixels, "bchw", "bqhw");
        let [n, queries] = [found.size(0), found.size(1)];
        let hides = {
            let smaller = found.detach().interpolate(grid[0], grid[1]);
            let share = smaller.sigmoid();
            let places = grid[0].saturating_mul(grid[1]);
            let shape = [n, self.heads, queries, places];
            let all = share.constant("repeat", &shape, share.dtype());
            drop((smaller, share));
            all.constant(
                "lt",
                &[n.saturating_mul(self.heads), queries, places],
                DType::Bool,
            )
        };
        [found, hides]
    }

    /// `Mask2FormerMaskedAttentionDecoderLayer.forward_post`.
    fn query_layer(
        &self,
        cx: &Cx,
        input: &Tensor,
        [read, read_places]: &[Tensor; 2],
        places: &Tensor,
        hides: &Tensor,
    ) -> Tensor {
        let (attended, shares) = cx.module("cross_attn", |cx| {
            let query = input.add(places);
            let key = read.add(read_places);
            self.cross(cx, [&query, &key, read], hides)
        });
        let mut hidden = input.add(&attended);
        drop(attended);
        hidden = cx.layer_norm("cross_attn_layer_norm", &hidden);
        let (attended, own) = cx.module("self_attn", |cx| self.among(cx, &hidden, places));
        hidden = hidden.add(&attended);
        drop(attended);
        hidden = cx.layer_norm("self_attn_layer_norm", &hidden);
        let out = {
            let x = cx
                .linear("fc1", &hidden, self.decoder_ffn, true)
                .pipe(Tensor::relu);
            cx.linear("fc2", &x, self.hidden, true)
        };
        hidden = hidden.add(&out);
        drop((out, shares, own));
        cx.layer_norm("final_layer_norm", &hidden)
    }

    /// `F.multi_head_attention_forward` with a mask and weights, `[places, B, H]`.
    fn cross(&self, cx: &Cx, [q, k, v]: [&Tensor; 3], hides: &Tensor) -> (Tensor, Tensor) {
        let (width, heads) = (self.hidden, self.heads);
        let (n, queries) = (q.size(1), q.size(0));
        let weight = cx.param("in_proj_weight", [3 * width, width]).tensor();
        let bias = cx.param("in_proj_bias", [3 * width]).tensor();
        let (weights, biases) = (weight.chunk(3, 0), bias.chunk(3, 0));
        let rows = n * heads;
        let project = |x: &Tensor, i: usize| match weights.get(i) {
            Some(weight) => x.linear(weight, biases.get(i)),
            None => x.clone(),
        };
        let split = |x: &Tensor| x.view(&[x.size(0), rows, width / heads]).transpose(0, 1);
        let (q, k, v) = (project(q, 0), project(k, 1), project(v, 2));
        let mask = hides.constant("masked_fill_", hides.shape(), q.dtype());
        let q = split(&q).pipe(Tensor::mul_scalar);
        let (k, v) = (split(&k), split(&v));
        let scores = q.baddbmm(&k.transpose(1, 2), &mask);
        let shares = scores.pipe(|scores| scores.softmax(None));
        let out = shares
            .bmm(&v)
            .transpose(0, 1)
            .contiguous()
            .view(&[queries * n, width]);
        let out = cx.linear("out_proj", &out, width, true);
        let averaged = shares
            .view(&[n, heads, queries, shares.size(-1)])
            .mean(&[1]);
        (out.view(&[queries, n, width]), averaged)
    }

    /// `Mask2FormerAttention.forward` among queries.
    fn among(&self, cx: &Cx, x: &Tensor, places: &Tensor) -> (Tensor, Tensor) {
        let (x, places) = (x.permute(&[1, 0, 2]), places.permute(&[1, 0, 2]));
        let [n, queries] = [x.size(0), x.size(1)];
        let (width, heads) = (self.hidden, self.heads);
        let placed = x.add(&places);
        let split = |x: &Tensor| {
            x.view(&[n, queries, heads, width / heads])
                .transpose(1, 2)
                .contiguous()
        };
        let flat = |x: &Tensor| x.view(&[n * heads, queries, width / heads]);
        let q = cx.linear("q_proj", &placed, width, true).mul_scalar();
        let k = split(&cx.linear("k_proj", &placed, width, true));
        let v = split(&cx.linear("v_proj", &x, width, true));
        let (q, k, v) = (flat(&split(&q)), flat(&k), flat(&v));
        let shares = q
            .bmm(&k.transpose(1, 2))
            .pipe(|scores| scores.softmax(None));
        let out = shares
            .bmm(&v)
            .view(&[n, heads, queries, width / heads])
            .transpose(1, 2)
            .reshape(&[n, queries, width]);
        let out = cx.linear("out_proj", &out, width, true);
        (out.permute(&[1, 0, 2]), shares)
    }
}
