//! The language model of Gemma 3n (transformers/models/gemma3n/modeling_gemma3n.py): several streams of hidden states of which
//! each layer changes one and corrects the others (AltUp), residuals of low rank (LAuReL), an embedding for each layer, keys and
//! values that later layers share.

mod attention;
mod streams;

use super::super::kv_cache::Cache;
use super::super::{Cx, ModelError, Net, Output, Sizes, inputs};
use super::family::Rope;
use super::layer_set::period;
use super::{Decoder, families, rope};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use attention::Stored;
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Gemma3n {
    text: Decoder,
    /// `num_kv_shared_layers`: this many at the end have no keys and values of their own.
    shared_layers: u64,
    /// `hidden_size_per_layer_input`, and the rows of its table.
    layer_width: u64,
    layer_vocab: u64,
    /// `altup_num_inputs`.
    streams: u64,
    /// `laurel_rank`.
    residual_rank: u64,
    /// So many layers at the start let only the largest gates through (`activation_sparsity_pattern`).
    sparse_gates: u64,
}

/// The arguments of a layer besides its hidden states and its own embedding.
#[derive(Clone)]
#[allow(clippy::struct_excessive_bools)] // Each is a yes or no about a layer.
struct LayerInputs {
    mask: AttentionMask,
    rotary: [Tensor; 2],
    stored: Stored,
    cache: Cache,
    full: bool,
    /// It reads what an earlier layer has stored, or stores for later ones.
    reuses: bool,
    stores: bool,
    /// Only the largest gates pass.
    sparse: bool,
}

pub(super) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let text = Decoder::new(sizes, families::gemma::gemma3n(sizes))?;
    Ok(Box::new(Gemma3n {
        shared_layers: sizes.or("shared_kv", 15).min(text.layers),
        layer_width: sizes.or("layer_width", 256),
        layer_vocab: sizes.or("layer_vocab", text.vocab),
        streams: sizes.or("streams", 4).max(1),
        residual_rank: sizes.or("laurel", 64),
        sparse_gates: sizes.or("sparse_gates", 0),
        text,
    }))
}

impl Net for Gemma3n {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        inputs::token_ids_and_labels(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let cache = self.text.cache(cx);
        let hidden = cx.module("model", |cx| self.model(cx, ids, batch.get(2), &cache));
        self.text.output(cx, &hidden, labels, cache)
    }
}

