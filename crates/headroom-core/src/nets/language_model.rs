//! A causal language model in the parts that trainers and `generate` call by themselves.

use super::Cx;
use super::kv_cache::KvCache;
use crate::tape::Tensor;
use headroom_scenario::Data;

/// Masks besides the causal one.
#[derive(Clone, Copy, Debug)]
pub enum TokenMask<'a> {
    /// Rows are full.
    Full,
    /// `attention_mask` `[B, S]` with padding in it.
    Padded(&'a Tensor),
    /// `position_ids` `[1, T]` that restart with each of the samples packed in one row.
    Packed(&'a Tensor),
}

/// A causal language model: a base model that gives hidden states, and a head.
pub trait LanguageModel {
    /// `last_hidden_state` `[B, S, H]` of the base model, which fills or grows the cache where it gets one.
    fn hidden(&self, cx: &Cx, ids: &Tensor, mask: TokenMask, cache: Option<&KvCache>) -> Tensor;
    /// `lm_head(hidden)`.
    fn logits(&self, cx: &Cx, hidden: &Tensor) -> Tensor;
    /// `get_output_embeddings().weight`.
    fn head_weight(&self, cx: &Cx) -> Tensor;
    fn vocabulary(&self) -> u64;
    /// Whether rows of tokens have places for pictures.
    fn reads_pictures(&self) -> bool {
        false
    }
    /// The tensors of the pictures of a batch.
    fn pictures(&self, _cx: &Cx, _data: &Data) -> Vec<Tensor> {
        Vec::new()
    }
}

/// The pictures of a batch, as a task shows them to the models that it calls.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Rows of tokens that have them.
    pub rows: u64,
    pub tensors: Vec<Tensor>,
}
