//! What one decoder is: its sizes and family, and the arguments of its model and layers.

use super::super::kv_cache::Cache;
use super::super::{ModelError, Sizes};
use super::family::Family;
use super::layer_set::LayerSet;
use super::mixers::{Mixer, MixerSizes};
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;

#[expect(
    clippy::struct_excessive_bools,
    reason = "the switches are those of a configuration"
)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Decoder {
    pub layers: u64,
    pub hidden: u64,
    pub heads: u64,
    pub key_value_heads: u64,
    pub head_dim: u64,
    pub intermediate: u64,
    pub vocab: u64,
    /// `tie_word_embeddings`.
    pub tied: bool,
    pub sliding_window: u64,
    /// Every n-th layer attends to the full sequence.
    pub full_attention_interval: u64,
    /// How many elements of a head are rotated.
    pub rotary_dim: u64,
    /// `max_position_embeddings`.
    pub max_positions: u64,
    /// `word_embed_proj_dim` of OPT; everywhere else the hidden size.
    pub embedding_dim: u64,
    pub dropout_rate: f64,
    /// `new_decoder_architecture` of Falcon.
    pub new_block: bool,
    pub experts: u64,
    /// Some configurations of a mixture have none (Granite 4 Micro).
    pub has_experts: bool,
    pub experts_per_token: u64,
    pub moe_intermediate: u64,
    pub shared_intermediate: u64,
    /// `first_k_dense_replace`: this many layers at the start have no experts.
    pub first_dense_layers: u64,
    /// `n_group` and `topk_group`: the groups of experts, and how many of them a token chooses from.
    pub expert_groups: u64,
    pub topk_groups: u64,
    pub mla: Option<Mla>,
    /// `experts_implementation="batched_mm"`: each token gets a copy of its experts' matrices.
    pub batched_experts: bool,
    /// The layers with (full) attention, where no interval says it.
    pub full_layers: Option<LayerSet>,
    /// The layers that are an MLP by itself, and those that are a mixture of experts by itself.
    pub mlp_layers: Option<LayerSet>,
    pub expert_layers: Option<LayerSet>,
    /// The layers with a mixture of experts where the others have an MLP.
    pub sparse_layers: Option<LayerSet>,
    /// `moe_latent_size`: experts work between two projections to this width; zero without them.
    pub latent: u64,
    pub mixers: MixerSizes,
    pub family: Family,
}

/// The widths of compressed queries, keys and values, as the configuration names them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mla {
    /// Zero where queries are not compressed.
    pub q_lora_rank: u64,
    pub kv_lora_rank: u64,
    pub qk_nope_head_dim: u64,
    pub qk_rope_head_dim: u64,
    pub v_head_dim: u64,
    /// `index_n_heads`, `index_head_dim` and `index_topk`.
    pub index_heads: u64,
    pub index_head_dim: u64,
    pub index_topk: u64,
}

/// The model's arguments other than the embeddings. It computes those that are `None`.
#[derive(Default)]
pub(super) struct ModelInputs<'a> {
    pub padding_mask: Option<&'a Tensor>,
    /// For layers with full attention, and for those with a sliding window.
    pub attention_masks: Option<[AttentionMask; 2]>,
    pub position_ids: Option<Tensor>,
    pub stacked: Option<Stacked>,
}

/// Features of pictures that the first layers add to the pictures' places in their outputs, one each (Qwen3-VL).
pub(super) struct Stacked {
    /// `[B, S]`
    pub mask: Tensor,
    pub features: Vec<Tensor>,
}

impl Stacked {
    /// `_deepstack_process`, after a layer.
    pub(super) fn added(&self, layer: usize, hidden: Tensor) -> Tensor {
        let Some(features) = self.features.get(layer) else {
            return hidden;
        };
        let copied = hidden.cloned();
        drop(hidden);
        let rows = copied.rows_where(&self.mask, features.size(0));
        let sums = rows.add(features);
        drop(rows);
        copied.put_where(&self.mask, &sums)
    }
}

/// A layer's arguments other than the hidden states.
#[derive(Clone)]
pub(super) struct LayerInputs {
    pub attention_mask: AttentionMask,
    /// What it has in place of attention.
    pub mixer: Option<Mixer>,
    /// What the mixers of layers without attention mask.
    pub padding: Option<Tensor>,
    /// `position_embeddings`: cosines and sines.
    pub rotary: Option<[Tensor; 2]>,
    pub cache: Cache,
    /// Learned keys and values before those of the tokens.
    pub prefix: Option<[Tensor; 2]>,
    /// Few layers read them, but a checkpointed one keeps all of its arguments. Only those of text: `[B, S]`.
    pub position_ids: Option<Tensor>,
    /// What is added to scores by the distance of two tokens (ALiBi).
    pub position_bias: Option<Tensor>,
}

impl Decoder {
    pub(super) fn new(sizes: &Sizes, family: Family) -> Result<Self, ModelError> {
        let hidden = sizes.need("hidden")?;
        let heads = sizes.need("heads")?.max(1);
        let head_dim = sizes.or("head_dim", hidden / heads);
        let mla = Mla::of(sizes);
        Ok(Self {
            layers: sizes.need("layers")?,
            hidden,
            heads,
            key_value_heads: sizes.or("kv", heads).max(1),
            head_dim,
            intermediate: sizes.need("ffn")?,
            vocab: sizes.need("vocab")?,
            tied: sizes.is_set("tied"),
            sliding_window: sizes.or(
                "sliding_window",
                sizes.or("window", family.attention.sliding_window),
            ),
            full_attention_interval: sizes
                .or("global_every", family.attention.full_attention_interval),
            rotary_dim: mla.map_or_else(
                || sizes.or("rotary", head_dim).min(head_dim),
                |mla| mla.qk_rope_head_dim,
            ),
            max_positions: sizes.or("ctx", 2048),
            embedding_dim: sizes.or("proj", hidden),
            dropout_rate: 0.1,
            new_block: sizes.is_set("new_block"),
            experts: sizes.or("experts", 8).max(1),
            has_experts: sizes.or("experts", 1) > 0,
            experts_per_token: sizes.or("topk", 2).max(1),
            moe_intermediate: sizes.or("moe_ffn", sizes.or("ffn", 1)),
            shared_intermediate: sizes.or("shared_ffn", 0),
            first_dense_layers: sizes.or("dense_layers", 0),
            expert_groups: sizes.or("groups", 1).max(1),
            topk_groups: sizes.or("topk_groups", 1).max(1),
            mla,
            batched_experts: sizes.is_set("experts_impl=batched_mm"),
            full_layers: LayerSet::of(sizes, "full"),
            mlp_layers: LayerSet::of(sizes, "mlp"),
            expert_layers: LayerSet::of(sizes, "moe"),
            sparse_layers: LayerSet::of(sizes, "sparse"),
            latent: sizes.or("latent", 0),
            mixers: MixerSizes::of(sizes),
            family,
        })
    }
}

impl Mla {
    pub(crate) fn of(sizes: &Sizes) -> Option<Self> {
        Some(Self {
            q_lora_rank: sizes.or("q_rank", 0),
            kv_lora_rank: sizes.get("kv_rank")?,
            qk_nope_head_dim: sizes.or("nope_dim", 128),
            qk_rope_head_dim: sizes.or("rope_dim", 64),
            v_head_dim: sizes.or("v_dim", 128),
            index_heads: sizes.or("index_heads", 64),
            index_head_dim: sizes.or("index_dim", 128),
            index_topk: sizes.or("index_topk", 2048),
        })
    }
}
