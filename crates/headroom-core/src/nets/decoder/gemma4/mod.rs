//! The language model of Gemma 4 (transformers/models/gemma4/modeling_gemma4.py): wider heads in layers with full attention,
//! keys and values that later layers share, an embedding for each layer, experts beside the MLP.

mod pictures;
mod tower;

use std::cell::RefCell;
use std::rc::Rc;

use super::super::kv_cache::{Cache, cached};
use super::super::{Cx, ModelError, Net, Output, Sizes, inputs};
use super::family::Rope;
use super::layer_set::period;
use super::{Decoder, attention, families, norm, rope};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
pub(super) struct Gemma4 {
    text: Decoder,
    /// `global_head_dim` and `num_global_key_value_heads`, of layers with full attention.
    global_head_dim: u64,
    global_kv: u64,
    /// `attention_k_eq_v`: those have no projection of values.
    keys_are_values: bool,
    /// `num_kv_shared_layers`: this many at the end have no keys and values of their own.
    shared_layers: u64,
    /// `use_double_wide_mlp`: their MLP is twice as wide.
    wide_shared: bool,
    /// `hidden_size_per_layer_input`.
    layer_width: u64,
    layer_vocab: u64,
    has_experts: bool,
}

/// The keys and values that layers with windows and those with full attention have stored for later ones.
type Stored = Rc<RefCell<[Option<[Tensor; 2]>; 2]>>;

/// The arguments of a layer besides its hidden states and its own embedding.
#[derive(Clone)]
struct LayerInputs {
    mask: AttentionMask,
    rotary: [Tensor; 2],
    stored: Stored,
    cache: Cache,
    full: bool,
    /// It reads what an earlier layer has stored, or stores for later ones.
    reuses: bool,
    stores: bool,
}

pub(super) use pictures::build as with_pictures;

pub(super) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Gemma4::new(sizes)?))
}

impl Net for Gemma4 {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        inputs::token_ids_and_labels(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let cache = self.text.cache(cx);
        let hidden = cx.module("model", |cx| {
            let embeddings = self.text.embeddings(cx, ids);
            let per_layer = self.layer_embeddings(cx, ids);
            let masks = |dtype| {
                let padding = batch.get(2);
                self.text.attention_masks(cx, ids, padding, dtype)
            };
            self.run(cx, embeddings, per_layer, ids, &masks, &cache)
        });
        self.text.output(cx, &hidden, labels, cache)
    }
}

