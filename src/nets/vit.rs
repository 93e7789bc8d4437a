//! ViT of transformers (transformers/models/vit/modeling_vit.py).

use super::attention::{Eager, attend, heads};
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::scenario::Data;
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
struct Vit {
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    image: u64,
    patch: u64,
    classes: u64,
    dropout: f64,
}

pub fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    Ok(Box::new(Vit {
        layers: sizes.need("layers")?,
        hidden,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.or("ffn", 4 * hidden),
        image: sizes.or("img", 224),
        patch: sizes.or("patch", 16).max(1),
        classes: sizes.or("classes", 1000),
        dropout: if sizes.is_set("drop") { 0.1 } else { 0.0 },
    }))
}

/// Images and one label each.
pub fn images_and_labels(cx: &Cx, data: &Data, size: u64) -> Vec<Tensor> {
    let shape = [data.micro_batch, 3, size, size];
    vec![
        cx.tape.empty("pixel_values", shape, cx.env.weights),
        cx.tape.empty("labels", [data.micro_batch], DType::I64),
    ]
}

/// An image as a sequence of patches `[B, N, C]`, by a convolution with a stride of its kernel.
pub fn patches(cx: &Cx, name: &'static str, image: &Tensor, width: u64, size: u64) -> Tensor {
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
        let sequence = cx.module("vit", |cx| self.model(cx, image));
        let logits = cx.linear("classifier", &sequence.select(1), self.classes, true);
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
        let this = *self;
        let last = cx.stack(
            "layers",
            self.layers,
            embedded.clone(),
            move |cx, hidden, _| this.layer(cx, hidden),
        );
        cx.layer_norm("layernorm", &last)
    }

    fn embeddings(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let side = self.image / self.patch;
        let token = cx.param("cls_token", [1, 1, self.hidden]);
        let start = cx.tape.construction_point();
        let positions = cx.param("position_embeddings", [1, side * side + 1, self.hidden]);
        let made = cx.tape.construction_point();
        let mut embedded = cx.module("patch_embeddings", |cx| {
            patches(cx, "projection", image, self.hidden, self.patch)
        });
        // The constructor makes the position embeddings last; a module's own parameters are listed first.
        cx.tape.allocate_before(start, made);
        let tokens = token.tensor().expand(&[image.size(0), 1, self.hidden]);
        embedded = Tensor::cat(&tokens, &[&embedded], 1);
        embedded = embedded.add(&positions.tensor());
        cx.dropout(&embedded, self.dropout)
    }

    fn layer(&self, cx: &Cx, input: &Tensor) -> Tensor {
        let start = cx.tape.construction_point();
        let mut hidden = cx.layer_norm("layernorm_before", input);
        let normed = cx.tape.construction_point();
        let (attended, _weights) = cx.module("attention", |cx| self.attention(cx, &hidden));
        cx.tape.construct_here(start, normed);
        hidden = attended;
        hidden = cx.dropout(&hidden, self.dropout);
        hidden = hidden.add(input);
        let residual = hidden.clone();
        hidden = cx.layer_norm("layernorm_after", &hidden);
        hidden = cx.module("mlp", |cx| {
            let mut x = cx.linear("fc1", &hidden, self.ffn, true);
            x = x.gelu();
            cx.linear("fc2", &x, self.hidden, true)
        });
        hidden = cx.dropout(&hidden, self.dropout);
        hidden.add(&residual)
    }

    fn attention(&self, cx: &Cx, x: &Tensor) -> (Tensor, Option<Tensor>) {
        let [q, k, v] = ["q_proj", "k_proj", "v_proj"]
            .map(|name| heads(&cx.linear(name, x, self.hidden, true), self.heads));
        let eager = Eager { in_fp32: true };
        let (mut out, weights) =
            attend(cx, [&q, &k, &v], &AttentionMask::None, self.dropout, eager);
        out = out.reshape(&[x.size(0), x.size(1), self.hidden]);
        (cx.linear("o_proj", &out, self.hidden, true), weights)
    }
}
