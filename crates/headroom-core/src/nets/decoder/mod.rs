//! One decoder-only language model with declared differences: Llama and its relatives
//! (transformers/models/llama/modeling_llama.py and those generated from it).

mod alibi;
mod attention;
mod aya;
mod blip2;
mod bloom;
mod codegen;
mod config;
mod csm;
mod deepseek_ocr;
mod ends;
mod experts;
mod falcon;
mod falcon_h1;
mod families;
mod family;
mod gemma3n;
mod gemma4;
mod gemma_vision;
mod gptj;
mod idefics;
mod indexer;
mod internvl;
mod layer;
mod layer_set;
mod lfm2_vl;
mod llama4;
mod llava;
mod llava_tiles;
mod mamba_model;
mod mixers;
mod mla;
mod mllama;
mod mlp;
mod moonshine;
mod mpt;
mod norm;
mod omni;
mod pictures;
mod pixtral;
mod positions;
mod qwen_vision;
mod qwen_vl;
mod reading;
mod rope;
mod router;
mod seen;
mod sound;
mod sparse_mixer;
mod tensor_plan;
mod tiles;
mod xielu;
mod zamba2;

pub(super) use attention::attention_function;
use config::{Decoder, LayerInputs, Mla, ModelInputs};
pub(crate) use families::FAMILIES;
use family::Scores;
pub(super) use layer_set::LayerSet;
use layer_set::{period, regular_beginning};
pub use llava::Llava;
use mixers::Mixer;
pub(super) use rope::{full_tables, rotate_half, rotated, rotated_in_fp32};

use std::cell::RefCell;

use super::kv_cache::{Cache, KvCache, cache, cached};
use super::language_model::{LanguageModel, TokenMask};
use super::{Cx, Net, Output, Plan, head, inputs};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::{AdapterMethod, Attention, Data};

impl Net for Decoder {
    fn tensor_plan(&self, divides_experts: bool) -> Option<Plan> {
        self.family.tensor_plan(divides_experts)
    }

    fn has_stages(&self) -> bool {
        // A tied head would be on another stage than its embedding, and layers of two kinds are two lists.
        !self.tied && self.first_dense_layers == 0 && self.embedding_dim == self.hidden
    }

    fn supports_context_parallel(&self) -> bool {
        let attention = &self.family.attention;
        let everywhere = attention.sliding_window == 0 && self.sliding_window == 0;
        everywhere && self.mla.is_none() && attention.scores == Scores::Library
    }

    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        super::inputs::token_ids_and_labels(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let with_prompt = |x: &Tensor| {
            let prompt = cx.env.training.prompt_tokens;
            if prompt == 0 {
                return x.clone();
            }
            let length = x.size(1).saturating_add(prompt);
            x.constant("cat", &[x.size(0), length], x.dtype())
        };
        let (ids, labels) = (&with_prompt(ids), &with_prompt(labels));
        let eager = self.eager_part(cx);
        let cx = eager.as_ref().unwrap_or(cx);
        let cache = self.cache(cx);
        let name = self.family.names.model;
        let hidden = cx.module(name, |cx| match self.family.names.inner {
            Some(inner) => cx.module(inner, |cx| self.model(cx, ids, batch.get(2), &cache)),
            None => self.model(cx, ids, batch.get(2), &cache),
        });
        self.output(cx, &hidden, labels, cache)
    }

    fn language_model(&self) -> Option<&dyn LanguageModel> {
        Some(self)
    }
}

impl LanguageModel for Decoder {
    fn hidden(&self, cx: &Cx, ids: &Tensor, mask: TokenMask, cache: Option<&KvCache>) -> Tensor {
        let eager = self.eager_part(cx);
        let cx = eager.as_ref().unwrap_or(cx);
        let cache = cache.cloned();
        let name = self.family.names.model;
        let model = |cx: &Cx| {
            let embeddings = self.embeddings(cx, ids);
            let inputs = inputs_of(cx, ids, mask, &cache);
            self.run(cx, embeddings, ids, inputs, &cache)
        };
        cx.module(name, |cx| match self.family.names.inner {
            Some(inner) => cx.module(inner, model),
            None => model(cx),
        })
    }