impl Gemma4 {
    pub(super) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        let text = Decoder::new(sizes, families::gemma::gemma4(sizes))?;
        Ok(Self {
            global_head_dim: sizes.or("global_head_dim", 512),
            global_kv: sizes.or("global_kv", text.key_value_heads).max(1),
            keys_are_values: sizes.is_set("k_eq_v"),
            shared_layers: sizes.or("shared_kv", 0).min(text.layers),
            wide_shared: sizes.is_set("wide_shared"),
            layer_width: sizes.or("layer_width", 256),
            layer_vocab: sizes.or("layer_vocab", text.vocab),
            has_experts: sizes.or("experts", 0) > 0,
            text,
        })
    }

    /// `get_per_layer_inputs`: rows of a table for all layers `[B, S, L, W]`.
    pub(super) fn layer_embeddings(&self, cx: &Cx, ids: &Tensor) -> Option<Tensor> {
        if self.layer_width == 0 {
            return None;
        }
        let width = self.text.layers.saturating_mul(self.layer_width);
        let name = "embed_tokens_per_layer";
        let scaled = {
            let rows = cx.embedding(name, ids, self.layer_vocab, width);
            let factor = cx.module(name, |cx| cx.buffer("embed_scale", [0; 0], cx.env.weights));
            rows.mul(&factor)
        };
        Some(scaled.reshape(&[ids.size(0), ids.size(1), self.text.layers, self.layer_width]))
    }

    /// `project_per_layer_inputs`.
    fn projected(&self, cx: &Cx, embeddings: &Tensor, per_layer: Tensor) -> Tensor {
        let width = self.text.layers.saturating_mul(self.layer_width);
        let mut projection = cx
            .linear("per_layer_model_projection", embeddings, width, false)
            .pipe(Tensor::mul_scalar);
        projection = projection.reshape(per_layer.shape());
        projection = self.text.norm(cx, "per_layer_projection_norm", &projection);
        let sum = projection.add(&per_layer).pipe(Tensor::mul_scalar);
        drop((projection, per_layer));
        sum
    }

    fn is_full(&self, layer: u64) -> bool {
        let text = &self.text;
        match text.full_layers {
            Some(layers) => layers.contains(layer),
            // The last layer is forced to be.
            None => {
                (layer + 1).is_multiple_of(text.full_attention_interval.max(1))
                    || layer + 1 == text.layers
            }
        }
    }

    /// The last layer of either kind before the sharing ones stores its keys and values.
    fn stores(&self, layer: u64) -> bool {
        let first = self.text.layers - self.shared_layers;
        let alike = |other: &u64| self.is_full(*other) == self.is_full(layer);
        self.shared_layers > 0 && layer < first && !(layer + 1..first).any(|i| alike(&i))
    }

    /// `Gemma4TextModel.forward` from the embeddings on.
    pub(super) fn run(
        &self,
        cx: &Cx,
        embeddings: Tensor,
        per_layer: Option<Tensor>,
        ids: &Tensor,
        masks: &dyn Fn(DType) -> [AttentionMask; 2],
        cache: &Cache,
    ) -> Tensor {
        let text = &self.text;
        let per_layer = per_layer.map(|rows| self.projected(cx, &embeddings, rows));
        let positions = inputs::positions(ids);
        let [full_mask, window_mask] = masks(embeddings.dtype());
        let table = |dim, buffers| {
            rope::tables(cx, &positions, dim, embeddings.dtype(), Rope::Full, buffers)
        };
        let full_table = table(
            self.global_head_dim,
            ["full_inv_freq", "full_original_inv_freq"],
        );
        let window_table = table(
            text.head_dim,
            ["sliding_inv_freq", "sliding_original_inv_freq"],
        );
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
            };
            let mut state = state;
            state.truncate(1);
            state.extend(per_layer.as_ref().map(|all| all.select(2)));
            let this = *self;
            cx.layer("layers", i, state, move |cx, state| {
                state
                    .first()
                    .map(|hidden| this.layer(cx, hidden, state.get(1), &inputs))
                    .into_iter()
                    .collect()
            })
        };
        let state = vec![embeddings.clone()];
        let kinds = |i: u64| (self.is_full(i), self.stores(i), i >= first_shared);
        let period = period(text.layers, kinds);
        let state = cx.periodic_layers(text.layers, period, state, layer);
        let last = state.first().map(|hidden| text.final_norm(cx, hidden));
        drop((
            full_mask,
            window_mask,
            full_table,
            window_table,
            stored,
            per_layer,
            positions,
        ));
        last.unwrap_or(embeddings)
    }

    /// `Gemma4TextDecoderLayer.forward`.
    fn layer(
        &self,
        cx: &Cx,
        input: &Tensor,
        per_layer: Option<&Tensor>,
        inputs: &LayerInputs,
    ) -> Tensor {
        let text = &self.text;
        let mut hidden = text.norm(cx, "input_layernorm", input);
        let (attended, weights) = cx.module("self_attn", |cx| self.attention(cx, &hidden, inputs));
        hidden = attended;
        hidden = text.norm(cx, "post_attention_layernorm", &hidden);
        hidden = input.add(&hidden);
        let mut residual = hidden.clone();
        hidden = text.norm(cx, "pre_feedforward_layernorm", &hidden);
        let wide = self.wide_shared && inputs.reuses;
        let width = text.intermediate.saturating_mul(1 + u64::from(wide));
        hidden = cx.module("mlp", |cx| text.gated_mlp(cx, &hidden, width));
        let mut held = Vec::new();
        if self.has_experts {
            (hidden, held) = self.with_experts(cx, &hidden, &residual);
        }
        hidden = text.norm(cx, "post_feedforward_layernorm", &hidden);
        hidden = residual.add(&hidden);
        if let Some(own) = per_layer {
            residual = hidden.clone();
            hidden = cx.linear("per_layer_input_gate", &hidden, self.layer_width, false);
            hidden = hidden.gelu();
            hidden = hidden.mul(own);
            hidden = cx.linear("per_layer_projection", &hidden, text.hidden, false);
            hidden = text.norm(cx, "post_per_layer_input_norm", &hidden);
            hidden = residual.add(&hidden);
        }
        let factor = cx.buffer("layer_scalar", [1], cx.env.weights);
        let out = hidden.mul_buffer_(&factor);
        drop((residual, weights, held));
        out
    }

    /// The sum of the MLP and of the experts, which read what the MLP's norm did.
    fn with_experts(&self, cx: &Cx, hidden: &Tensor, residual: &Tensor) -> (Tensor, Vec<Tensor>) {
        let text = &self.text;
        let first = text.norm(cx, "post_feedforward_layernorm_1", hidden);
        let flat = residual.reshape(&[residual.numel() / text.hidden.max(1), text.hidden]);
        let (weights, chosen) = cx.module("router", |cx| self.route(cx, &flat));
        let mut second = text.norm(cx, "pre_feedforward_layernorm_2", &flat);
        second = text.routed(cx, [&second, &weights, &chosen], false);
        second = second.reshape(residual.shape());
        second = text.norm(cx, "post_feedforward_layernorm_2", &second);
        let sum = first.add(&second);
        (sum, vec![first, second, weights, chosen])
    }

    /// `Gemma4TextRouter.forward`: a softmax in fp32 over scaled, normed states, with a factor for each expert.
    fn route(&self, cx: &Cx, x: &Tensor) -> (Tensor, Tensor) {
        let text = &self.text;
        let mut hidden = norm::gemma4(x, None);
        let scale = cx.param("scale", [text.hidden]).tensor();
        hidden = hidden.mul(&scale).pipe(Tensor::mul_scalar);
        let scores = cx.linear("proj", &hidden, text.experts, false);
        let shares = scores.softmax(Some(DType::F32));
        let (mut weights, chosen) = shares.topk(text.experts_per_token.min(text.experts));
        weights = weights.sum(&[-1]).pipe(|sum| weights.div_(sum));
        let factors = cx.param("per_expert_scale", [text.experts]).tensor();
        let (tokens, k) = (chosen.size(0), chosen.size(1));
        weights = factors
            .rows_at(&chosen.view(&[tokens * k]))
            .view(&[tokens, k])
            .pipe(|own| weights.mul(own));
        drop((hidden, scores, shares));
        (weights, chosen)
    }

    /// `Gemma4TextAttention.forward`.
    fn attention(&self, cx: &Cx, x: &Tensor, inputs: &LayerInputs) -> (Tensor, Option<Tensor>) {
        let text = &self.text;
        let (b, s) = (x.size(0), x.size(1));
        let (dim, kv) = if inputs.full {
            (self.global_head_dim, self.global_kv)
        } else {
            (text.head_dim, text.key_value_heads)
        };
        let heads = |t: Tensor, n: u64| t.view(&[b, s, n, dim]);
        let tables = inputs.rotary.each_ref().map(|table| table.unsqueeze(2));
        let turned = |t: &Tensor| rope::rotated(t, &tables, rope::rotate_half);
        let mut query = heads(cx.linear("q_proj", x, text.heads * dim, false), text.heads);
        query = text.norm(cx, "q_norm", &query);
        query = turned(&query);
        query = query.transpose(1, 2);
        let kind = usize::from(inputs.full);
        let reused = inputs
            .reuses
            .then(|| inputs.stored.borrow()[kind].clone())
            .flatten();
        let [key, value] = reused.unwrap_or_else(|| {
            let mut key = heads(cx.linear("k_proj", x, kv * dim, false), kv);
            let mut value = if self.keys_are_values && inputs.full {
                key.clone()
            } else {
                heads(cx.linear("v_proj", x, kv * dim, false), kv)
            };
            key = text.norm(cx, "k_norm", &key);
            key = turned(&key);
            key = key.transpose(1, 2);
            value = norm::gemma4(&value, None);
            value = value.transpose(1, 2);
            (key, value) = cached(&inputs.cache, key, value);
            [key, value]
        });
        if inputs.stores {
            inputs.stored.borrow_mut()[kind] = Some([key.clone(), value.clone()]);
        }
        let groups = text.heads / kv;
        let all = [&query, &key, &value];
        let (mut out, weights) =
            attention::attention_function(cx, all, &inputs.mask, groups, false, 0.0);
        out = out.reshape(&[b, s, text.heads * dim]).contiguous();
        out = cx.linear("o_proj", &out, text.hidden, false);
        drop((query, key, value));
        (out, weights)
    }
}
