//! LayoutLMv3: tokens with their boxes and patches of the page in one row, which attend to each other by content and by place
//! (transformers/models/layoutlmv3/modeling_layoutlmv3.py). Its own class labels tokens.

use super::attention::heads;
use super::encoder::{self, Config, add_and_norm, feed_forward};
use super::inputs::token_ids_and_labels;
use super::vit::patches;
use super::{Cx, ModelError, Net, Output, Sizes, TextEncoder};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct LayoutLmV3 {
    config: Config,
    types: u64,
    /// `max_2d_position_embeddings`, `coordinate_size` and `shape_size`.
    places: u64,
    coordinate: u64,
    shape: u64,
    image: u64,
    patch: u64,
    classes: u64,
}

/// `rel_pos_bins` and `rel_2d_pos_bins`.
const BINS: [u64; 2] = [32, 64];

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(LayoutLmV3 {
        config: Config::new(sizes)?,
        types: sizes.or("types", 2),
        places: sizes.or("places", 1024),
        coordinate: sizes.or("coordinate", 128),
        shape: sizes.or("shape", 128),
        image: sizes.or("img", 224),
        patch: sizes.or("patch", 16).max(1),
        classes: sizes.or("classes", 2),
    }))
}

/// The arguments of every layer besides its hidden states: what is added to scores `[B, H, T, T]`.
#[derive(Clone)]
struct Places {
    by_order: Tensor,
    by_box: Tensor,
    mask: Option<Tensor>,
}

impl Net for LayoutLmV3 {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        token_ids_and_labels(cx, data)
    }

    fn text_encoder(&self) -> Option<&dyn TextEncoder> {
        Some(self)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let sequence = self.encode(cx, ids, batch.get(2));
        encoder::output(cx, self.token_logits(cx, &sequence, self.classes), labels)
    }
}

impl TextEncoder for LayoutLmV3 {
    fn encode(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let hidden = cx.module("layoutlmv3", |cx| self.model(cx, ids, padding));
        hidden.narrow(1, ids.size(1))
    }

    fn sequence_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        encoder::classification_head(cx, hidden, classes)
    }

    /// A head of two layers from ten labels on.
    fn token_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        let dropped = cx.dropout(hidden, 0.1);
        if classes < 10 {
            return cx.linear("classifier", &dropped, classes, true);
        }
        cx.module("classifier", |cx| {
            let mut x = cx.dropout(&dropped, 0.1);
            x = cx.linear("dense", &x, self.config.hidden, true).tanh();
            x = cx.dropout(&x, 0.1);
            cx.linear("out_proj", &x, classes, true)
        })
    }
}

