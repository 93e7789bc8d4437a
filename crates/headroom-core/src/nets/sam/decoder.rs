//! `SamMaskDecoder`: tokens and image attend to each other, and each mask token becomes a filter over the image.

use super::vision::layer_norm_2d;
use crate::nets::attention::{Eager, attend, heads};
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::{AttentionMask, Conv};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoder {
    layers: u64,
    pub hidden: u64,
    heads: u64,
    ffn: u64,
    /// How much narrower attention between tokens and image is (`attention_downsample_rate`).
    downsample: u64,
    masks: u64,
    score_layers: u64,
    score_hidden: u64,
    /// SAM 2: a token that says whether there is an object, and finer maps of the image.
    second: bool,
}

/// A mask, and scores of it.
pub(crate) struct Decoded {
    pub mask: Tensor,
    pub scores: Vec<Tensor>,
}

/// Position embeddings of the tokens and of the image.
type Positions<'a> = [&'a Tensor; 2];

impl Decoder {
    pub(crate) fn new(sizes: &Sizes, second: bool) -> Result<Self, ModelError> {
        Ok(Self {
            layers: sizes.or("d_layers", 2),
            hidden: sizes.need("d_hidden")?.max(8),
            heads: sizes.or("d_heads", 8).max(1),
            ffn: sizes.or("d_ffn", 2048),
            downsample: sizes.or("d_downsample", 2).max(1),
            masks: sizes.or("masks", 3),
            score_layers: sizes.or("iou_layers", 3),
            score_hidden: sizes.or("iou_hidden", 256),
            second,
        })
    }

    /// One mask `[B, 1, 1, 4 side, 4 side]`, and its score; of the image, its features and where they are, and finer maps (SAM 2).
    pub(crate) fn decode(
        &self,
        cx: &Cx,
        [features, positions]: [&Tensor; 2],
        sparse: &Tensor,
        dense: &Tensor,
        finer: Option<[&Tensor; 2]>,
    ) -> Decoded {
        let width = self.hidden;
        let (b, h, w) = (features.size(0), features.size(2), features.size(3));
        let count = self.masks + 1;
        let [score, masks] = [("iou_token", 1), ("mask_tokens", count)]
            .map(|(name, rows)| cx.module(name, |cx| cx.param("weight", [rows, width]).tensor()));
        let mut output_tokens = if self.second {
            let object = cx.module("obj_score_token", |cx| {
                cx.param("weight", [1, width]).tensor()
            });
            Tensor::cat(&object, &[&score, &masks], 0)
        } else {
            Tensor::cat(&score, &[&masks], 0)
        };
        let rows = output_tokens.size(0);
        output_tokens = output_tokens.view(&[1, 1, rows, width]).tiled(b);
        let tokens = Tensor::cat(&output_tokens, &[sparse], 2);
        let mut image = features.add(dense);
        image = image
            .unsqueeze(1)
            .pipe(|image| image.repeated(&[b, 1, width, h, w]))
            .view(&[b, width, h, w]);
        let once = |x: &Tensor| {
            let shape = [b, x.size(1), x.size(2), x.size(3)];
            let wide = [b, 1, shape[1], shape[2], shape[3]];
            x.unsqueeze(1).pipe(|x| x.repeated(&wide)).view(&shape)
        };
        let positions = positions.unsqueeze(1).cloned().view(&[b, width, h, w]);
        let [tokens, rows] = cx.module("transformer", |cx| {
            self.transformer(cx, &tokens, [&image, &positions])
        });
        let score = tokens.select(2);
        let masks = tokens.narrow(2, count);
        image = rows.transpose(2, 3).reshape(&[b, width, h, w]);
        let twice = Conv {
            transposed: Some(0),
            ..Conv::stride(2)
        };
        let mut upscaled = cx.conv2d("upscale_conv1", &image, width / 4, 2, twice, true);
        let start = cx.tape.construction_point();
        let finer = finer.map(|maps| maps.map(once));
        if let Some([_, half]) = &finer {
            upscaled = upscaled.add(half);
        }
        upscaled = layer_norm_2d(cx, "upscale_layer_norm", &upscaled).pipe(Tensor::gelu);
        let normed = cx.tape.construction_point();
        upscaled = cx.conv2d("upscale_conv2", &upscaled, width / 8, 2, twice, true);
        if let Some([whole, _]) = &finer {
            upscaled = upscaled.add(whole);
        }
        upscaled = upscaled.gelu();
        cx.tape.construct_here(start, normed);
        let filters: Vec<Tensor> = (0..count as usize)
            .map(|i| {
                cx.list_item("output_hypernetworks_mlps", i, |cx| {
                    feed_forward(cx, &masks.select(2), 3, [width, width / 8])
                })
            })
            .collect();
        let Some(stacked) = Tensor::stack(&filters, 2) else {
            return Decoded {
                mask: upscaled,
                scores: vec![score],
            };
        };
        let (high, wide) = (upscaled.size(2), upscaled.size(3));
        upscaled = upscaled.reshape(&[b, 1, width / 8, high * wide]);
        let all = stacked
            .matmul(&upscaled)
            .reshape(&[b, 1, count, high, wide]);
        let scores = cx.module("iou_prediction_head", |cx| {
            feed_forward(cx, &score, self.score_layers, [self.score_hidden, count])
        });
        let mut all_scores = vec![scores.narrow(2, 1)];
        if self.second {
            all_scores = vec![scores.sigmoid().narrow(2, 1)];
            all_scores.push(cx.module("pred_obj_score_head", |cx| {
                feed_forward(cx, &tokens.select(2), 3, [width, 1])
            }));
        }
        Decoded {
            mask: all.narrow(2, 1),
            scores: all_scores,
        }
    }

