//! What these tools' words for optimizers and number formats come to.

use super::keys::PRECISION;
use headroom_base::document::Document;
use headroom_scenario::Precision;

/// The optimizer that transformers call so.
pub fn optimizer(name: &str) -> Option<&'static str> {
    Some(match name {
        "adamw_torch" => "adamw",
        "adamw_torch_fused" => "adamw-fused",
        "sgd" => "sgd",
        "adafactor" => "adafactor-hf",
        "adagrad" => "adagrad",
        "rmsprop" => "rmsprop",
        "adamw_bnb_8bit" | "adamw_8bit" => "adamw-8bit",
        "paged_adamw_32bit" | "paged_adamw" => "adamw-paged",
        "paged_adamw_8bit" => "adamw-paged-8bit",
        "adamw_torch_8bit" => "adamw-8bit-ao",
        "adamw_torch_4bit" => "adamw-4bit-ao",
        "ademamix" => "ademamix",
        "ademamix_8bit" => "ademamix-8bit",
        "paged_ademamix_32bit" => "ademamix-paged",
        "paged_ademamix_8bit" => "ademamix-paged-8bit",
        "lion_32bit" => "lion-bnb",
        "lion_8bit" => "lion-8bit",
        "paged_lion_32bit" => "lion-paged",
        "paged_lion_8bit" => "lion-paged-8bit",
        "rmsprop_bnb" | "rmsprop_bnb_32bit" => "rmsprop-bnb",
        "rmsprop_bnb_8bit" => "rmsprop-8bit",
        "schedule_free_adamw" => "schedule-free",
        "schedule_free_radam" => "schedule-free-radam",
        "schedule_free_sgd" => "schedule-free-sgd",
        "stable_adamw" => "stable-adamw",
        "grokadamw" => "grokadamw",
        "adamw_anyprecision" => "adamw-anyprecision",
        // Layer by layer: the same, stepped in backward.
        "galore_adamw" | "galore_adamw_layerwise" => "galore",
        "galore_adamw_8bit" | "galore_adamw_8bit_layerwise" => "galore-8bit",
        "galore_adafactor" | "galore_adafactor_layerwise" => "galore-adafactor",
        "apollo_adamw" | "apollo_adamw_layerwise" => "apollo-128",
        "lomo" => "lomo",
        "adalomo" => "adalomo",
        _ => return None,
    })
}

/// Autocast or not, over weights of which format: said by several keys together.
pub(super) fn precision(document: &Document, has_adapters: bool) -> Option<Precision> {
    let on = |key: &str| match document.get(key) {
        Some(Document::Bool(value)) => *value,
        Some(Document::Text(value)) => value == "auto" || value == "true",
        _ => false,
    };
    let word = |key: &str| match document.get(key) {
        Some(Document::Text(value)) => value.as_str(),
        _ => "",
    };
    let given = PRECISION.iter().any(|key| document.get(key).is_some());
    let loads = |format: &str| [word("dtype"), word("torch_dtype")].contains(&format);
    let is_axolotl = document.get("base_model").is_some();
    let is_factory = document.get("finetuning_type").is_some();
    let is_swift = document.get("tuner_type").is_some() || document.get("train_type").is_some();
    let bf16_weights = loads("bfloat16") || is_axolotl || (is_factory && has_adapters);
    let precision = if on("bfloat16") || on("pure_bf16") {
        Precision::Bf16
    } else if on("float16") {
        Precision::Fp16
    } else if on("bf16") || word("mixed_precision") == "bf16" {
        if bf16_weights {
            Precision::AmpBf16OnBf16
        } else {
            Precision::AmpBf16
        }
    } else if on("fp16") || word("mixed_precision") == "fp16" {
        Precision::AmpFp16
    } else if loads("bfloat16") {
        Precision::Bf16
    } else if loads("float16") {
        Precision::Fp16
    } else {
        Precision::Fp32
    };
    if is_swift && precision == Precision::Bf16 && loads("bfloat16") {
        // `torch_dtype` loads the weights, and autocast follows it (ms-swift, arguments/base_args/base_args.py).
        return Some(Precision::AmpBf16OnBf16);
    }
    if is_axolotl && !given {
        // `bf16` is "auto" where a file says nothing (axolotl/utils/schemas/config.py).
        return Some(Precision::AmpBf16OnBf16);
    }
    given.then_some(precision)
}
