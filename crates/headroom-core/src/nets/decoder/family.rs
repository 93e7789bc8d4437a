//! What sets a family apart from Llama: declared in [`families`](super::families), read by the one decoder.

use super::mixers::Mixer;
use crate::nets::inputs::MaskRules;

/// A family of decoders, by what differs between published models.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    pub names: &'static Names,
    pub embeddings: Embeddings,
    pub attention: Attention,
    pub mlp: Mlp,
    pub norms: Norms,
    pub head: Head,
    pub init: InitOrder,
    pub dropout: Dropout,
    /// What layers have that are not among those with attention.
    pub mixer: Option<Mixer>,
}

/// What a family calls its modules.
#[derive(Debug)]
pub(super) struct Names {
    pub model: &'static str,
    /// A module between the model and its layers.
    pub inner: Option<&'static str>,
    pub embed_tokens: &'static str,
    pub embed_positions: &'static str,
    pub layers: &'static str,
    pub final_norm: &'static str,
    pub input_norm: &'static str,
    pub mlp_norm: &'static str,
    /// The norms behind attention, before the MLP and behind it, where a layer has all of them.
    pub further_norms: [&'static str; 3],
    pub attention: &'static str,
    pub qkv_proj: &'static str,
    pub o_proj: &'static str,
    pub q_norm: &'static str,
    pub k_norm: &'static str,
    /// `None` where the layers of the MLP are the block's own.
    pub mlp: Option<&'static str>,
    pub gate_proj: &'static str,
    pub up_proj: &'static str,
    pub down_proj: &'static str,
}

/// The model's input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Embeddings {
    /// A norm of their own, by its name (BLOOM).
    pub norm: Option<&'static str>,
    pub scale: EmbeddingScale,
    pub positions: Positions,
}

/// What the embeddings of tokens are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EmbeddingScale {
    None,
    /// A number (Granite).
    Number,
    /// A number; the embeddings before it live as long as the layers (AFMoE).
    NumberBeside,
    /// A tensor of one number (Gemma).
    Tensor,
}

/// How a layer encodes positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Positions {
    Rotary(Rope),
    /// None at all (Granite 4).
    Nowhere,
    /// A learned table, read by `position_ids`.
    Learned,
    /// A learned table, read by the running sum of the attention mask (OPT).
    LearnedByMask,
    /// A bias on the scores of a head that grows with the distance.
    Alibi(Alibi),
}

/// How long the biases of ALiBi are, and what is made to build them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alibi {
    /// For each sample and token, in the type of the hidden states (BLOOM).
    ForSamples,
    /// For as many tokens as the model may see, in fp32 (MPT).
    ForAllPlaces,
}

/// How queries and keys are rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rope {
    Full,
    /// The same, by frequencies that take turns for time, height and width (Qwen3-VL).
    InterleavedSections,
    /// The first `rotary_dim` of a head, concatenated with the rest even where nothing is left (Phi-3).
    PartialConcatenated,
    /// The first `rotary_dim` of a head; queries and keys are both rotated before either is concatenated (GPT-NeoX).
    Partial,
    /// The same, in the block's own variables, which live to its end (Phi, StableLM).
    PartialInBlock,
    /// With tables in fp32 (OLMo).
    Fp32Tables,
    /// In fp32, neighbouring elements by each other (Cohere).
    Fp32Interleaved,
    /// The same with tables in fp32 that each layer interleaves (ERNIE 4.5).
    InterleavedInFp32,
    /// The first `rotary_dim` of a head, neighbouring elements by each other (GLM).
    PartialInterleaved,
    /// The first `rotary_dim` of a head, by tables for time, height and width side by side (GLM-4.5V).
    PartialSections,
    /// The same, neighbouring elements by each other (GLM-4.1V).
    PartialSectionsInterleaved,
    /// Neighbouring elements as complex numbers (DeepSeek V2).
    Complex,
    /// Neighbouring elements by each other, the results concatenated instead of interleaved (DeepSeek V3).
    Deinterleaved,
    /// The halves by tables of half a head (GPT-OSS).
    HalfTables,
    /// By a table that each layer has and reads by position, in the block's own function (GPT-J).
    InBlock,
}

#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a yes or no about a published model.
pub(super) struct Attention {
    pub qkv_bias: bool,
    pub o_bias: bool,
    pub projection: Projection,
    pub qk_norm: QkNorm,
    pub scores: Scores,
    /// `attn_logit_softcapping`: eager scores pass through tanh.
    pub softcap: bool,
    /// Every n-th layer attends to the full sequence, the others to a sliding window; no layer does if this is zero.
    pub full_attention_interval: u64,
    /// `sliding_window` where the model's configuration names none.
    pub sliding_window: u64,
    /// Sliding windows have rotary tables of their own (Gemma 3).
    pub window_rope: bool,
    /// How the mask is made before the first layer.
    pub mask: MaskRules,
    /// A mask for sliding windows is made that no layer reads.
    pub unused_window_mask: bool,
    /// The model holds a causal mask in a buffer that no attention reads any more.
    pub unused_causal_buffer: bool,
    /// `no_rope_layer_interval`: every n-th layer rotates nothing; all rotate where this is zero.
    pub no_rope_interval: u64,
    /// Old versions call `repeat_kv` whatever attention follows.
    pub repeats_kv: bool,
    /// `key_multiplier`: keys are multiplied by a number (Falcon-H1).
    pub scaled_keys: bool,
    /// Rotated queries are multiplied by a number that grows with the position (Ministral 3).
    pub queries_by_position: bool,
    /// A norm of what heads have read, before `o_proj`, by its name (BitNet).
    pub sub_norm: Option<&'static str>,
    /// Positions have a row for each sample and are of three kinds, as in its vision-language models (Qwen3.5).
    pub position_kinds: bool,
    /// What chooses the keys that a token sees (DeepSeek V3.2).
    pub indexer: Option<Indexer>,
}

