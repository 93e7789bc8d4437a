//! The architectures that kernels of other libraries fit.

/// Decoders in the catalogue whose modules `_apply_liger_kernel_to_instance` replaces, kernels and loss
/// (`MODEL_TYPE_TO_APPLY_LIGER_FN` in liger_kernel/transformers/monkey_patch.py of liger-kernel 0.8.5). Granite's have no fused
/// linear loss.
const PATCHED: &[&str] = &[
    "deepseek_v2",
    "deepseek_v3",
    "gemma",
    "gemma2",
    "gemma3",
    "gemma3_text",
    "gpt_oss",
    "llama",
    "llava",
    "mistral",
    "mixtral",
    "olmo2",
    "paligemma",
    "phi3",
    "qwen2",
    "qwen2_5_vl",
    "qwen2_vl",
    "qwen3",
    "qwen3_moe",
    "smollm3",
];

/// Whether Liger patches models of this architecture.
pub fn has_liger(architecture: &str) -> bool {
    PATCHED.contains(&architecture)
}

/// Decoders whose logits are scaled or capped behind the head (`logit_scale`, `final_logit_softcapping`, `logits_scaling` of
/// their configurations in transformers), which a loss in chunks would have to do too.
const SCALED: &[&str] = &["cohere", "gemma2", "granite"];

/// Whether models of this architecture change their logits behind the head.
pub fn scales_logits(architecture: &str) -> bool {
    SCALED.contains(&architecture)
}
