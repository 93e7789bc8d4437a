//! Models by their repositories.

use headroom_catalog::{self as catalog, ModelEntry};

/// The catalogue's entry of a repository, whose copies by other owners and quantised forms have its sizes.
pub(super) fn listed(name: &str) -> Option<&'static ModelEntry> {
    let name = match name {
        "nousresearch/llama-2-70b-hf" | "thebloke/llama-2-70b-gptq" => "meta-llama/llama-2-70b-hf",
        "techxgenus/meta-llama-3-8b-gptq" => "meta-llama/meta-llama-3-8b",
        "unsloth/mistral-7b-v0.2" => "mistralai/mistral-7b-v0.1",
        "thebloke/mixtral-8x7b-instruct-v0.1-gptq" | "mistralai/mixtral-8x7b-instruct-v0.1" => {
            "mistralai/mixtral-8x7b-v0.1"
        }
        // Tuned further from Mistral Small 3.1, by their model cards.
        "mistralai/devstral-small-2507" | "mistralai/magistral-small-2507" => {
            "mistralai/mistral-small-24b-base-2501"
        }
        "allenai/olmo-3-7b-instruct-sft" => "allenai/olmo-3-1025-7b",
        "arcee-ai/afm-4.5b" => "arcee-ai/afm-4.5b-base",
        "thudm/glm-4-9b-chat" => "zai-org/glm-4-9b-hf",
        other => other,
    };
    catalog::models()
        .iter()
        .find(|entry| entry.hf_id.eq_ignore_ascii_case(name))
}

/// Qwen-1.8B to Qwen-72B of 2023, without those that see.
pub(super) fn first_qwen(name: &str) -> bool {
    name.strip_prefix("qwen/qwen-")
        .is_some_and(|size| size.starts_with(|c: char| c.is_ascii_digit()))
}