/// How the queries and keys of an indexer are rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Indexer {
    /// Halves by each other.
    Halves,
    /// Neighbouring elements by each other (GLM-5).
    Neighbours,
}

/// How queries, keys and values are projected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Projection {
    /// Three projections, each split into heads before the next.
    Separate,
    /// Three projections, all before the first is split into heads.
    SeparateThenSplit,
    /// Three projections; the query comes first and is scaled by itself (OPT).
    ScaledQueryFirst,
    /// Three projections; that of queries makes a gate for the result of attention too (Qwen3.5).
    Gated,
    /// Three projections and one of a gate for the result of attention (AFMoE).
    GatedBeside,
    /// One projection, split along its width (Phi-3).
    Fused,
    /// One projection, in which each head has its query, key and value side by side (GPT-NeoX).
    FusedByHead,
    /// One projection; all heads share one key and one value (GPT-BigCode).
    FusedMultiQuery,
}

/// Norms over queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QkNorm {
    None,
    /// Over each head, before heads are transposed with positions.
    PerHead,
    /// Over each head, after that.
    PerHeadTransposed,
    /// By each head's length, behind the rotation, without weights; layers that rotate nothing have none (Llama 4).
    LengthAfterRope,
    /// Over each head, behind the rotation (Hunyuan).
    PerHeadAfterRope,
    /// Over the full projection.
    WholeProjection,
    /// Over each head, before heads are transposed with positions, with weights of its own for each (Command R+).
    PerHeadOwnWeights,
    /// A module of its own for each head (StableLM 2).
    ModulePerHead,
}

/// How attention is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scores {
    /// By `ALL_ATTENTION_FUNCTIONS`.
    Library,
    /// Eagerly unless flash attention is asked for: scores that pass through tanh, which SDPA has not (PaliGemma 2).
    Capped,
    /// Eagerly, with a learned sink for each head next to the scores (GPT-OSS).
    Sinks,
    /// Eagerly in fp32, with the block's own causal mask (GPT-Neo).
    Fp32,
    /// Eagerly, in the block's own function (BLOOM, GPT-J, MPT).
    InBlock,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Mlp {
    pub form: MlpForm,
    pub bias: bool,
    pub activation: Activation,
    /// The mixture of experts that replaces the MLP.
    pub experts: Option<Experts>,
    /// A norm before the last product, by its name (BitNet).
    pub sub_norm: Option<&'static str>,
    /// Hidden states are `[tokens, hidden]` within it (OPT).
    pub flattens_tokens: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MlpForm {
    Gated,
    /// Gate and up are one projection.
    FusedGated,
    /// The same under other names, beside the experts where there are any (Granite 4).
    Shared,
    Plain,
    /// Two matrices around xIELU (Apertus).
    Xielu,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activation {
    Silu,
    Gelu,
    /// `NewGELUActivation`, an operation at a time.
    GeluNew,
    Relu,
    /// `ReLUSquaredActivation`.
    ReluSquared,
}

/// A layer's norms and residuals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Norms {
    pub kind: Norm,
    pub placement: Placement,
    /// `residual_multiplier`: what attention and MLP add is multiplied by a number.
    pub residual_multiplier: bool,
    /// The variable of attention's weights is bound anew to the router's (GPT-OSS).
    pub weights_rebound: bool,
}

/// How a norm is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Norm {
    /// A layer norm whose weight is counted from one (Nemotron).
    LayerFromOne,
    /// RMS norm: fp32 inside, the weight applied in the input's type.
    Llama,
    /// RMS norm: fp32 to the end, one added to the weight.
    Gemma,
    /// RMS norm: fp32 to the end, nothing added to the weight (Gemma 4).
    Gemma4,
    /// RMS norm: fp32 to the end.
    Olmo2,
    /// The same with a copy of the weight in fp32 (Nemotron-H).
    NemotronH,
    /// `nn.LayerNorm`.
    Layer,
    /// `F.layer_norm` in fp32 without weights.
    Unweighted,
    /// A layer norm in Python, fp32 to the end, without bias.
    Cohere,
    /// `nn.LayerNorm` whose bias was taken away (MPT).
    LayerUnbiased,
}

