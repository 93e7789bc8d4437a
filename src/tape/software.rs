//! Rules that changed between releases of the libraries, as the versions in use have them.

/// What a version does. The default is the newest release of each library; the catalogue's table of stacks
/// (`catalog/stacks.yaml`) says when each rule changed and where that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a rule of its own, changed by a release of its own"
)]
pub struct Software {
    /// Softmax saves its input, not its result alone (torch before 1.11).
    pub softmax_keeps_input: bool,
    /// cuBLAS's workspace stays allocated between calls (torch before 2.5).
    pub keeps_cublas_workspace: bool,
    /// `zero_grad()` writes zeros instead of letting gradients go (torch before 2.0).
    pub zeroes_gradients: bool,
    pub adam: AdamStep,
    pub logits: Logits,
    /// Checkpointing is the re-entrant one (transformers before 5.0).
    pub reentrant: bool,
    /// A four-bit layer keeps its input for a backward that never asks for it (bitsandbytes before 0.43).
    pub four_bit_keeps_input: bool,
    /// Liger's fused linear loss casts each chunk of logits up (liger-kernel before 0.5).
    pub linear_loss_upcasts: bool,
    /// A mixture's experts are modules that run one after the other (transformers before 5.0).
    pub looped_experts: bool,
    /// Mistral copies keys and values to every query head (transformers before 4.48).
    pub mistral_repeats_keys: bool,
    /// What GPT-BigCode caches is a view of its joint product, and checkpointing does not turn it off (transformers before 4.53).
    pub bigcode_keeps_caches: bool,
}

/// How AdamW steps when a script asks for nothing special.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdamStep {
    /// Tensor by tensor (torch before 2.0).
    Loop,
    /// All at once with roots and denominators (torch 2.0).
    TwoLists,
    /// All at once, the denominators in the place of the roots.
    #[default]
    OneList,
}

/// What the loss of a causal language model in transformers copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Logits {
    /// The model returns an fp32 copy, and the shift by one token copies it again (before 4.46).
    KeptShifted,
    /// The model returns 16-bit logits; the loss casts them up and copies them once more for the shift (before 4.49).
    Shifted,
    /// One fp32 copy: the labels are moved, not the logits.
    #[default]
    Upcast,
}

impl Default for Software {
    fn default() -> Self {
        Self {
            softmax_keeps_input: false,
            keeps_cublas_workspace: false,
            zeroes_gradients: false,
            adam: AdamStep::OneList,
            logits: Logits::Upcast,
            reentrant: false,
            four_bit_keeps_input: false,
            linear_loss_upcasts: false,
            looped_experts: false,
            mistral_repeats_keys: false,
            bigcode_keeps_caches: false,
        }
    }
}
