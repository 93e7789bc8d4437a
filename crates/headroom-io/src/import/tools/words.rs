//! These tools' names of number formats.

use super::keys::PRECISION;
use headroom_base::document::Document;
use headroom_scenario::Precision;

/// Autocast and the format of the weights, from several keys.
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
    let is_swift = super::is_swift(document);
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
        // `bf16` is "auto" by default (axolotl/utils/schemas/config.py).
        return Some(Precision::AmpBf16OnBf16);
    }
    given.then_some(precision)
}