/// Where a layer's norms stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// Before attention and before the MLP.
    Pre,
    /// The same; the attention's output and what each sublayer reads live until they are added (GPT-BigCode).
    PreHolding,
    /// The same; the normed input and the attention's output live to the block's end (StableLM).
    PreNamed,
    /// Before and after each (Gemma 2).
    PreAndPost,
    /// After each, before it is added (OLMo 2).
    Post,
    /// After each sum (OPT-350m).
    PostSum,
    /// One norm for attention and MLP, which run in parallel.
    Parallel {
        residual_first: bool,
    },
    /// A norm for each, which run in parallel (GPT-NeoX).
    ParallelTwoNorms,
    /// In parallel, one norm or two by the generation (Falcon).
    Falcon,
    /// One part a layer behind one norm: attention, a mixer, an MLP or experts (Nemotron-H).
    Single,
    /// Attention and Mamba 2 side by side behind one norm (Falcon-H1).
    BesideMamba,
    /// The blocks of older files, each with its own variables.
    Bloom,
    GptJ,
    Mpt,
}

/// From the last hidden states to the loss.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a yes or no about a published model.
pub(super) struct Head {
    pub bias: bool,
    /// `final_logit_softcapping`.
    pub softcap: bool,
    /// `logits_scaling`, `logit_scale`.
    pub scaled: bool,
    /// `lm_head(hidden_states).float()`: logits in the model's type are gone before the loss (Nemotron-H).
    pub wide: bool,
    /// Old versions take the cross-entropy of shifted logits in the model's own type.
    pub loss_in_model_dtype: bool,
}

/// The order in which constructors make a layer's modules, where forward uses them in another.
#[derive(Clone, Copy, Debug)]
pub(super) struct InitOrder {
    /// Attention, then the MLP, then the norms.
    pub norms_last: bool,
    /// Attention makes `o_proj` before `qkv_proj`.
    pub o_proj_first: bool,
}

/// Where published configurations drop out, each with the same rate.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a yes or no about a published model.
pub(super) struct Dropout {
    pub embeddings: bool,
    pub attention: bool,
    /// On what attention and MLP return, inside them.
    pub in_sublayers: bool,
    /// On the same, in the layer.
    pub in_layer: bool,
}

impl Dropout {
    pub(crate) const NONE: Self = Self {
        embeddings: false,
        attention: false,
        in_sublayers: false,
        in_layer: false,
    };
}

/// What sets a family's mixture of experts apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Experts {
    /// The weights of a token's experts are divided by their sum.
    pub norm_topk_prob: bool,
    pub router: Router,
    pub shared: SharedExpert,
    /// Matrices of experts have biases, are transposed, and alternate gate and up (GPT-OSS).
    pub bias: bool,
    /// The router's correction bias is made in fp32 whatever the model's type (GLM-4.5).
    pub fp32_correction: bool,
}

impl Experts {
    pub(crate) const PLAIN: Self = Self {
        norm_topk_prob: false,
        router: Router::Softmax,
        shared: SharedExpert::None,
        bias: false,
        fp32_correction: false,
    };
}

/// How a token's experts and their weights are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Router {
    /// A softmax whose weights take the type of the logits.
    Softmax,
    /// The same by a linear layer within the router (Hunyuan).
    SoftmaxInside,
    /// A softmax in the type of the logits, restricted to the groups with the best experts (Mistral 4).
    SoftmaxOfBestGroups,
    /// A softmax whose weights stay in fp32 (Mixtral).
    SoftmaxFp32,
    /// A softmax in fp32, restricted to the groups with the best experts (DeepSeek V2).
    SoftmaxOfGroups,
    /// A softmax over the logits of the chosen experts alone (GPT-OSS).
    SoftmaxOfChosen,
    /// The same over fp32 copies of the logits, without a bias (Granite).
    SoftmaxOfChosenFp32,
    /// Sigmoids with a correction bias and no groups: in fp32 (MiniMax-M2).
    Sigmoid,
    /// The same in the type of the logits (LFM2-MoE).
    SigmoidInModelType,
    /// Sigmoids in fp32 with a correction bias of the block, which no gradient reaches (AFMoE).
    SigmoidOfBlock,
    /// Sigmoids with a correction bias, restricted to the best groups (DeepSeek V3).
    SigmoidOfGroups,
    /// All experts are given all tokens (Llama 4).
    EveryExpert,
    /// Two experts, drawn one after the other from those near the best (Phi-3.5-MoE).
    SparseMixer,
    /// A softmax in fp32 whatever autocast says, with a correction bias (ERNIE 4.5).
    CorrectedSoftmax,
}

/// An MLP for every token, in addition to the experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SharedExpert {
    None,
    /// Before the experts, behind a gate (Qwen2-MoE).
    Gated,
    /// After the experts (DeepSeek).
    AfterExperts,
    /// Before the experts, without a gate, by its name (ERNIE 4.5, Hunyuan).
    BeforeExperts(&'static str),
    /// Between the router and the experts (AFMoE).
    BehindRouter,
    /// The layer's own module after the experts (Granite 4).
    BesideExperts,
}