    fn logits(&self, cx: &Cx, hidden: &Tensor) -> Tensor {
        match Self::fp32_head(cx) {
            Some(cx) => hidden.to(DType::F32).pipe(|hidden| self.head(&cx, hidden)),
            None => self.head(cx, hidden),
        }
    }

    fn head_weight(&self, cx: &Cx) -> Tensor {
        if self.tied {
            // The constructor makes a head of its own before the two are tied.
            cx.module("lm_head", |cx| {
                drop(cx.weight_until_tied([self.vocab, self.embedding_dim]));
            });
        }
        cx.env.wrapper.full_tensor(&|| self.head_weight(cx))
    }

    fn vocabulary(&self) -> u64 {
        self.vocab
    }
}

impl Decoder {
    /// Attention that no library function computes is always eager.
    fn eager_part(&self, cx: &Cx) -> Option<Cx> {
        let asked = cx.env.training.attention;
        let only_eager = match self.family.attention.scores {
            Scores::Library => false,
            Scores::Capped | Scores::Sinks | Scores::Fp32 => asked == Attention::Sdpa,
            Scores::InBlock => asked != Attention::Eager,
        };
        only_eager.then(|| {
            cx.part(cx.env.weights, |training| {
                training.attention = Attention::Eager;
            })
        })
    }

    /// The loss of the last hidden states; the output holds the cache too.
    fn output(&self, cx: &Cx, hidden: &Tensor, labels: &Tensor, cache: Cache) -> Output {
        let loss = || {
            head::loss(
                cx,
                hidden,
                labels,
                self.family.head.loss_in_model_dtype,
                || self.head_weight(cx).tensor(),
                |hidden| self.head(cx, hidden),
            )
        };
        let mut output = if cx.env.libraries.offloads_activations {
            cx.tape.keeping_what_is_saved(loss)
        } else {
            loss()
        };
        output
            .held
            .extend(cache.map(|cache| cache.take()).unwrap_or_default());
        output
    }

