//! EVA-02 of timm (models/eva.py).

use super::{ImageModel, classifier};
use crate::nets::vit::patches;
use crate::nets::{Cx, ModelError, Net, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
struct Eva {
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    patch: u64,
}

pub(crate) fn from_sizes(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    let net = Eva {
        layers: sizes.need("layers")?,
        hidden,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.or("ffn", 8 * hidden / 3),
        patch: sizes.or("patch", 14).max(1),
    };
    Ok(classifier(sizes, net))
}

impl ImageModel for Eva {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let count = (image.size(2) / self.patch) * (image.size(3) / self.patch);
        let token = cx.param("cls_token", [1, 1, self.hidden]);
        let positions = cx.param("pos_embed", [1, count + 1, self.hidden]);
        let embedded = cx.module("patch_embed", |cx| {
            patches(cx, "proj", image, self.hidden, self.patch)
        });
        // Sines and cosines of a place, side by side.
        let d = self.hidden / self.heads;
        let table = cx.module("rope", |cx| {
            cx.buffer("bands", [d / 4], DType::F32);
            cx.buffer("pos_embed", [count, 2 * d], cx.env.weights)
        });
        let mut x = {
            let tokens = token.tensor().expand(&[image.size(0), 1, self.hidden]);
            Tensor::cat(&tokens, &[&embedded], 1)
        };
        x = x.add(&positions.tensor());
        drop(embedded);
        let this = *self;
        let outer = cx.checkpointing_in_any_mode();
        x = outer.equal_stack("blocks", self.layers, x, move |cx, x| {
            this.block(cx, x, &table)
        });
        let mean = {
            let rest = x.narrow(1, count);
            drop(x);
            rest.mean(&[1]).squeeze(1)
        };
        let normed = cx.layer_norm("fc_norm", &mean);
        cx.linear("head", &normed, classes, true)
    }
}

impl Eva {
    fn block(self, cx: &Cx, input: &Tensor, table: &Tensor) -> Tensor {
        let attended = {
            let normed = cx.layer_norm("norm1", input);
            cx.module("attn", |cx| self.attention(cx, &normed, table))
        };
        let x = input.add(&attended);
        let mlp_output = {
            let normed = cx.layer_norm("norm2", &x);
            cx.module("mlp", |cx| self.mlp(cx, &normed))
        };
        let out = x.add(&mlp_output);
        drop((attended, mlp_output));
        out
    }

    /// `SwiGLU` with a norm before its last layer.
    fn mlp(self, cx: &Cx, x: &Tensor) -> Tensor {
        let gate = cx.linear("fc1_g", x, self.ffn, true);
        let mut x = cx.linear("fc1_x", x, self.ffn, true);
        x = gate.silu().pipe(|open| open.mul(&x));
        x = cx.layer_norm("norm", &x);
        x = cx.linear("fc2", &x, self.hidden, true);
        drop(gate);
        x
    }

    fn attention(self, cx: &Cx, x: &Tensor, table: &Tensor) -> Tensor {
        let (b, n, h) = (x.size(0), x.size(1), self.heads);
        let d = self.hidden / h;
        let [q, k, v] =
            [("q_proj", true), ("k_proj", false), ("v_proj", true)].map(|(name, bias)| {
                cx.linear(name, x, h * d, bias)
                    .reshape(&[b, n, h, d])
                    .transpose(1, 2)
            });
        let turn = |x: Tensor| {
            let joined = {
                let (token, rest) = (x.narrow(2, 1), x.narrow(2, n.saturating_sub(1)));
                let turned = turned(&rest, table);
                Tensor::cat(&token, &[&turned], 2)
            };
            drop(x);
            joined.to(v.dtype())
        };
        let (q, k) = (turn(q), turn(k));
        let mut out = q.attention(&k, &v, &AttentionMask::None, 0.0);
        out = out.transpose(1, 2).reshape(&[b, n, self.hidden]);
        cx.linear("proj", &out, self.hidden, true)
    }
}

/// `apply_rot_embed_cat`: neighbouring elements by each other.
fn turned(x: &Tensor, table: &Tensor) -> Tensor {
    let width = x.size(-1);
    let [sines, cosines] = [0; 2].map(|_| table.narrow(-1, width));
    let straight = x.mul(&cosines);
    let crossed = {
        let parts = {
            let negative = x.every_other().neg();
            let firsts = x.every_other().unsqueeze(-1);
            [negative.unsqueeze(-1), firsts]
        };
        let joined = Tensor::cat(&parts[0], &[&parts[1]], -1);
        drop(parts);
        joined.reshape(x.shape()).pipe(|joined| joined.mul(&sines))
    };
    let sum = straight.add(&crossed);
    drop((straight, crossed));
    sum.to(x.dtype())
}
