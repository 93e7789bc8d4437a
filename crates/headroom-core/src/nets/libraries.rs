//! Rules of the libraries that models come from, which changed between their releases.

/// What the versions of the libraries do; the default is the newest release of each. The catalogue's table of stacks
/// (`catalog/stacks.yaml`) says when each rule changed and where that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a rule of its own, changed by a release of its own"
)]
pub struct Libraries {
    /// What the loss of a causal language model in transformers copies.
    pub logits: Logits,
    /// Checkpointing is the re-entrant one (transformers before 5.0).
    pub reentrant: bool,
    /// Optimizers of eight bits keep the states of `nn.Embedding` in fp32 (transformers' `Trainer.create_optimizer`).
    pub fp32_embedding_states: bool,
    /// A checkpoint is wrapped around the call of a layer, with what FSDP wraps around the layer (transformers before 4.52).
    pub checkpoint_calls_wrapper: bool,
    /// A mixture's experts are modules that run one after the other (transformers before 5.0).
    pub looped_experts: bool,
    /// Mistral copies keys and values to every query head (transformers before 4.48).
    pub mistral_repeats_keys: bool,
    /// So does every model's (torchtune's `MultiHeadAttention`).
    pub repeats_keys: bool,
    /// GPT-BigCode caches a view of its joint projection, and checkpointing does not turn that off (transformers before
    /// 4.53).
    pub bigcode_keeps_caches: bool,
    /// A four-bit layer keeps its input for a backward that never reads it (bitsandbytes before 0.43).
    pub four_bit_keeps_input: bool,
    /// Four-bit weights have one scale for each output (GPTQ without groups).
    pub four_bit_without_groups: bool,
    /// Liger's fused linear loss casts each chunk of logits up (liger-kernel before 0.5).
    pub linear_loss_upcasts: bool,
    /// Everything trained is cast to fp32 if other weights are frozen (LLaMA-Factory, `model/adapter.py`, but for pure bf16).
    pub trains_in_fp32: bool,
    /// The model is put on the device with its adapters in it, and their buffers go with it.
    pub moves_adapters: bool,
    /// Where layers are compiled, the loss is too (torchtune).
    pub compiles_loss: bool,
    /// What is saved of the model below its head waits on the host, inputs of checkpointed layers among it (torchtune's
    /// `OffloadActivations`).
    pub offloads_activations: bool,
    /// Activations are offloaded by TRL's `OffloadActivations`, which leaves the head alone.
    pub offloads_as_trl: bool,
}

impl Libraries {
    /// The newest release of each library.
    pub const NEWEST: Self = Self {
        logits: Logits::Upcast,
        reentrant: false,
        fp32_embedding_states: false,
        checkpoint_calls_wrapper: false,
        looped_experts: false,
        mistral_repeats_keys: false,
        repeats_keys: false,
        bigcode_keeps_caches: false,
        four_bit_keeps_input: false,
        four_bit_without_groups: false,
        linear_loss_upcasts: false,
        trains_in_fp32: false,
        moves_adapters: false,
        compiles_loss: false,
        offloads_activations: false,
        offloads_as_trl: false,
    };
}

impl Default for Libraries {
    fn default() -> Self {
        Self::NEWEST
    }
}

/// What the loss of a causal language model in transformers copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logits {
    /// The model returns an fp32 copy, and the shift by one token copies it again (before 4.46).
    KeptShifted,
    /// The model returns 16-bit logits; the loss casts them up and copies them once more for the shift (before 4.49).
    Shifted,
    /// One fp32 copy: the labels are shifted, not the logits.
    Upcast,
}
