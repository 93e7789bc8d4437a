//! ViT of transformers and its relatives DeiT and DINOv2 (transformers/models/{vit,deit,dinov2}/modeling_*.py).

use super::attention::{Eager, attend, heads};
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Vit {
    model: Model,
    layers: u64,
    layer: Layer,
    image: u64,
    patch: u64,
    classes: u64,
    /// The class without a head, of which the loss is the mean of the last hidden states.
    headless: bool,
    /// Tokens behind the first that no head reads (DINOv2 with registers).
    registers: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    Vit,
    /// With a token for distillation.
    Deit,
    /// With a scale after each sublayer; the head reads the mean of the patches too.
    Dinov2,
}

/// One layer, which other models built on ViT have too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    pub hidden: u64,
    pub heads: u64,
    pub ffn: u64,
    pub dropout: f64,
    /// What sublayers return is multiplied by a learned vector (DINOv2).
    pub scaled: bool,
    /// The MLP multiplies a gate of SiLU (`use_swiglu_ffn`): `ffn` is its width before a third of it goes.
    pub gated: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build_as(sizes, Model::Vit)
}

pub(crate) fn deit(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build_as(sizes, Model::Deit)
}

pub(crate) fn dinov2(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build_as(sizes, Model::Dinov2)
}

fn build_as(sizes: &Sizes, model: Model) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Vit {
        model,
        layers: sizes.need("layers")?,
        layer: Layer {
            scaled: model == Model::Dinov2,
            gated: sizes.is_set("swiglu"),
            ..Layer::plain(sizes)?
        },
        image: sizes.or("img", 224),
        patch: sizes.or("patch", 16).max(1),
        classes: sizes.or("classes", 1000),
        headless: sizes.is_set("headless"),
        registers: sizes.or("registers", 0),
    }))
}

/// Images and one label each.
pub(crate) fn images_and_labels(cx: &Cx, data: &Data, size: u64) -> Vec<Tensor> {
    let shape = [data.micro_batch, 3, size, size];
    vec![
        cx.tape.empty("pixel_values", shape, cx.env.weights),
        cx.tape.empty("labels", [data.micro_batch], DType::I64),
    ]
}

/// An image as a sequence of patches `[B, N, C]`, by a convolution with a stride of its kernel.
pub(crate) fn patches(
    cx: &Cx,
    name: &'static str,
    image: &Tensor,
    width: u64,
    size: u64,
) -> Tensor {
    let grid = cx.conv2d(name, image, width, size, Conv::stride(size), true);
    let count = grid.size(2) * grid.size(3);
    grid.reshape(&[grid.size(0), width, count]).transpose(1, 2)
}

impl Net for Vit {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        images_and_labels(cx, data, self.image)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, labels] = batch else {
            return Output::empty(cx);
        };
        let name = match self.model {
            Model::Vit => "vit",
            Model::Deit => "deit",
            Model::Dinov2 if self.registers > 0 => "dinov2_with_registers",
            Model::Dinov2 => "dinov2",
        };
        let sequence = cx.module(name, |cx| self.model(cx, image));
        if self.headless {
            let loss = cx.module("loss", |_| sequence.mean_all());
            return Output {
                loss,
                held: vec![sequence],
            };
        }
        let first = sequence.select(1);
        let read = if self.model == Model::Dinov2 {
            let others = self.registers.saturating_add(1);
            let rest = sequence.narrow(1, sequence.size(1).saturating_sub(others));
            let mean = rest.mean(&[1]).squeeze(1);
            Tensor::cat(&first, &[&mean], 1)
        } else {
            first
        };
        let logits = cx.linear("classifier", &read, self.classes, true);
        let loss = cx.module("loss", |_| logits.cross_entropy(labels));
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl Vit {
    fn model(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, image));
        let layer = self.layer;
        let stack = |cx: &Cx, name: &'static str| {
            cx.equal_stack(name, self.layers, embedded.clone(), move |cx, hidden| {
                layer.run(cx, hidden)
            })
        };
        let last = match self.model {
            Model::Vit | Model::Deit => stack(cx, "layers"),
            Model::Dinov2 => cx.module("encoder", |cx| stack(cx, "layer")),
        };
        cx.layer_norm("layernorm", &last)
    }

    fn embeddings(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let side = self.image / self.patch;
        let hidden = self.layer.hidden;
        let token = cx.param("cls_token", [1, 1, hidden]);
        if self.model == Model::Dinov2 {
            // Only its pre-training reads it.
            cx.param("mask_token", [1, hidden]);
        }
        let start = cx.tape.construction_point();
        let distilled = self.model == Model::Deit;
        let tokens = if distilled { 2 } else { 1 };
        let positions = cx.param("position_embeddings", [1, side * side + tokens, hidden]);
        let distillation = distilled.then(|| cx.param("distillation_token", [1, 1, hidden]));
        let registered = self.registers > 0;
        let registers =
            registered.then(|| cx.param("register_tokens", [1, self.registers, hidden]));
        let made = cx.tape.construction_point();
        let mut embedded = cx.module("patch_embeddings", |cx| {
            patches(cx, "projection", image, hidden, self.patch)
        });
        // The constructor makes the position embeddings last; a module's own parameters are listed first.
        cx.tape.allocate_before(start, made);
        let wide = |token: &Tensor| token.expand(&[image.size(0), 1, hidden]);
        let tokens = wide(&token.tensor());
        embedded = match distillation.map(|token| wide(&token.tensor())) {
            Some(other) => Tensor::cat(&tokens, &[&other, &embedded], 1),
            None => Tensor::cat(&tokens, &[&embedded], 1),
        };
        embedded = embedded.add(&positions.tensor());
        if let Some(registers) = registers {
            let registers = registers.tensor();
            let registers = registers.expand(&[image.size(0), self.registers, hidden]);
            let rest = embedded.narrow(1, side * side);
            embedded = Tensor::cat(&embedded.narrow(1, 1), &[&registers, &rest], 1);
        }
        cx.dropout(&embedded, self.layer.dropout)
    }
}

