//! `Gemma4VisionModel`: patches with their places, padded to as many as a picture may have, and pooled to tokens by their places.

use crate::nets::attention::{Eager, attend};
use crate::nets::decoder::{norm, rope};
use crate::nets::masks::bidirectional_mask;
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
pub(super) struct Tower {
    pub hidden: u64,
    layers: u64,
    heads: u64,
    head_dim: u64,
    ffn: u64,
    pub patch: u64,
    /// Patches along the side of a square that becomes one token.
    pub pool: u64,
    /// Tokens of a picture at most: every picture is padded to their patches.
    pub most: u64,
    /// Rows of the tables of places.
    places: u64,
    /// `use_clipped_linears`: inputs and outputs of linear layers are clamped between buffers.
    clipped: bool,
    /// `standardize`: pooled features are moved and scaled by buffers.
    standardized: bool,
}

impl Tower {
    pub(super) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        let hidden = sizes.need("v_hidden")?;
        let heads = sizes.need("v_heads")?.max(1);
        Ok(Self {
            hidden,
            layers: sizes.need("v_layers")?,
            heads,
            head_dim: sizes.or("v_head_dim", hidden / heads),
            ffn: sizes.or("v_ffn", 4 * hidden),
            patch: sizes.need("patch")?.max(1),
            pool: sizes.or("pool", 3).max(1),
            most: sizes.or("image_tokens", 280).max(1),
            places: sizes.or("v_places", 10_240),
            clipped: sizes.is_set("v_clipped"),
            standardized: sizes.is_set("v_standardized"),
        })
    }

    /// The patches of a picture with those that pad it.
    pub(super) fn patches(&self) -> u64 {
        self.most.saturating_mul(self.pool * self.pool)
    }

    /// The features of so many tokens of pictures `[N, patches, values]`.
    pub(super) fn features(&self, cx: &Cx, pixels: &Tensor, tokens: u64) -> Tensor {
        let (n, count) = (pixels.size(0), pixels.size(1));
        let places = [n, count, 2];
        let padding = pixels.constant("all", &[n, count], DType::Bool);
        let embedded = cx.module("patch_embedder", |cx| self.embedded(cx, pixels, &padding));
        let states = cx.module("encoder", |cx| {
            let valid = pixels.constant("bitwise_not", &[n, count], DType::Bool);
            let mask = bidirectional_mask(cx, count, Some(&valid), embedded.dtype());
            let positions = pixels.constant("positions", &places, DType::I64);
            let tables = cx.module("rotary_emb", |cx| {
                self.tables(cx, &positions, embedded.dtype())
            });
            let tower = *self;
            let layer = move |cx: &Cx, x: &Tensor| tower.layer(cx, x, &tables, &mask);
            cx.equal_stack("layers", self.layers, embedded.clone(), layer)
        });
        let pooled = self.pooled(&states, &padding);
        // Tokens that pad a picture go.
        let flags = pooled.constant("logical_not", &[n, self.most], DType::Bool);
        let mut features = pooled.rows_where(&flags, tokens);
        drop((pooled, states));
        if self.standardized {
            let bias = cx.buffer("std_bias", [self.hidden], cx.env.weights);
            let scale = cx.buffer("std_scale", [self.hidden], cx.env.weights);
            features = features
                .sub(&bias.to(DType::F32))
                .pipe(|moved| moved.mul(&scale.to(DType::F32)));
        }
        features.to(embedded.dtype())
    }

    /// `Gemma4VisionPatchEmbedder.forward`.
    fn embedded(&self, cx: &Cx, pixels: &Tensor, padding: &Tensor) -> Tensor {
        let table = cx.param("position_embedding_table", [2, self.places, self.hidden]);
        let mut scaled = pixels.constant("sub", pixels.shape(), pixels.dtype());
        scaled = scaled.pipe(|moved| moved.constant("mul", moved.shape(), moved.dtype()));
        let scaled = scaled.to(cx.env.weights);
        let hidden = cx.linear("input_proj", &scaled, self.hidden, false);
        let shape = [pixels.size(0), pixels.size(1)];
        let clamped = pixels.constant("clamp", &[shape[0], shape[1], 2], DType::I64);
        let read = || {
            let indices = clamped.select(2);
            table.tensor().select(0).embedding(&indices)
        };
        let (across, down) = (read(), read());
        let sum = across.add(&down);
        let places = sum.where_mask(&padding.unsqueeze(-1));
        drop((across, down, sum));
        hidden.add(&places)
    }

    /// Cosines and sines `[N, S, D]`: those of rows beside those of columns.
    fn tables(&self, cx: &Cx, positions: &Tensor, dtype: DType) -> [Tensor; 2] {
        cx.tape.no_grad(|| {
            let quarter = self.head_dim / 4;
            let frequencies = cx.buffer("inv_freq", [quarter], DType::F32);
            cx.buffer("original_inv_freq", [quarter], DType::F32);
            let angles = positions
                .unsqueeze(-1)
                .to(DType::F32)
                .pipe(|places| places.mul(&frequencies));
            let cos = angles.cos().pipe(Tensor::mul_scalar);
            let sin = angles.sin().pipe(Tensor::mul_scalar);
            let tables = [cos, sin].map(|table| {
                let (rows, columns) = (table.select(2), table.select(2));
                Tensor::cat(&rows, &[&rows, &columns, &columns], -1)
            });
            tables.map(|table| table.to(dtype))
        })
    }

    /// `Gemma4ClippableLinear.forward`.
    fn linear(&self, cx: &Cx, name: &'static str, x: &Tensor, out: u64) -> Tensor {
        cx.module(name, |cx| {
            if !self.clipped {
                return cx.linear("linear", x, out, false);
            }
            let bounds = |names: [&'static str; 2]| {
                names.map(|name| cx.buffer(name, [0; 0], cx.env.weights))
            };
            let inputs = x.clamped(&bounds(["input_min", "input_max"]));
            let outputs = cx.linear("linear", &inputs, out, false);
            drop(inputs);
            outputs.clamped(&bounds(["output_min", "output_max"]))
        })
    }

    fn norm(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        cx.module(name, |cx| {
            let weight = cx.param("weight", [x.size(-1)]).tensor();
            norm::gemma4(x, Some(&weight))
        })
    }

    fn layer(&self, cx: &Cx, input: &Tensor, tables: &[Tensor; 2], mask: &AttentionMask) -> Tensor {
        let mut hidden = Self::norm(cx, "input_layernorm", input);
        let (attended, weights) =
            cx.module("self_attn", |cx| self.attention(cx, &hidden, tables, mask));
        hidden = Self::norm(cx, "post_attention_layernorm", &attended);
        drop(attended);
        hidden = input.add(&hidden);
        let residual = hidden.clone();
        hidden = Self::norm(cx, "pre_feedforward_layernorm", &hidden);
        hidden = cx.module("mlp", |cx| {
            let product = {
                let gate = self.linear(cx, "gate_proj", &hidden, self.ffn);
                let gate = gate.pipe(Tensor::gelu);
                let up = self.linear(cx, "up_proj", &hidden, self.ffn);
                gate.mul(&up)
            };
            self.linear(cx, "down_proj", &product, self.hidden)
        });
        hidden = Self::norm(cx, "post_feedforward_layernorm", &hidden);
        drop(weights);
        residual.add(&hidden)
    }

    fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        tables: &[Tensor; 2],
        mask: &AttentionMask,
    ) -> (Tensor, Option<Tensor>) {
        let width = self.heads * self.head_dim;
        let shape = [x.size(0), x.size(1), self.heads, self.head_dim];
        let turned = |name, norm_name| {
            let rows = self.linear(cx, name, x, width).view(&shape);
            let normed = rows.pipe(|rows| Self::norm(cx, norm_name, rows));
            normed
                .pipe(|normed| halves_rotated(normed, tables))
                .transpose(1, 2)
        };
        let q = turned("q_proj", "q_norm");
        let k = turned("k_proj", "k_norm");
        let v = self.linear(cx, "v_proj", x, width).view(&shape);
        let v = v.pipe(|v| norm::gemma4(v, None)).transpose(1, 2);
        let form = Eager { in_fp32: true };
        let (mut out, weights) = attend(cx, [&q, &k, &v], mask, 0.0, form);
        out = out.reshape(&[x.size(0), x.size(1), width]).contiguous();
        (self.linear(cx, "o_proj", &out, self.hidden), weights)
    }

    /// `Gemma4VisionPooler.forward`: means over the patches of each token, as a product in fp32.
    fn pooled(&self, states: &Tensor, padding: &Tensor) -> Tensor {
        let (n, count) = (states.size(0), states.size(1));
        let kept = states.masked_fill(&padding.unsqueeze(-1));
        let shares = {
            let one_hot = states.constant("one_hot", &[n, count, self.most], DType::I64);
            let wide = states.constant("to", &[n, count, self.most], DType::F32);
            drop(one_hot);
            wide.pipe(|wide| wide.constant("div", wide.shape(), DType::F32))
        };
        let means = kept
            .to(DType::F32)
            .pipe(|wide| shares.transpose(1, 2).matmul(wide));
        let narrow = means.to(states.dtype());
        drop((means, kept, shares));
        narrow.to(DType::F32).pipe(Tensor::mul_scalar)
    }
}

/// `apply_multidimensional_rope`: one half of a head by rows, the other by columns.
fn halves_rotated(x: &Tensor, tables: &[Tensor; 2]) -> Tensor {
    let half = x.size(-1) / 2;
    let halves = |t: &Tensor| t.split(&[half, half], -1);
    let [cos, sin] = tables.each_ref().map(halves);
    let parts = halves(x);
    let turned: Vec<Tensor> = parts
        .iter()
        .zip(cos.iter().zip(&sin))
        .map(|(part, (cos, sin))| {
            let tables = [cos.unsqueeze(2), sin.unsqueeze(2)];
            rope::rotated(part, &tables, rope::rotate_half)
        })
        .collect();
    let all: Vec<&Tensor> = turned.iter().collect();
    match all.split_first() {
        Some((first, rest)) => Tensor::cat(first, rest, -1),
        None => x.clone(),
    }
}