impl LayoutLmV3 {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let hidden = self.config.hidden;
        let (b, s, side) = (ids.size(0), ids.size(1), self.image / self.patch);
        let boxes = cx.tape.empty("bbox", [b, s, 4], DType::I64);
        let pixels = [b, 3, self.image, self.image];
        let pixels = cx.tape.empty("pixel_values", pixels, cx.env.weights);
        let token = cx.param("cls_token", [1, 1, hidden]);
        let count = side.saturating_mul(side).saturating_add(1);
        let positions = cx.param("pos_embed", [1, count, hidden]);
        let tokens = cx.module("embeddings", |cx| self.embeddings(cx, ids, &boxes));
        let visual = {
            let grid = cx.module("patch_embed", |cx| {
                patches(cx, "proj", &pixels, hidden, self.patch)
            });
            let token = token.tensor().expand(&[b, 1, hidden]);
            let joined = Tensor::cat(&token, &[&grid], 1).pipe(|x| x.add(&positions.tensor()));
            cx.layer_norm("norm", &joined)
        };
        let whole = s.saturating_add(count);
        let index = |op, shape: &[u64]| ids.constant(op, shape, DType::I64);
        cx.buffer("visual_bbox", [count, 4], DType::I64);
        let held = [
            index("repeat", &[b, count, 4]),
            index("cat", &[b, whole, 4]),
            index("repeat", &[b, count]),
            index("cat", &[b, whole]),
        ];
        let joined = Tensor::cat(&tokens, &[&visual], 1);
        let mut embedded = cx.layer_norm("LayerNorm", &joined);
        embedded = cx.dropout(&embedded, 0.1);
        let mask = padding.map(|_| ids.constant("where", &[b, 1, whole, whole], embedded.dtype()));
        let last = cx.module("encoder", |cx| {
            let places = Places {
                by_order: self.places_by_order(cx, b, whole),
                by_box: self.places_by_box(cx, b, whole),
                mask,
            };
            let this = *self;
            let first = embedded.clone();
            cx.equal_stack("layer", self.config.layers, first, move |cx, x| {
                this.layer(cx, x, &places)
            })
        });
        drop((held, boxes, pixels, visual, embedded));
        last
    }

    /// `LayoutLMv3TextEmbeddings.forward`: all of the summands live to its end.
    fn embeddings(&self, cx: &Cx, ids: &Tensor, boxes: &Tensor) -> Tensor {
        let Config {
            hidden,
            vocab,
            positions,
            ..
        } = self.config;
        cx.buffer("position_ids", [1, positions], DType::I64);
        let places = ids.constant("add", ids.shape(), DType::I64);
        let types = ids.constant("zeros", ids.shape(), DType::I64);
        let words = cx.input_embedding("word_embeddings", ids, vocab, hidden);
        let kinds = cx.embedding("token_type_embeddings", &types, self.types, hidden);
        let mut embeddings = words.add(&kinds);
        let by_order = cx.embedding("position_embeddings", &places, positions, hidden);
        embeddings = embeddings.add_(&by_order);
        let corner = |name| {
            let side = boxes.narrow(-1, 1).squeeze(-1);
            cx.embedding(name, &side, self.places, self.coordinate)
        };
        let corners = [
            "x_position_embeddings",
            "y_position_embeddings",
            "x_position_embeddings",
            "y_position_embeddings",
        ]
        .map(corner);
        let lengths = ["h_position_embeddings", "w_position_embeddings"].map(|name| {
            let length = ids.constant("clip", ids.shape(), DType::I64);
            cx.embedding(name, &length, self.places, self.shape)
        });
        let [first, rest @ ..] = &corners;
        let rest: Vec<&Tensor> = rest.iter().chain(&lengths).collect();
        let by_box = Tensor::cat(first, &rest, -1);
        drop((corners, lengths));
        let embedded = embeddings.add(&by_box);
        let normed = cx.layer_norm("LayerNorm", &embedded);
        let out = cx.dropout(&normed, 0.1);
        drop((words, kinds, by_order, by_box, embeddings));
        out
    }

    /// Rows of a table of buckets for each pair, which are looked up without a gradient.
    fn looked_up(&self, cx: &Cx, name: &'static str, bins: u64, [b, whole]: [u64; 2]) -> Tensor {
        let h = self.config.heads;
        let weight = cx.module(name, |cx| cx.param("weight", [h, bins]).tensor());
        let index = |op, dtype| weight.constant(op, &[b, whole, whole], dtype);
        let differences = index("sub", DType::I64);
        let buckets = {
            let parts = [
                index("mul", DType::I64),
                index("abs", DType::I64),
                index("to", DType::I64),
                index("where", DType::I64),
            ];
            let buckets = index("add", DType::I64);
            drop(parts);
            buckets
        };
        let read = weight.constant("index", &[b, whole, whole, h], weight.dtype());
        let out = weight.constant("contiguous", &[b, h, whole, whole], weight.dtype());
        drop((differences, buckets, read));
        out
    }

    fn places_by_order(&self, cx: &Cx, b: u64, whole: u64) -> Tensor {
        self.looked_up(cx, "rel_pos_bias", BINS[0], [b, whole])
    }

    fn places_by_box(&self, cx: &Cx, b: u64, whole: u64) -> Tensor {
        let [x, y] = ["rel_pos_x_bias", "rel_pos_y_bias"]
            .map(|name| self.looked_up(cx, name, BINS[1], [b, whole]));
        let sum = x.constant("add", x.shape(), x.dtype());
        drop((x, y));
        sum
    }

    /// `LayoutLMv3Layer.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor, places: &Places) -> Tensor {
        let attended = cx.module("attention", |cx| {
            let (out, shares) = cx.module("self", |cx| self.attention(cx, input, places));
            let normed = cx.module("output", |cx| add_and_norm(cx, &out, input));
            drop(shares);
            normed
        });
        feed_forward(cx, &attended, self.config.ffn)
    }

    /// `LayoutLMv3SelfAttention.forward`, which is eager whatever the run requests: `cogview_attention` takes the largest score off.
    fn attention(&self, cx: &Cx, x: &Tensor, places: &Places) -> (Tensor, Tensor) {
        let Config {
            hidden, heads: h, ..
        } = self.config;
        let [q, k, v] =
            ["query", "key", "value"].map(|name| heads(&cx.linear(name, x, hidden, true), h));
        let mut scores = q.mul_scalar().pipe(|q| q.matmul(&k.transpose(-1, -2)));
        scores = {
            let sum = places.by_order.add(&places.by_box);
            sum.mul_scalar().pipe(|scaled| scores.add_(scaled))
        };
        if let Some(mask) = &places.mask {
            scores = scores.add(mask);
        }
        let shares = {
            let scaled = scores.mul_scalar();
            let largest = scaled.max_values().unsqueeze(-1);
            let shifted = scaled.sub(&largest).pipe(Tensor::mul_scalar);
            shifted.softmax(None)
        };
        let dropped = cx.dropout(&shares, 0.1);
        let mut out = dropped.matmul(&v);
        out = out.permute(&[0, 2, 1, 3]).contiguous();
        let out = out.view(x.shape());
        drop((q, k, v, scores));
        (out, dropped)
    }
}