    /// The same of a model whose output holds more, such as the features of pictures.
    fn output_with(
        &self,
        cx: &Cx,
        hidden: &Tensor,
        labels: &Tensor,
        cache: Cache,
        more: impl IntoIterator<Item = Tensor>,
    ) -> Output {
        let mut output = self.output(cx, hidden, labels, cache);
        output.held.extend(more);
        output
    }

    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>, cache: &Cache) -> Tensor {
        let embeddings = self.embeddings(cx, ids);
        self.padded(cx, embeddings, ids, padding, cache)
    }

    /// The model from its input embeddings on, of which some may be padding.
    fn padded(
        &self,
        cx: &Cx,
        embeddings: Tensor,
        ids: &Tensor,
        padding: Option<&Tensor>,
        cache: &Cache,
    ) -> Tensor {
        let inputs = ModelInputs {
            padding_mask: padding,
            ..ModelInputs::default()
        };
        self.run(cx, embeddings, ids, inputs, cache)
    }

    /// The model from its input embeddings on.
    fn run(
        &self,
        cx: &Cx,
        embeddings: Tensor,
        ids: &Tensor,
        inputs: ModelInputs,
        cache: &Cache,
    ) -> Tensor {
        let (position_ids, summed_mask) = match inputs.position_ids {
            Some(position_ids) => (position_ids, None),
            None => self.position_ids(ids, inputs.padding_mask),
        };
        self.note_widest(cx);
        let prefix = self.prefix(cx, ids, embeddings.dtype());
        let position_bias = self.position_bias(ids, inputs.padding_mask, embeddings.dtype());
        let full_attention = self.full_attention_interval;
        let [full_mask, window_mask] = inputs.attention_masks.unwrap_or_else(|| {
            if let Some([keys, _]) = &prefix {
                let room = keys.size(-2).saturating_add(ids.size(1));
                let mask = inputs::static_mask(ids, room);
                return [mask.clone(), mask];
            }
            cx.for_every_stage(|| {
                self.attention_masks(cx, ids, inputs.padding_mask, embeddings.dtype())
            })
        });
        let (first, held) = self.first_hidden_states(cx, embeddings, &position_ids);
        let tables = cx.for_every_stage(|| self.rotary_tables(cx, &position_ids, first.dtype()));
        let no_rope = self.family.attention.no_rope_interval;
        let is_nth = |interval: u64, i: u64| interval > 0 && (i + 1).is_multiple_of(interval);
        let is_full = |i: u64| match self.full_layers {
            Some(layers) => layers.contains(i),
            None => is_nth(full_attention, i),
        };
        // Where just the layers with full attention rotate nothing, a list of them tells of both.
        let follows = self.full_layers.is_some()
            && no_rope > 0
            && no_rope == self.family.attention.full_attention_interval;
        let turns = |i: u64| {
            !if follows {
                is_full(i)
            } else {
                is_nth(no_rope, i)
            }
        };
        let mixer = |i: u64| self.mixer_of(i).filter(|_| !is_full(i));
        let is_sparse = |i: u64| self.sparse_layers.is_none_or(|set| set.contains(i));
        let kind = |i: u64| (is_full(i), turns(i), mixer(i), is_sparse(i));
        let period = match self.full_layers.or(self.sparse_layers) {
            Some(_) => period(self.layers, kind),
            None => full_attention.max(no_rope).max(1),
        };
        let keeps = cx.env.training.task.objective.keeps_hidden_states() && cx.tape.grad_enabled();
        let returned = RefCell::new(Vec::new());
        let layer = |state: Vec<Tensor>, i: usize| {
            for hidden in state.iter().filter(|_| keeps) {
                cx.tape.keep_with_graph(hidden);
            }
            let full = is_full(i as u64);
            let inputs = LayerInputs {
                attention_mask: if full { &full_mask } else { &window_mask }.clone(),
                mixer: mixer(i as u64),
                padding: inputs.padding_mask.cloned(),
                rotary: tables
                    .get(usize::from(!full && tables.len() > 1))
                    .filter(|_| turns(i as u64))
                    .cloned(),
                cache: cache.clone(),
                prefix: prefix.clone(),
                position_ids: (position_ids.shape().len() == 2).then(|| position_ids.clone()),
                position_bias: position_bias.clone(),
            };
            let mut this = *self;
            if (i as u64) < self.first_dense_layers || !is_sparse(i as u64) {
                this.family.mlp.experts = None;
            }
            let mut outputs = cx.layer(self.family.names.layers, i, state, move |cx, state| {
                let layer = |hidden| this.layer(cx, hidden, &inputs);
                state.iter().flat_map(layer).collect()
            });
            // `outputs = block(..)`: what a layer returns besides its output lives until the next has returned.
            let besides = outputs.split_off(1);
            returned.replace(besides);
            outputs
        };
        // Those that are unlike the rest are not folded with it.
        let stacked = inputs.stacked;
        let added = stacked.as_ref().map_or(0, |stacked| stacked.features.len());
        let dense = self.first_dense_layers.max(added as u64).min(self.layers) as usize;
        let state = (0..dense).fold(vec![first.clone()], |state, i| {
            let outputs = layer(state, i);
            match &stacked {
                Some(stacked) => {
                    (outputs.into_iter().map(|hidden| stacked.added(i, hidden))).collect()
                }
                None => outputs,
            }
        });
        let rest = self.layers - dense as u64;
        // A list that one layer breaks repeats up to that; stages of a pipeline are of a whole list.
        let (period, regular) = if period > rest && !self.has_stages() {
            regular_beginning(rest, |i| kind(dense as u64 + i))
        } else {
            (period, rest)
        };
        let mut state =
            cx.periodic_layers(regular, period, state, |state, i| layer(state, dense + i));
        for i in regular..rest {
            state = layer(state, dense + i as usize);
        }
        let last = state.first().map(|hidden| self.final_norm(cx, hidden));
        drop((
            full_mask,
            window_mask,
            tables,
            position_ids,
            position_bias,
            summed_mask,
            held,
            returned,
        ));
        last.unwrap_or(first)
    }

    /// What a layer without attention has.
    fn mixer_of(&self, layer: u64) -> Option<Mixer> {
        let is_in = |set: Option<LayerSet>| set.is_some_and(|set| set.contains(layer));
        if is_in(self.mlp_layers) {
            Some(Mixer::Mlp)
        } else if is_in(self.expert_layers) {
            Some(Mixer::Experts)
        } else {
            self.family.mixer
        }
    }

    /// Notes how wide the layers are that adapters take, for those that share matrices among all of them.
    fn note_widest(&self, cx: &Cx) {
        let Some(lora) = &cx.env.training.lora else {
            return;
        };
        let (queries, keys) = (
            self.heads.saturating_mul(self.head_dim),
            self.key_value_heads.saturating_mul(self.head_dim),
        );
        let all = [
            ("q_proj", queries, self.hidden),
            ("k_proj", keys, self.hidden),
            ("v_proj", keys, self.hidden),
            ("o_proj", self.hidden, queries),
            ("gate_proj", self.intermediate, self.hidden),
            ("up_proj", self.intermediate, self.hidden),
            ("down_proj", self.hidden, self.intermediate),
        ];
        let adapted = all
            .iter()
            .filter(|(name, ..)| lora.targets.iter().any(|target| target == name));
        let widest = adapted.fold([0, 0], |[outputs, inputs], (_, out, input)| {
            [outputs.max(*out), inputs.max(*input)]
        });
        cx.env.shared.widest.set(widest);
    }

    /// One layer's learned keys and values (`PrefixEncoder` of PEFT, `get_prompt`): those of all layers come from one table.
    fn prefix(&self, cx: &Cx, ids: &Tensor, dtype: DType) -> Option<[Tensor; 2]> {
        let lora = cx.env.training.lora.as_ref()?;
        if lora.method != AdapterMethod::Prefix {
            return None;
        }
        let (heads, width) = (self.key_value_heads, self.head_dim);
        let all = 2_u64
            .saturating_mul(self.layers)
            .saturating_mul(heads * width);
        let table = cx.module("prompt_encoder", |cx| {
            cx.param_as("weight", [lora.rank, all], DType::F32, |_| true)
        });
        let rows = ids.size(0);
        let places = ids.constant("expand", &[rows, lora.rank], DType::I64);
        let past = table.tensor().embedding(&places).to(dtype);
        let each = past.narrow(2, heads * width);
        let one = each.view(&[rows, lora.rank, heads, width]).transpose(1, 2);
        Some([one.clone(), one])
    }
}

/// The model's arguments for tokens under a mask; a pass that continues with a cache needs none, or one of the cache's width.
fn inputs_of<'a>(cx: &Cx, ids: &Tensor, mask: TokenMask<'a>, cache: &Cache) -> ModelInputs<'a> {
    if let Some(cache) = cache.as_ref().filter(|cache| cache.is_static()) {
        let mask = inputs::static_mask(ids, cache.room());
        return ModelInputs {
            attention_masks: Some([mask.clone(), mask]),
            ..ModelInputs::default()
        };
    }
    match mask {
        TokenMask::Full if cache.is_some() && ids.size(1) == 1 => ModelInputs {
            attention_masks: Some([AttentionMask::None, AttentionMask::None]),
            ..ModelInputs::default()
        },
        TokenMask::Full => ModelInputs::default(),
        TokenMask::Padded(padding) => ModelInputs {
            padding_mask: Some(padding),
            ..ModelInputs::default()
        },
        TokenMask::Packed(position_ids) => {
            let mask = inputs::packed_mask(cx, ids);
            ModelInputs {
                attention_masks: Some([mask.clone(), mask]),
                position_ids: Some(position_ids.clone()),
                ..ModelInputs::default()
            }
        }
    }
}

#[cfg(test)]
mod tests;
