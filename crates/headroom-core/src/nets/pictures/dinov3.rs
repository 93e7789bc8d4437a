//! DINOv3's ViT: rotary positions over patches, tokens of registers, scaled sublayers
//! (transformers/models/dinov3_vit/modeling_dinov3_vit.py). Without a head, its loss is the mean of the last hidden states.

use crate::nets::attention::{Eager, attend, heads};
use crate::nets::decoder::{rotate_half, rotated};
use crate::nets::vit::{images_and_labels, patches};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct DinoV3 {
    layers: u64,
    layer: Layer,
    registers: u64,
    image: u64,
    patch: u64,
}

#[derive(Clone, Copy, Debug)]
struct Layer {
    hidden: u64,
    heads: u64,
    ffn: u64,
    gated: bool,
    /// Biases of queries, keys, values, of their result's projection, and of the MLP.
    biases: [bool; 5],
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    let usual = [
        ("q_bias", 1),
        ("k_bias", 0),
        ("v_bias", 1),
        ("o_bias", 1),
        ("mlp_bias", 1),
    ];
    Ok(Box::new(DinoV3 {
        layers: sizes.need("layers")?,
        layer: Layer {
            hidden,
            heads: sizes.need("heads")?.max(1),
            ffn: sizes.or("ffn", 4 * hidden),
            gated: sizes.is_set("gated"),
            biases: usual.map(|(name, usual)| sizes.or(name, usual) != 0),
        },
        registers: sizes.or("registers", 0),
        image: sizes.or("img", 224),
        patch: sizes.or("patch", 16).max(1),
    }))
}

impl Net for DinoV3 {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let mut all = images_and_labels(cx, data, self.image);
        all.truncate(1);
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image] = batch else {
            return Output::empty(cx);
        };
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, image));
        let tables = cx.module("rope_embeddings", |cx| self.tables(cx, image));
        let layer = self.layer;
        let last = cx.module("model", |cx| {
            cx.equal_stack("layer", self.layers, embedded.clone(), move |cx, hidden| {
                layer.run(cx, hidden, &tables)
            })
        });
        let last = cx.layer_norm("norm", &last);
        let loss = cx.module("loss", |_| last.mean_all());
        Output {
            loss,
            held: vec![last],
        }
    }
}

impl DinoV3 {
    fn embeddings(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let hidden = self.layer.hidden;
        let tokens = cx.param("cls_token", [1, 1, hidden]);
        // Only its pre-training reads it.
        cx.param("mask_token", [1, 1, hidden]);
        let registers = cx.param("register_tokens", [1, self.registers, hidden]);
        let grid = patches(cx, "patch_embeddings", image, hidden, self.patch);
        let n = image.size(0);
        let tokens = tokens.tensor().expand(&[n, 1, hidden]);
        let registers = registers.tensor().expand(&[n, self.registers, hidden]);
        Tensor::cat(&tokens, &[&registers, &grid], 1)
    }

    /// `DINOv3ViTRopePositionEmbedding.forward` in training, which stretches coordinates at random.
    fn tables(&self, cx: &Cx, image: &Tensor) -> [Tensor; 2] {
        let layer = self.layer;
        let (side, head) = (self.image / self.patch, layer.hidden / layer.heads);
        let count = side.saturating_mul(side);
        cx.tape.no_grad(|| {
            cx.buffer("inv_freq", [head / 4], DType::F32);
            // A cache of the last grids' coordinates keeps them.
            let coordinates = cx.buffer("coordinates", [count, 2], DType::F32);
            let make = |op, shape: &[u64]| coordinates.constant(op, shape, DType::F32);
            let stretched = make("mul", &[count, 2]);
            let mut angles = make("mul", &[count, 2, head / 4]);
            angles = {
                let twice = make("tile", &[count, head]);
                drop(angles);
                twice
            };
            let [cos, sin] = [angles.cos(), angles.sin()];
            drop(stretched);
            [cos, sin].map(|table| table.to(image.dtype()))
        })
    }
}

impl Layer {
    /// `DINOv3ViTLayer.forward`.
    fn run(self, cx: &Cx, input: &Tensor, tables: &[Tensor; 2]) -> Tensor {
        let scaled = |cx: &Cx, name, x: &Tensor| {
            cx.module(name, |cx| {
                x.mul(&cx.param("lambda1", [self.hidden]).tensor())
            })
        };
        let mut hidden = cx.layer_norm("norm1", input);
        let (attended, _weights) = cx.module("attention", |cx| self.attention(cx, &hidden, tables));
        hidden = attended;
        hidden = scaled(cx, "layer_scale1", &hidden);
        hidden = hidden.add(input);
        let residual = hidden.clone();
        hidden = cx.layer_norm("norm2", &hidden);
        hidden = cx.module("mlp", |cx| self.mlp(cx, &hidden));
        hidden = scaled(cx, "layer_scale2", &hidden);
        hidden.add(&residual)
    }

    fn mlp(self, cx: &Cx, x: &Tensor) -> Tensor {
        let [.., bias] = self.biases;
        let mut inner = if self.gated {
            let gate = cx.linear("gate_proj", x, self.ffn, bias).pipe(Tensor::gelu);
            let up = cx.linear("up_proj", x, self.ffn, bias);
            gate.mul(&up)
        } else {
            cx.linear("up_proj", x, self.ffn, bias).pipe(Tensor::gelu)
        };
        inner = cx.linear("down_proj", &inner, self.hidden, bias);
        inner
    }

    /// `DINOv3ViTAttention.forward`: only patches are rotated, not the tokens before them.
    fn attention(self, cx: &Cx, x: &Tensor, tables: &[Tensor; 2]) -> (Tensor, Option<Tensor>) {
        let [q_bias, k_bias, v_bias, o_bias, _] = self.biases;
        let [mut q, mut k, v] = [("q_proj", q_bias), ("k_proj", k_bias), ("v_proj", v_bias)]
            .map(|(name, bias)| cx.linear(name, x, self.hidden, bias))
            .map(|x| heads(&x, self.heads));
        let [cos, _] = tables;
        let turned = |x: &Tensor| {
            let count = cos.size(0);
            let prefix = x.narrow(-2, x.size(-2).saturating_sub(count));
            let rest = x.narrow(-2, count);
            (prefix, rotated(&rest, tables, rotate_half))
        };
        let (q_parts, k_parts) = (turned(&q), turned(&k));
        q = Tensor::cat(&q_parts.0, &[&q_parts.1], -2);
        k = Tensor::cat(&k_parts.0, &[&k_parts.1], -2);
        drop((q_parts, k_parts));
        let eager = Eager::default();
        let (mut out, weights) = attend(cx, [&q, &k, &v], &AttentionMask::None, 0.0, eager);
        out = out.reshape(x.shape());
        (cx.linear("o_proj", &out, self.hidden, o_bias), weights)
    }
}
