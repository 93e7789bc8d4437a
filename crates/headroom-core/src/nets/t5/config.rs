//! Sizes of a T5 (`T5Config`).

#[derive(Clone, Copy, Debug)]
pub(super) struct T5 {
    pub layers: u64,
    pub decoder_layers: u64,
    pub hidden: u64,
    pub heads: u64,
    pub head_dim: u64,
    pub ffn: u64,
    pub vocab: u64,
    /// Buckets of relative positions (`relative_attention_num_buckets`).
    pub buckets: u64,
    /// `T5DenseGatedActDense` of Flan and mT5: two projections in, one through `gelu_new`.
    pub gated: bool,
    /// The head is tied to the embeddings (`tie_word_embeddings`).
    pub tied: bool,
}