impl Gemma3n {
    /// `Gemma3nTextModel.forward`.
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>, cache: &Cache) -> Tensor {
        let text = &self.text;
        let embeddings = text.embeddings(cx, ids);
        let rows = self.layer_embeddings(cx, ids);
        let per_layer = self.projected(cx, &embeddings, rows);
        let positions = inputs::positions(ids);
        let [full_mask, window_mask] = text.attention_masks(cx, ids, padding, embeddings.dtype());
        let (first, held) = self.spread(cx, &embeddings);
        let table = |buffers| {
            rope::tables(
                cx,
                &positions,
                text.head_dim,
                first.dtype(),
                Rope::Full,
                buffers,
            )
        };
        let full_table = table(["full_inv_freq", "full_original_inv_freq"]);
        let window_table = table(["sliding_inv_freq", "sliding_original_inv_freq"]);
        let stored = Stored::default();
        let first_shared = text.layers - self.shared_layers;
        let layer = |state: Vec<Tensor>, i: usize| {
            let number = i as u64;
            let full = self.is_full(number);
            let inputs = LayerInputs {
                mask: if full { &full_mask } else { &window_mask }.clone(),
                rotary: if full { &full_table } else { &window_table }.clone(),
                stored: stored.clone(),
                cache: cache.clone(),
                full,
                reuses: number >= first_shared,
                stores: self.stores(number),
                sparse: number < self.sparse_gates,
            };
            let mut state = state;
            state.truncate(1);
            state.push(per_layer.select(2));
            let this = *self;
            cx.layer("layers", i, state, move |cx, state| match state {
                [hidden, own, ..] => vec![this.layer(cx, hidden, own, &inputs)],
                _ => Vec::new(),
            })
        };
        let kinds = |i: u64| {
            let sparse = i < self.sparse_gates;
            (self.is_full(i), self.stores(i), i >= first_shared, sparse)
        };
        let period = period(text.layers, kinds);
        let state = cx.periodic_layers(text.layers, period, vec![first], layer);
        let last = state.into_iter().next();
        drop(held);
        let gathered = last.map(|last| self.gathered(cx, &last));
        let normed = gathered.map(|hidden| text.final_norm(cx, &hidden));
        drop((
            full_mask,
            window_mask,
            full_table,
            window_table,
            stored,
            per_layer,
            positions,
        ));
        normed.unwrap_or(embeddings)
    }

    fn is_full(&self, layer: u64) -> bool {
        match self.text.full_layers {
            Some(layers) => layers.contains(layer),
            None => (layer + 1).is_multiple_of(self.text.full_attention_interval.max(1)),
        }
    }

    /// The last layer of either kind before the sharing ones stores its keys and values.
    fn stores(&self, layer: u64) -> bool {
        let first = self.text.layers - self.shared_layers;
        let alike = |other: &u64| self.is_full(*other) == self.is_full(layer);
        self.shared_layers > 0 && layer < first && !(layer + 1..first).any(|i| alike(&i))
    }

    /// `get_per_layer_inputs`: rows of a table for all layers `[B, S, L, W]`; ids beyond it become zero.
    fn layer_embeddings(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let width = self.text.layers.saturating_mul(self.layer_width);
        let name = "embed_tokens_per_layer";
        let within = {
            let [least, most] = [0; 2].map(|_| ids.constant("ge", ids.shape(), DType::Bool));
            let both = ids.constant("logical_and", ids.shape(), DType::Bool);
            drop((least, most));
            both
        };
        let places = ids.constant("where", ids.shape(), DType::I64);
        let scaled = {
            let rows = cx.embedding(name, &places, self.layer_vocab, width);
            let factor = cx.module(name, |cx| cx.buffer("embed_scale", [0; 0], cx.env.weights));
            rows.mul(&factor)
        };
        drop((within, places));
        scaled.reshape(&[ids.size(0), ids.size(1), self.text.layers, self.layer_width])
    }

    /// `project_per_layer_inputs`.
    fn projected(&self, cx: &Cx, embeddings: &Tensor, rows: Tensor) -> Tensor {
        let width = self.text.layers.saturating_mul(self.layer_width);
        let [factor, share] = ["per_layer_projection_scale", "per_layer_input_scale"]
            .map(|name| cx.buffer(name, [0; 0], cx.env.weights));
        let mut projection = cx.linear("per_layer_model_projection", embeddings, width, false);
        projection = projection.mul_buffer_(&factor);
        projection = projection.reshape(rows.shape());
        projection = self.text.norm(cx, "per_layer_projection_norm", &projection);
        let sum = projection.add(&rows).pipe(|sum| sum.mul(&share));
        drop((projection, rows));
        sum
    }

    /// `Gemma3nTextDecoderLayer.forward` of all streams `[N, B, S, H]`.
    fn layer(&self, cx: &Cx, input: &Tensor, own: &Tensor, inputs: &LayerInputs) -> Tensor {
        let text = &self.text;
        let predictions = cx.module("altup", |cx| self.predicted(cx, input));
        let active = predictions.select(0);
        let normed = text.norm(cx, "input_layernorm", &active);
        let low_rank = cx.module("laurel", |cx| self.low_rank(cx, &normed));
        let (mut attended, weights) =
            cx.module("self_attn", |cx| self.attention(cx, &normed, inputs));
        attended = text.norm(cx, "post_attention_layernorm", &attended);
        let gated = active.add(&attended);
        let sum = gated.add(&low_rank).pipe(Tensor::mul_scalar);
        let sum_normed = text.norm(cx, "pre_feedforward_layernorm", &sum);
        let fed = cx.module("mlp", |cx| self.mlp(cx, &sum_normed, inputs.sparse));
        let fed_normed = text.norm(cx, "post_feedforward_layernorm", &fed);
        let activated = sum.add(&fed_normed);
        let corrected = cx.module("altup", |cx| self.corrected(cx, &predictions, &activated));
        let mut first = corrected.select(0).pipe(Tensor::cloned);
        first = cx.module("altup", |cx| {
            let scale = cx.param("correct_output_scale", [text.hidden]).tensor();
            first
                .mul(&scale)
                .pipe(|scaled| scaled.to(corrected.dtype()))
        });
        first = cx.linear("per_layer_input_gate", &first, self.layer_width, false);
        first = first.gelu();
        first = first.mul(own);
        first = cx.linear("per_layer_projection", &first, text.hidden, false);
        first = text.norm(cx, "post_per_layer_input_norm", &first);
        let out = self.added_to_others(&corrected, &first);
        drop((
            predictions,
            active,
            normed,
            low_rank,
            attended,
            weights,
            gated,
            sum,
            sum_normed,
        ));
        drop((fed, fed_normed, activated, corrected, first));
        out
    }

    /// `Gemma3nTextLaurelBlock.forward`.
    fn low_rank(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let mut narrow = cx.linear("linear_left", x, self.residual_rank, false);
        narrow = cx.linear("linear_right", &narrow, self.text.hidden, false);
        let normed = self.text.norm(cx, "post_laurel_norm", &narrow);
        let sum = x.add(&normed);
        drop(narrow);
        sum
    }

    /// `Gemma3nTextMLP.forward`.
    fn mlp(&self, cx: &Cx, x: &Tensor, sparse: bool) -> Tensor {
        let width = self.text.intermediate;
        let mut gate = cx.linear("gate_proj", x, width, false);
        if sparse {
            gate = gate.pipe(largest);
        }
        let activations = gate.gelu();
        let up = cx.linear("up_proj", x, width, false);
        let out = activations
            .mul(&up)
            .pipe(|product| cx.linear("down_proj", product, self.text.hidden, false));
        drop((gate, activations, up));
        out
    }
}

/// `_gaussian_topk`: what is above a cutoff of the mean and the standard deviation.
fn largest(x: &Tensor) -> Tensor {
    let share = x.constant("tensor", &[0; 0], DType::F32);
    let deviations = share.constant("icdf", &[0; 0], x.dtype());
    let mean = x.mean(&[-1]);
    let deviation = x.variance().pipe(Tensor::sqrt);
    let cutoff = deviation.mul(&deviations).pipe(|scaled| mean.add(scaled));
    let above = x.sub(&cutoff).pipe(Tensor::relu);
    drop((share, deviations, mean, deviation, cutoff));
    above
}