    /// `SamTwoWayTransformer.forward`: the tokens, and the image as rows.
    fn transformer(
        &self,
        cx: &Cx,
        tokens: &Tensor,
        [image, positions]: [&Tensor; 2],
    ) -> [Tensor; 2] {
        let rows = |grid: &Tensor| {
            let (b, c) = (grid.size(0), grid.size(1));
            let flat = grid.reshape(&[b, c, grid.size(2) * grid.size(3)]);
            flat.transpose(1, 2).unsqueeze(1)
        };
        let (image, positions) = (rows(image), rows(positions));
        let mut queries = tokens.clone();
        let mut keys = image.clone();
        // The loop's `_` holds the last layer's attention output.
        let mut attention_output = None;
        for i in 0..self.layers as usize {
            let last;
            [queries, keys, last] = cx.list_item("layers", i, |cx| {
                self.layer(cx, [&queries, &keys], [tokens, &positions], i == 0)
            });
            attention_output = Some(last);
        }
        let query = queries.add(tokens);
        let key = keys.add(&positions);
        let attended = cx.module("final_attn_token_to_image", |cx| {
            self.attention(cx, [&query, &key, &keys], self.downsample)
        });
        drop(attention_output);
        queries = queries.add(&attended);
        queries = cx.layer_norm("layer_norm_final_attn", &queries);
        [queries, keys]
    }

    /// `SamTwoWayAttentionBlock.forward`: queries, keys and the last attention's output.
    fn layer(
        &self,
        cx: &Cx,
        [queries, keys]: [&Tensor; 2],
        [tokens, positions]: Positions,
        first: bool,
    ) -> [Tensor; 3] {
        let attend = |cx: &Cx, name: &'static str, all: [&Tensor; 3], narrower: u64| {
            cx.module(name, |cx| self.attention(cx, all, narrower))
        };
        let (mut queries, mut keys) = (queries.clone(), keys.clone());
        let mut before = None;
        if first {
            queries = attend(cx, "self_attn", [&queries, &queries, &queries], 1);
        } else {
            let query = queries.add(tokens);
            let attended = attend(cx, "self_attn", [&query, &query, &queries], 1);
            queries = queries.add(&attended);
            before = Some((query, attended));
        }
        queries = cx.layer_norm("layer_norm1", &queries);
        let mut query = queries.add(tokens);
        // The names of self-attention hold its tensors until cross-attention takes them.
        let before = before.map(|(_, attended)| attended);
        let mut key = keys.add(positions);
        let mut attended = attend(
            cx,
            "cross_attn_token_to_image",
            [&query, &key, &keys],
            self.downsample,
        );
        drop(before);
        queries = queries.add(&attended);
        queries = cx.layer_norm("layer_norm2", &queries);
        let mlp_output = cx.module("mlp", |cx| {
            if self.second {
                return feed_forward(cx, &queries, 2, [self.ffn, self.hidden]);
            }
            let mut x = cx.linear("lin1", &queries, self.ffn, true);
            x = x.relu();
            cx.linear("lin2", &x, self.hidden, true)
        });
        queries = queries.add(&mlp_output);
        queries = cx.layer_norm("layer_norm3", &queries);
        query = queries.add(tokens);
        key = keys.add(positions);
        let start = cx.tape.construction_point();
        attended = attend(
            cx,
            "cross_attn_image_to_token",
            [&key, &query, &queries],
            self.downsample,
        );
        let crossed = cx.tape.construction_point();
        keys = keys.add(&attended);
        keys = cx.layer_norm("layer_norm4", &keys);
        cx.tape.construct_here(start, crossed);
        [queries, keys, attended]
    }

    /// `SamAttention`, as wide as the state or narrower.
    fn attention(&self, cx: &Cx, [query, key, value]: [&Tensor; 3], narrower: u64) -> Tensor {
        let width = self.hidden / narrower;
        let (b, n) = (query.size(0), query.size(2));
        let projected = [("q_proj", query), ("k_proj", key), ("v_proj", value)]
            .map(|(name, x)| cx.linear(name, x, width, true));
        let [q, k, v] = projected.map(|x| heads(&x.reshape(&[b, x.size(2), width]), self.heads));
        let eager = Eager { in_fp32: true };
        let (mut out, _weights) = attend(cx, [&q, &k, &v], &AttentionMask::None, 0.0, eager);
        out = out.reshape(&[b, 1, n, width]);
        let name = if self.second { "o_proj" } else { "out_proj" };
        cx.linear(name, &out, self.hidden, true)
    }
}

/// `SamFeedForward`.
fn feed_forward(cx: &Cx, x: &Tensor, layers: u64, [inside, out]: [u64; 2]) -> Tensor {
    let mut y = cx.linear("proj_in", x, inside, true);
    y = y.relu();
    let start = cx.tape.construction_point();
    for i in 0..layers.saturating_sub(2) as usize {
        y = cx.list_item("layers", i, |cx| {
            // A list's entry is the linear layer itself.
            let weight = cx.param("weight", [inside, y.size(-1)]).tensor();
            let bias = cx.param("bias", [inside]).tensor();
            y.linear(&weight, Some(&bias))
        });
        y = y.relu();
    }
    let between = cx.tape.construction_point();
    y = cx.linear("proj_out", &y, out, true);
    cx.tape.construct_here(start, between);
    y
}
