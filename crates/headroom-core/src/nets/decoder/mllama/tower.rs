//! `MllamaVisionModel`: the patches of all tiles of a picture in one row, layers within and gated ones behind, and the states of
//! some layers beside the last. Its layers are never checkpointed: they are no `GradientCheckpointingLayer`.

use super::super::layer_set::LayerSet;
use crate::nets::attention::{Eager, attend, heads};
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::{AttentionMask, Conv};
use headroom_scenario::Attention;

#[derive(Clone, Debug)]
pub(super) struct Tower {
    hidden: u64,
    layers: u64,
    global_layers: u64,
    heads: u64,
    ffn: u64,
    /// The side of a tile in pixels.
    pub image: u64,
    patch: u64,
    /// Tiles of a picture.
    pub tiles: u64,
    /// Layers whose states are read besides the last.
    read: Vec<u64>,
}

/// `max_aspect_ratio_id`, and one for no picture.
const RATIOS: u64 = 9;

/// Rows of patches are padded to a multiple of this.
const ROUND: u64 = 8;

impl Tower {
    pub(super) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        let hidden = sizes.need("v_hidden")?;
        let layers = sizes.need("v_layers")?;
        let read = LayerSet::list(sizes, "v_features", layers)?;
        if read.iter().any(|layer| *layer >= layers) {
            return Err(ModelError::MismatchedLists {
                names: "v_features",
                expected: "layers below v_layers",
            });
        }
        Ok(Self {
            hidden,
            layers,
            global_layers: sizes.or("v_gated_layers", 8),
            heads: sizes.need("v_heads")?.max(1),
            ffn: sizes.or("v_ffn", 4 * hidden),
            image: sizes.or("img", 560),
            patch: sizes.need("patch")?.max(1),
            tiles: sizes.or("tiles", 4).clamp(1, 64),
            read,
        })
    }

    /// Patches of a tile, with the class token.
    pub(super) fn patches(&self) -> u64 {
        let side = self.image / self.patch;
        side.saturating_mul(side).saturating_add(1)
    }

    /// `[B, images, tiles, patches, width]`, and what its outputs hold until then.
    pub(super) fn states(
        &self,
        cx: &Cx,
        pixels: &Tensor,
        ratios: &Tensor,
    ) -> (Tensor, Vec<Tensor>) {
        let (b, images) = (pixels.size(0), pixels.size(1));
        let (n, tiles, width) = (b * images, self.tiles, self.hidden);
        let (patches, image) = (self.patches(), self.image);
        let flat = pixels.view(&[n * tiles, 3, image, image]);
        let conv = Conv::stride(self.patch);
        let grid = cx.conv2d("patch_embedding", &flat, width, self.patch, conv, false);
        let grid = cx.asks_for_gradient(grid);
        let rows = grid
            .reshape(&[n * tiles, width, patches - 1])
            .transpose(1, 2);
        let mut hidden = rows.view(&[n, tiles, patches - 1, width]);
        hidden = self.by_ratio(cx, "pre_tile_positional_embedding", &hidden, ratios);
        hidden = hidden.reshape(&[n * tiles, patches - 1, width]);
        let class = cx.param("class_embedding", [width]).tensor();
        let class = class.expand(&[n * tiles, 1, width]);
        hidden = Tensor::cat(&class, &[&hidden], 1).view(&[n, tiles, patches, width]);
        let places = |cx: &Cx| self.placed(cx, &hidden, ratios);
        hidden = cx.module("gated_positional_embedding", places);
        hidden = cx.layer_norm("layernorm_pre", &hidden);
        let padded = patches.next_multiple_of(ROUND);
        hidden = hidden.pad_to(&[n, tiles, padded, width]);
        let mask = Self::mask(cx, &hidden, [n, tiles * padded]);
        hidden = hidden.view(&[n, tiles * padded, width]);
        let states = cx.module("transformer", |cx| {
            self.encode(cx, hidden, self.layers, &mask, false)
        });
        let last = states.last().cloned().unwrap_or_else(|| pixels.clone());
        hidden = cx.layer_norm("layernorm_post", &last);
        hidden = hidden.view(&[n, tiles, padded, width]);
        hidden = self.by_ratio(cx, "post_tile_positional_embedding", &hidden, ratios);
        hidden = hidden.reshape(&[n, tiles * padded, width]);
        let global = cx.module("global_transformer", |cx| {
            self.encode(cx, hidden.clone(), self.global_layers, &mask, true)
        });
        let cut = |t: &Tensor, width: u64| {
            let rows = t.view(&[n, tiles, padded, width]).narrow(2, patches);
            rows.reshape(&[b, images, tiles, patches, width])
        };
        let last = cut(global.last().unwrap_or(&hidden), width);
        let read: Vec<Tensor> = self
            .read
            .iter()
            .filter_map(|layer| states.get(*layer as usize).map(|state| state.unsqueeze(-1)))
            .collect();
        let all: Vec<&Tensor> = read.iter().collect();
        let joined = all.split_first().map(|(first, rest)| {
            let stacked = Tensor::cat(first, rest, -1);
            cut(&stacked, width * read.len() as u64)
        });
        let out = match &joined {
            Some(joined) => Tensor::cat(&last, &[joined], -1),
            None => last,
        };
        drop(mask);
        (out, [states, global].concat())
    }

    /// `MllamaPrecomputedAspectRatioEmbedding.forward`.
    fn by_ratio(&self, cx: &Cx, name: &'static str, hidden: &Tensor, ratios: &Tensor) -> Tensor {
        cx.module(name, |cx| {
            let read = cx.embedding("embedding", ratios, RATIOS, self.tiles * self.hidden);
            let read = read.reshape(&[hidden.size(0), self.tiles, 1, self.hidden]);
            let gate = cx.param("gate", [1]).tensor().tanh();
            let gated = read.mul(&gate);
            drop((read, gate));
            hidden.add(&gated)
        })
    }

    /// `MllamaPrecomputedPositionEmbedding.forward`.
    fn placed(&self, cx: &Cx, hidden: &Tensor, ratios: &Tensor) -> Tensor {
        let (patches, width) = (self.patches(), self.hidden);
        let gate = cx.param("gate", [1]).tensor();
        let table = cx.param("embedding", [patches, width]).tensor();
        let share = gate.tanh().pipe(Tensor::mul_scalar);
        let own = share.pipe(|share| share.mul(&table));
        let placed = hidden.add(&own.view(&[1, 1, patches, width]));
        let row = self.tiles * patches * width;
        let read = cx.embedding("tile_embedding", ratios, RATIOS, row);
        let read = read.reshape(&[hidden.size(0), self.tiles, patches, width]);
        let gated = gate.tanh().pipe(|gate| gate.mul(&read));
        placed.add(&gated)
    }

    /// `_prepare_aspect_ratio_attention_mask`: a bias of all patches of a picture by all.
    fn mask(cx: &Cx, hidden: &Tensor, [n, rows]: [u64; 2]) -> AttentionMask {
        if cx.env.training.attention == Attention::Flash2 {
            return AttentionMask::None;
        }
        let dtype = cx.env.weights;
        let product = cx.tape.autocast_dtype().unwrap_or(dtype);
        let column = hidden.constant("rsub", &[n, rows, 1], dtype);
        let square = hidden.constant("bmm", &[n, rows, rows], product);
        let scaled = hidden.constant("mul", &[n, rows, rows], product);
        drop((column, square));
        AttentionMask::Given(scaled.unsqueeze(1))
    }

    /// `MllamaVisionEncoder.forward`: the states of all its layers.
    fn encode(
        &self,
        cx: &Cx,
        hidden: Tensor,
        layers: u64,
        mask: &AttentionMask,
        gated: bool,
    ) -> Vec<Tensor> {
        let mut states = Vec::new();
        let mut hidden = hidden;
        for i in 0..layers as usize {
            hidden = cx.list_item("layers", i, |cx| self.layer(cx, &hidden, mask, gated));
            states.push(hidden.clone());
        }
        states
    }

    fn layer(&self, cx: &Cx, input: &Tensor, mask: &AttentionMask, gated: bool) -> Tensor {
        let scaled = |name, x: Tensor| {
            if !gated {
                return x;
            }
            let gate = cx.param(name, [1]).tensor().tanh();
            gate.mul(&x)
        };
        let mut hidden = cx.layer_norm("input_layernorm", input);
        let (attended, weights) = cx.module("self_attn", |cx| self.attention(cx, &hidden, mask));
        hidden = scaled("gate_attn", attended);
        hidden = input.add(&hidden);
        let residual = hidden.clone();
        hidden = cx.layer_norm("post_attention_layernorm", &hidden);
        hidden = cx.module("mlp", |cx| {
            let inner = cx.linear("fc1", &hidden, self.ffn, true).pipe(Tensor::gelu);
            cx.linear("fc2", &inner, self.hidden, true)
        });
        hidden = scaled("gate_ffn", hidden);
        drop(weights);
        residual.add(&hidden)
    }

    fn attention(&self, cx: &Cx, x: &Tensor, mask: &AttentionMask) -> (Tensor, Option<Tensor>) {
        let project = |name| cx.linear(name, x, self.hidden, false);
        let all = ["q_proj", "k_proj", "v_proj"].map(project);
        let [q, k, v] = all.map(|rows| heads(&rows, self.heads));
        let form = Eager { in_fp32: true };
        let (mut out, weights) = attend(cx, [&q, &k, &v], mask, 0.0, form);
        out = out
            .reshape(&[x.size(0), x.size(1), self.hidden])
            .contiguous();
        (cx.linear("o_proj", &out, self.hidden, false), weights)
    }
}
