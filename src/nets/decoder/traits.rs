//! What sets a family apart: declared, and read by the one decoder.

use super::experts::Mixture;

/// A family's differences from Llama.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a yes or no about a published model.
pub(super) struct Traits {
    pub names: &'static Names,
    /// A layer's constructor makes attention, then what feeds forward, then the norms.
    pub norms_made_last: bool,
    /// Attention's constructor makes the projection of its result first.
    pub out_made_first: bool,
    /// The query, key and value projections have a bias.
    pub qkv_bias: bool,
    pub out_bias: bool,
    pub mlp_bias: bool,
    pub head_bias: bool,
    pub projection: Projection,
    pub head_norms: HeadNorms,
    pub norm: Norm,
    pub placement: Placement,
    pub embedding: Embedding,
    pub positions: Positions,
    pub scores: Scores,
    pub feed: Feed,
    pub activation: Activation,
    /// Attention scores (where they exist) and logits pass through tanh.
    pub soft_caps: bool,
    /// What attention and feed-forward add is multiplied by a number.
    pub scaled_residuals: bool,
    /// Logits are multiplied or divided by a number.
    pub scaled_logits: bool,
    /// Every n-th layer sees the whole sequence, the others a window of it; none of them where this is zero.
    pub full_attention_every: u64,
    /// A mask for windows is made that no layer reads.
    pub idle_mask: bool,
    /// Every n-th layer does not turn its heads; all do where this is zero.
    pub unturned_every: u64,
    pub mixture: Option<Mixture>,
    /// Old versions copy keys and values to every query head, whatever attention follows.
    pub repeats_keys: bool,
    /// Old versions take the cross-entropy of shifted logits in the model's own type.
    pub plain_loss: bool,
    /// The tokens a window holds where the model names no other number.
    pub window: u64,
    pub dropout: Dropout,
}

/// What a family calls its modules.
#[derive(Debug)]
pub(super) struct Names {
    pub model: &'static str,
    /// A module between the model and its layers.
    pub inner: Option<&'static str>,
    pub embed: &'static str,
    pub positions: &'static str,
    pub layers: &'static str,
    pub last_norm: &'static str,
    pub first_norm: &'static str,
    pub second_norm: &'static str,
    pub attention: &'static str,
    pub joint: &'static str,
    pub out: &'static str,
    pub query_norm: &'static str,
    pub key_norm: &'static str,
    /// The module of the feed-forward; its layers stand in the block itself where there is none.
    pub mlp: Option<&'static str>,
    pub up: &'static str,
    pub down: &'static str,
}

/// How queries, keys and values are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Projection {
    /// One projection each, cut into heads before the next is made.
    Apart,
    /// The same; all are made before the first is cut.
    Together,
    /// The same for keys and values; the query comes first and is scaled by itself (OPT).
    QueryFirst,
    /// One for all, cut along its width (Phi-3).
    Joint,
    /// One for all, in which each head has its query, key and value side by side (GPT-NeoX).
    ByHead,
    /// One for all; all heads share one key and one value (GPT-BigCode).
    OneKey,
}

/// Norms over queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadNorms {
    None,
    /// Over each head, before heads change places with positions.
    Each,
    /// Over each head, after that.
    EachMoved,
    /// Over all heads of a projection together.
    Whole,
    /// Each head has a norm of its own (StableLM 2).
    OneByOne,
}

/// How a norm is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Norm {
    /// fp32 inside, the weight applied in the input's type.
    Llama,
    /// fp32 to the end, the weight moved by one.
    Gemma,
    /// fp32 to the end.
    Olmo2,
    /// `nn.LayerNorm`.
    Layer,
    /// `F.layer_norm` in fp32 without weights.
    Bare,
    /// A layer norm in Python, fp32 to the end, without bias.
    Cohere,
}

/// Where a layer's norms stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// Before attention and before feed-forward.
    Before,
    /// The same; what attention adds keeps a name of its own, and so does what is read until it is added (GPT-BigCode).
    BeforeKept,
    /// The same; so does the normed input (StableLM).
    BeforeNamed,
    /// Before and after each.
    Around,
    /// After each, before it is added.
    After,
    /// After each, when it has been added (OPT-350m).
    AfterSum,
    /// One norm for both, which run side by side.
    Parallel { residual_first: bool },
    /// A norm for each, which run side by side (GPT-NeoX).
    ParallelApart,
    /// One norm for both or one for each, by the generation (Falcon).
    Falcon,
}

/// What is done with the embeddings of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Embedding {
    Plain,
    /// Multiplied by a number (Granite).
    Scaled,
    /// Multiplied by a number that is a tensor (Gemma).
    ScaledByTensor,
}

/// How a layer knows where a token stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Positions {
    Rotary(Turn),
    /// A table, read at the place of a token.
    Learned,
    /// A table, read at the count of tokens so far (OPT).
    Counted,
}

/// How attention weighs tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scores {
    /// As a function of the library does.
    Library,
    /// An operation at a time, with a score for each head that no token has (GPT-OSS).
    Sinks,
    /// An operation at a time in fp32, behind a triangle of the block's own (GPT-Neo).
    Wide,
}

/// How heads are turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Whole,
    /// A leading part, joined to the rest even where nothing is left (Phi-3).
    PartJoined,
    /// A leading part of each, both turned before either is joined (GPT-NeoX).
    Part,
    /// The same, in the block's own names, which live to its end (Phi, StableLM).
    PartNamed,
    /// By tables in fp32 (OLMo).
    Wide,
    /// In fp32, neighbours by each other (Cohere).
    WideNeighbours,
    /// A leading part, neighbours by each other (GLM).
    PartNeighbours,
    /// Neighbours as complex numbers (DeepSeek V2).
    Complex,
    /// Neighbours by each other, the firsts joined to the seconds (DeepSeek V3).
    Interleaved,
    /// The halves by tables of half a head (GPT-OSS).
    Halves,
}

/// The feed-forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feed {
    Gated,
    /// Gate and up are one projection.
    GatedJoint,
    Plain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activation {
    Silu,
    Gelu,
    /// `NewGELUActivation`, an operation at a time.
    GeluNew,
    Relu,
}

/// Where published configurations drop out, each with the same rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)]
pub(super) struct Dropout {
    pub embeddings: bool,
    pub attention: bool,
    /// What attention and feed-forward return, inside them.
    pub inside: bool,
    /// The same, in the layer.
    pub outside: bool,
}
