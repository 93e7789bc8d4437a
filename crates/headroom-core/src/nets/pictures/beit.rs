//! BEiT of transformers: each layer has relative positions of its own (transformers/models/beit/modeling_beit.py).

use crate::nets::attention::{Eager, attend, heads};
use crate::nets::drop_path::drop_path;
use crate::nets::vit::{images_and_labels, patches};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Beit {
    layers: u64,
    layer: Layer,
    image: u64,
    patch: u64,
    classes: u64,
    /// `use_absolute_position_embeddings`.
    positions: bool,
    /// `use_mask_token`, which only its pre-training reads.
    mask_token: bool,
}

#[derive(Clone, Copy, Debug)]
struct Layer {
    hidden: u64,
    heads: u64,
    ffn: u64,
    /// Patches along a side.
    side: u64,
    /// `use_relative_position_bias`.
    relative: bool,
    /// `drop_path_rate` is more than zero.
    drops: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    let (image, patch) = (sizes.or("img", 224), sizes.or("patch", 16).max(1));
    Ok(Box::new(Beit {
        layers: sizes.need("layers")?,
        layer: Layer {
            hidden,
            heads: sizes.need("heads")?.max(1),
            ffn: sizes.or("ffn", 4 * hidden),
            side: image / patch,
            relative: sizes.or("relative", 1) != 0,
            drops: sizes.or("paths", 1) != 0,
        },
        image,
        patch,
        classes: sizes.or("classes", 1000),
        positions: sizes.is_set("absolute"),
        mask_token: sizes.is_set("mask_token"),
    }))
}

impl Net for Beit {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        images_and_labels(cx, data, self.image)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, labels] = batch else {
            return Output::empty(cx);
        };
        let (pooled, last) = cx.module("beit", |cx| {
            let embedded = cx.module("embeddings", |cx| self.embeddings(cx, image));
            let layer = self.layer;
            let run = move |cx: &Cx, x: &Tensor, i: usize| layer.run(cx, x, i > 0);
            let last = if layer.drops {
                cx.stack("layers", self.layers, embedded.clone(), run)
            } else {
                let run = move |cx: &Cx, x: &Tensor| layer.run(cx, x, false);
                cx.equal_stack("layers", self.layers, embedded.clone(), run)
            };
            let rest = last.narrow(1, last.size(1).saturating_sub(1));
            let mean = rest.mean(&[1]).squeeze(1);
            let pooled = cx.module("pooler", |cx| cx.layer_norm("layernorm", &mean));
            (pooled, last)
        });
        let logits = cx.linear("classifier", &pooled, self.classes, true);
        let loss = cx.module("loss", |_| logits.cross_entropy(labels));
        drop(last);
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl Beit {
    fn embeddings(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let (hidden, side) = (self.layer.hidden, self.layer.side);
        let token = cx.param("cls_token", [1, 1, hidden]);
        if self.mask_token {
            cx.param("mask_token", [1, 1, hidden]);
        }
        let places = side.saturating_mul(side).saturating_add(1);
        let positions = self
            .positions
            .then(|| cx.param("position_embeddings", [1, places, hidden]));
        let grid = cx.module("patch_embeddings", |cx| {
            patches(cx, "projection", image, hidden, self.patch)
        });
        let token = token.tensor().expand(&[image.size(0), 1, hidden]);
        let embedded = Tensor::cat(&token, &[&grid], 1);
        match positions {
            Some(positions) => embedded.add(&positions.tensor()),
            None => embedded,
        }
    }
}

impl Layer {
    /// `BeitLayer.forward`.
    fn run(self, cx: &Cx, input: &Tensor, drops: bool) -> Tensor {
        let drops = drops && cx.rate(0.1) > 0.0;
        let [first, second] =
            ["lambda_1", "lambda_2"].map(|name| cx.param(name, [self.hidden]).tensor());
        let bias = self
            .relative
            .then(|| cx.module("relative_position_bias", |cx| self.position_bias(cx)));
        let mask = match &bias {
            Some((_, bias)) => AttentionMask::Given(bias.clone()),
            None => AttentionMask::None,
        };
        let mut hidden = cx.layer_norm("layernorm_before", input);
        let (attended, weights) = cx.module("attention", |cx| self.attention(cx, &hidden, &mask));
        hidden = attended;
        drop(weights);
        hidden = first.mul(&hidden);
        hidden = drop_path(&hidden, drops).pipe(|kept| kept.add(input));
        let residual = hidden.clone();
        hidden = cx.layer_norm("layernorm_after", &hidden);
        hidden = cx.module("mlp", |cx| {
            let inner = cx.linear("fc1", &hidden, self.ffn, true).pipe(Tensor::gelu);
            cx.linear("fc2", &inner, self.hidden, true)
        });
        hidden = second.mul(&hidden);
        let out = drop_path(&hidden, drops).pipe(|kept| kept.add(&residual));
        drop((bias, mask));
        out
    }

    fn attention(self, cx: &Cx, x: &Tensor, mask: &AttentionMask) -> (Tensor, Option<Tensor>) {
        let [q, k, v] = [("q_proj", true), ("k_proj", false), ("v_proj", true)]
            .map(|(name, bias)| heads(&cx.linear(name, x, self.hidden, bias), self.heads));
        let eager = Eager { in_fp32: true };
        let (mut out, weights) = attend(cx, [&q, &k, &v], mask, 0.0, eager);
        out = out.reshape(x.shape());
        (cx.linear("o_proj", &out, self.hidden, true), weights)
    }

    /// `BeitRelativePositionBias.forward`: the table is interpolated to the picture's size even where it has it, and read by an
    /// index on the host. What its variables keep is gone when it returns.
    fn position_bias(self, cx: &Cx) -> (Tensor, Tensor) {
        let reach = (2 * self.side).saturating_sub(1);
        let distances = reach.saturating_mul(reach);
        let tokens = self.side.saturating_mul(self.side).saturating_add(1);
        let table = cx
            .param("relative_position_bias_table", [distances + 3, self.heads])
            .tensor();
        let grid = table
            .narrow(0, distances)
            .reshape(&[1, reach, reach, self.heads])
            .permute(&[0, 3, 1, 2]);
        let resized = grid.interpolate(reach, reach);
        let rows = resized
            .permute(&[0, 2, 3, 1])
            .reshape(&[distances, self.heads]);
        let joined = Tensor::cat(&rows, &[&table.narrow(0, 3)], 0);
        let read = joined.rows_from_host(&[tokens.saturating_mul(tokens)]);
        let bias = read
            .view(&[tokens, tokens, self.heads])
            .permute(&[2, 0, 1])
            .contiguous();
        (joined, bias.unsqueeze(0))
    }
}
