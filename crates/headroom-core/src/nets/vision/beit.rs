//! BEiT of timm (models/beit.py).

use super::{ImageModel, classifier};
use crate::nets::vit::patches;
use crate::nets::{Cx, ModelError, Net, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
struct Beit {
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    patch: u64,
}

pub(crate) fn from_sizes(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    let net = Beit {
        layers: sizes.need("layers")?,
        hidden,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.or("ffn", hidden.saturating_mul(4)),
        patch: sizes.or("patch", 16).max(1),
    };
    Ok(classifier(sizes, net))
}

impl ImageModel for Beit {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let token = cx.param("cls_token", [1, 1, self.hidden]);
        let mut x = cx.module("patch_embed", |cx| {
            patches(cx, "proj", image, self.hidden, self.patch)
        });
        let tokens = token.tensor().expand(&[image.size(0), 1, self.hidden]);
        x = Tensor::cat(&tokens, &[&x], 1);
        let grid = [2, 3].map(|dim| image.size(dim) / self.patch);
        let this = *self;
        let outer = cx.checkpointing_in_any_mode();
        x = outer.equal_stack("blocks", self.layers, x, move |cx, x| {
            this.block(cx, x, grid)
        });
        let mean = {
            let rest = x.narrow(1, x.size(1).saturating_sub(1));
            drop(x);
            rest.mean(&[1]).squeeze(1)
        };
        let normed = cx.layer_norm("fc_norm", &mean);
        cx.linear("head", &normed, classes, true)
    }
}

impl Beit {
    fn block(self, cx: &Cx, input: &Tensor, grid: [u64; 2]) -> Tensor {
        let gammas = ["gamma_1", "gamma_2"].map(|name| cx.param(name, [self.hidden]).tensor());
        let attended = {
            let normed = cx.layer_norm("norm1", input);
            let out = cx.module("attn", |cx| self.attention(cx, &normed, grid));
            drop(normed);
            gammas[0].mul(&out)
        };
        let x = input.add(&attended);
        drop(attended);
        let mlp_output = {
            let normed = cx.layer_norm("norm2", &x);
            let out = cx.module("mlp", |cx| {
                let inner = cx.linear("fc1", &normed, self.ffn, true).pipe(Tensor::gelu);
                cx.linear("fc2", &inner, self.hidden, true)
            });
            drop(normed);
            gammas[1].mul(&out)
        };
        x.add(&mlp_output)
    }

    fn attention(self, cx: &Cx, x: &Tensor, grid: [u64; 2]) -> Tensor {
        let (b, n, h) = (x.size(0), x.size(1), self.heads);
        let d = self.hidden / h;
        let [for_queries, for_values] =
            ["q_bias", "v_bias"].map(|name| cx.param(name, [h * d]).tensor());
        let [rows, columns] = grid.map(|side| side.saturating_mul(2).saturating_sub(1));
        let table = cx.param(
            "relative_position_bias_table",
            [rows.saturating_mul(columns).saturating_add(3), h],
        );
        let weight = cx.module("qkv", |cx| cx.param("weight", [3 * h * d, self.hidden]));
        // The bias of keys is zero and not trained.
        let for_keys = cx.buffer("k_bias", [h * d], cx.env.weights);
        let bias = Tensor::cat(&for_queries, &[&for_keys, &for_values], 0);
        let qkv = x
            .linear(&weight.tensor(), Some(&bias))
            .reshape(&[b, n, 3, h, d])
            .permute(&[2, 0, 3, 1, 4]);
        let parts = qkv.unbind();
        let [q, k, v] = &parts[..] else {
            return x.clone();
        };
        let places = cx.buffer("relative_position_index", [n, n], DType::I64);
        let relative = {
            let found = table.tensor().rows_at(&places.view(&[n.saturating_mul(n)]));
            let by_place = found.view(&[n, n, h]).permute(&[2, 0, 1]);
            drop(found);
            by_place.contiguous().unsqueeze(0)
        };
        let mut out = q.attention(k, v, &AttentionMask::Given(relative.clone()), 0.0);
        out = out.transpose(1, 2).reshape(&[b, n, self.hidden]);
        out = cx.linear("proj", &out, self.hidden, true);
        drop((bias, relative));
        out
    }
}