impl Layer {
    /// ViT's own, by its sizes.
    pub(crate) fn plain(sizes: &Sizes) -> Result<Self, ModelError> {
        let hidden = sizes.need("hidden")?;
        Ok(Self {
            hidden,
            heads: sizes.need("heads")?.max(1),
            ffn: sizes.or("ffn", 4 * hidden),
            dropout: if sizes.is_set("drop") { 0.1 } else { 0.0 },
            scaled: false,
            gated: false,
        })
    }

    /// `ViTLayer.forward`.
    pub(crate) fn run(self, cx: &Cx, input: &Tensor) -> Tensor {
        let [before, after] = if self.scaled {
            ["norm1", "norm2"]
        } else {
            ["layernorm_before", "layernorm_after"]
        };
        let start = cx.tape.construction_point();
        let mut hidden = cx.layer_norm(before, input);
        let normed = cx.tape.construction_point();
        let (attended, _weights) = cx.module("attention", |cx| self.attention(cx, &hidden));
        if !self.scaled {
            cx.tape.construct_here(start, normed);
        }
        hidden = attended;
        hidden = self.finished(cx, "layer_scale1", &hidden);
        hidden = hidden.add(input);
        let residual = hidden.clone();
        hidden = cx.layer_norm(after, &hidden);
        hidden = cx.module("mlp", |cx| {
            if self.gated {
                return self.gated_mlp(cx, &hidden);
            }
            let mut x = cx.linear("fc1", &hidden, self.ffn, true);
            x = x.gelu();
            cx.linear("fc2", &x, self.hidden, true)
        });
        hidden = self.finished(cx, "layer_scale2", &hidden);
        hidden.add(&residual)
    }

    /// `Dinov2SwiGLUFFN.forward`.
    fn gated_mlp(self, cx: &Cx, x: &Tensor) -> Tensor {
        let inner = (self.ffn.saturating_mul(2) / 3).next_multiple_of(8);
        let product = {
            let gate = cx.linear("gate_proj", x, inner, true).pipe(Tensor::silu);
            let up = cx.linear("up_proj", x, inner, true);
            gate.mul(&up)
        };
        cx.linear("down_proj", &product, self.hidden, true)
    }

    /// What a sublayer has returned, with its dropout or its scale.
    fn finished(self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        if self.scaled {
            cx.module(name, |cx| {
                x.mul(&cx.param("lambda1", [self.hidden]).tensor())
            })
        } else {
            cx.dropout(x, self.dropout)
        }
    }

    fn attention(self, cx: &Cx, x: &Tensor) -> (Tensor, Option<Tensor>) {
        let [q, k, v] = ["q_proj", "k_proj", "v_proj"]
            .map(|name| heads(&cx.linear(name, x, self.hidden, true), self.heads));
        let eager = Eager {
            in_fp32: !self.scaled,
        };
        let (mut out, weights) =
            attend(cx, [&q, &k, &v], &AttentionMask::None, self.dropout, eager);
        out = out.reshape(&[x.size(0), x.size(1), self.hidden]);
        (cx.linear("o_proj", &out, self.hidden, true), weights)
    }
}
