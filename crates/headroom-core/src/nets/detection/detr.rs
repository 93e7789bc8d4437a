//! DETR: features of a ResNet through a transformer, whose decoder has a query for each box
//! (transformers/models/detr/modeling_detr.py). Pictures have one size, so that no mask is made.

use super::backbone::resnet_50;
use super::loss::set_loss;
use super::{Pictures, prediction_head};
use crate::nets::attention::{Eager, attend, heads};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Detr {
    layers: u64,
    decoder_layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    queries: u64,
    classes: u64,
    pictures: Pictures,
}

/// What is added to queries and keys: places of features `[B, T, H]`, embeddings of queries `[B, Q, H]`.
#[derive(Clone)]
struct Places {
    features: Tensor,
    queries: Tensor,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let (layers, hidden) = (sizes.need("layers")?, sizes.need("hidden")?);
    Ok(Box::new(Detr {
        layers,
        decoder_layers: sizes.or("decoder_layers", layers),
        hidden,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.or("ffn", 2048),
        queries: sizes.or("queries", 100),
        classes: sizes.or("classes", 91),
        pictures: Pictures::of(sizes, 800),
    }))
}

impl Net for Detr {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        self.pictures.batch(cx, data.micro_batch)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, _classes, boxes] = batch else {
            return Output::empty(cx);
        };
        let [last, encoded] = cx.module("model", |cx| self.model(cx, image));
        let name = "class_labels_classifier";
        let logits = cx.linear(name, &last, self.classes + 1, true);
        let found = prediction_head(cx, "bbox_predictor", &last, 4).sigmoid();
        let mut output = set_loss(cx, &logits, &found, boxes);
        output.held.extend([last, encoded]);
        output
    }
}

impl Detr {
    /// The last states of the decoder and those of the encoder.
    fn model(&self, cx: &Cx, image: &Tensor) -> [Tensor; 2] {
        let (n, hidden) = (image.size(0), self.hidden);
        let pixels = [n, image.size(2), image.size(3)];
        let mask = image.constant("ones", &pixels, DType::F32);
        let features = cx.module("backbone", |cx| {
            cx.module("model", |cx| resnet_50(cx, image))
        });
        let last = features.last().unwrap_or(image);
        let (down, across) = (last.size(2), last.size(3));
        let count = down * across;
        let masks: Vec<Tensor> = features
            .iter()
            .map(|map| image.constant("to", &[n, map.size(2), map.size(3)], DType::Bool))
            .collect();
        let queries = cx.module("query_position_embeddings", |cx| {
            cx.param("weight", [self.queries, hidden]).tensor()
        });
        let projected = cx.conv2d("input_projection", last, hidden, 1, Conv::stride(1), true);
        let flat = projected.reshape(&[n, hidden, count]).transpose(1, 2);
        let places = sine_positions(image, [n, down, across, hidden]);
        let places = Places {
            features: places.view(&[n, count, hidden]),
            queries: queries.unsqueeze(0).tiled(n),
        };
        let (this, own) = (*self, places.clone());
        let encoded = cx.module("encoder", |cx| {
            let first = cx.dropout(&flat, 0.1);
            cx.equal_stack("layers", self.layers, first, move |cx, x| {
                this.encoder_layer(cx, x, &own)
            })
        });
        let (own, read) = (places.clone(), encoded.clone());
        let decoded = cx.module("decoder", |cx| {
            let first = queries.constant("zeros_like", places.queries.shape(), queries.dtype());
            let last = cx.equal_stack("layers", self.decoder_layers, first, move |cx, x| {
                this.decoder_layer(cx, x, &read, &own)
            });
            cx.layer_norm("layernorm", &last)
        });
        drop((features, masks, mask, projected, places));
        [decoded, encoded]
    }

    /// A sublayer's result with its dropout, its residual and its norm.
    fn finished(cx: &Cx, norm: &'static str, x: &Tensor, residual: &Tensor) -> Tensor {
        let dropped = cx.dropout(x, 0.1);
        let sum = residual.add(&dropped);
        cx.layer_norm(norm, &sum)
    }

    fn mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let out = cx.module("mlp", |cx| {
            let inner = cx.linear("fc1", x, self.ffn, true).pipe(Tensor::relu);
            cx.linear("fc2", &inner, self.hidden, true)
        });
        Self::finished(cx, "final_layer_norm", &out, x)
    }

    /// `DetrEncoderLayer.forward`, which asks whether all states are finite.
    fn encoder_layer(&self, cx: &Cx, input: &Tensor, places: &Places) -> Tensor {
        let attended = cx.module("self_attn", |cx| {
            self.attention(cx, [input, input], [Some(&places.features); 2])
        });
        let hidden = Self::finished(cx, "self_attn_layer_norm", &attended, input);
        let out = self.mlp(cx, &hidden);
        let size = out.constant("abs", out.shape(), out.dtype());
        let finite = out.constant("ne", out.shape(), DType::Bool);
        drop((size, finite));
        out
    }

    /// `DetrDecoderLayer.forward`.
    fn decoder_layer(&self, cx: &Cx, input: &Tensor, encoded: &Tensor, places: &Places) -> Tensor {
        let queries = Some(&places.queries);
        let attended = cx.module("self_attn", |cx| {
            self.attention(cx, [input, input], [queries; 2])
        });
        let mut hidden = Self::finished(cx, "self_attn_layer_norm", &attended, input);
        let attended = cx.module("encoder_attn", |cx| {
            let both = [queries, Some(&places.features)];
            self.attention(cx, [&hidden, encoded], both)
        });
        hidden = Self::finished(cx, "encoder_attn_layer_norm", &attended, &hidden);
        self.mlp(cx, &hidden)
    }

    /// `DetrSelfAttention.forward`, `DetrCrossAttention.forward`: places are added to what queries and keys are made of.
    fn attention(
        &self,
        cx: &Cx,
        [x, read]: [&Tensor; 2],
        [own, other]: [Option<&Tensor>; 2],
    ) -> Tensor {
        let placed = |x: &Tensor, places: Option<&Tensor>| match places {
            Some(places) => x.add(places),
            None => x.clone(),
        };
        let query = placed(x, own);
        // Self-attention adds places once.
        let key = match (own, other) {
            (Some(own), Some(other)) if std::ptr::eq(own, other) => query.clone(),
            _ => placed(read, other),
        };
        let project = |name, x: &Tensor| heads(&cx.linear(name, x, self.hidden, true), self.heads);
        let (q, k, v) = (
            project("q_proj", &query),
            project("k_proj", &key),
            project("v_proj", read),
        );
        let none = AttentionMask::None;
        let (mut out, weights) = attend(cx, [&q, &k, &v], &none, 0.0, Eager::default());
        out = out.reshape(x.shape());
        out = cx.linear("o_proj", &out, self.hidden, true);
        drop((query, key, weights));
        out
    }
}

/// `build_sine_position_embedding` `[B, h, w, H]`.
fn sine_positions(image: &Tensor, [n, down, across, hidden]: [u64; 4]) -> Tensor {
    let make = |op, shape: &[u64]| image.constant(op, shape, DType::F32);
    let grid = [n, down, across];
    let sums = (make("cumsum", &grid), make("cumsum", &grid));
    let half = [n, down, across, hidden / 2];
    let angles = (make("div", &half), make("div", &half));
    let parts = (make("flatten", &half), make("flatten", &half));
    let out = make("cat", &[n, down, across, hidden]);
    drop((sums, angles, parts));
    out
}
