//! Types: mixed precision, what weights are loaded as, quantisation, attention, by the names that programs on transformers share.

use headroom_base::document::Document;

use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::names;
use crate::words::{Attention, Compute, Weights};

/// `bf16`, `fp16`, and the pure types that some programs have beside them.
pub fn amp(keys: &Keys, facts: &mut Facts) {
    let found = read_amp(keys);
    facts.compute = std::mem::take(&mut facts.compute).or(found);
}

fn read_amp(keys: &Keys) -> Fact<Compute> {
    for (key, pure, mixed) in [
        ("bf16", Compute::Bf16, Compute::Bf16Autocast),
        ("fp16", Compute::Fp16, Compute::Fp16Autocast),
    ] {
        match keys.peek(key) {
            Some(Document::Text(text)) if text == "auto" => {
                // `auto` takes bf16 where the GPU has it.
                return Fact::read(mixed, key);
            }
            Some(Document::Text(text)) if text == "full" => return Fact::read(pure, key),
            Some(_) if keys.switch(key).value() == Some(&true) => return Fact::read(mixed, key),
            _ => {}
        }
    }
    for (key, pure) in [
        ("bfloat16", Compute::Bf16),
        ("float16", Compute::Fp16),
        ("pure_bf16", Compute::Bf16),
        ("bf16_full", Compute::Bf16),
    ] {
        if keys.switch(key).value() == Some(&true) {
            return Fact::read(pure, key);
        }
    }
    match keys.text("mixed_precision").value().map(String::as_str) {
        Some("bf16") => Fact::read(Compute::Bf16Autocast, "mixed_precision"),
        Some("fp16") => Fact::read(Compute::Fp16Autocast, "mixed_precision"),
        Some("no") => Fact::read(Compute::Fp32, "mixed_precision"),
        _ => Fact::Unsaid,
    }
}

/// `load_in_4bit`, `load_in_8bit`, and other programs' names for them.
pub fn quantised(keys: &Keys) -> Fact<Weights> {
    let on = |key: &str| keys.switch(key).value() == Some(&true);
    for key in [
        "load_in_4bit",
        "use_4bit_quantization",
        "use_4bit_qunatization",
        "load_4bit",
    ] {
        if on(key) {
            let kind = [
                "bnb_4bit_quant_type",
                "quant_type",
                "bnb_4bit_quantization_type",
            ]
            .iter()
            .find_map(|key| keys.text(key).value().cloned());
            return match kind.as_deref() {
                Some("fp4") => Fact::read(Weights::Fp4, key),
                _ => Fact::read(Weights::Nf4, key),
            };
        }
    }
    for key in [
        "load_in_8bit",
        "use_8bit_quantization",
        "use_8bit_qunatization",
        "load_8bit",
    ] {
        if on(key) {
            return Fact::read(Weights::Int8, key);
        }
    }
    Fact::Unsaid
}

/// A type by any of its names: `bfloat16`, `torch.bfloat16`, `bf16`.
pub fn dtype(name: &str) -> Option<Weights> {
    let plain = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
    Some(match plain.as_str() {
        "bfloat16" | "bf16" => Weights::Bf16,
        "float16" | "fp16" | "half" => Weights::Fp16,
        "float32" | "fp32" | "float" => Weights::Fp32,
        _ => return None,
    })
}

/// `torch_dtype` or `dtype`; `auto` is the checkpoint's own, which is bf16 for what people train today.
pub fn loaded(keys: &Keys) -> Fact<Weights> {
    for key in [
        "torch_dtype",
        "dtype",
        "model_dtype",
        "bnb_4bit_compute_dtype_of_model",
    ] {
        match keys.text(key) {
            Fact::Known { value, .. } if value == "auto" => {
                return Fact::follows(
                    Weights::Bf16,
                    format!("{key}: auto takes the checkpoint's own"),
                );
            }
            Fact::Known { value, .. } if matches!(value.as_str(), "None" | "null") => {
                return Fact::Unsaid;
            }
            Fact::Known { value, .. } => {
                if let Some(found) = dtype(&value) {
                    return Fact::read(found, key);
                }
            }
            Fact::Unknown(why) => return Fact::Unknown(why),
            Fact::Unsaid => {}
        }
    }
    Fact::Unsaid
}

pub fn attention(keys: &Keys) -> Fact<Attention> {
    for key in ["attn_implementation", "_attn_implementation", "attn_impl"] {
        let found = keys.text(key).and_then(|name| {
            Some(match name.as_str() {
                "flash_attention_2" | "flash_attention_3" | "flash_attn" | "fa2" => {
                    Attention::Flash
                }
                name if name.contains("flash") => Attention::Flash,
                "sdpa" => Attention::Sdpa,
                "eager" => Attention::Eager,
                "flex_attention" => Attention::Flex,
                "xformers" => Attention::Xformers,
                _ => return None,
            })
        });
        if !found.is_unsaid() {
            return found;
        }
    }
    for key in [
        "use_flash_attn",
        "use_flash_attention",
        "use_flash_attention_2",
        "flash_attn",
        "use_flash_attn_2",
    ] {
        if keys.switch(key).value() == Some(&true) {
            return Fact::read(Attention::Flash, key);
        }
    }
    Fact::Unsaid
}

/// What the rest decides together: weights of a type that nothing names follow from the engine, the checkpoint, or mixed
/// precision as this program uses it.
pub fn settle(facts: &mut Facts, program: &'static str) {
    use std::mem::take;
    let by_engine = facts.strategy.value().is_some_and(|strategy| {
        use crate::words::DataParallel::{Zero0, Zero1, Zero2, Zero3};
        matches!(strategy.data, Zero0 | Zero1 | Zero2 | Zero3)
    });
    if by_engine {
        // DeepSpeed's engine casts the module to the type of mixed precision, and keeps fp32 copies of its own.
        facts.compute = take(&mut facts.compute).map(|compute| match compute {
            Compute::Bf16Autocast => Compute::Bf16,
            Compute::Fp16Autocast => Compute::Fp16,
            other => other,
        });
    }
    let by_name = facts
        .model
        .value()
        .and_then(|model| names::named(model).weights);
    if let Some(weights) = by_name {
        facts.weights = take(&mut facts.weights).or_follows(weights, "the checkpoint's name");
    }
    let mixed = facts.compute.value().map(|compute| match compute {
        Compute::Bf16 | Compute::Bf16Autocast | Compute::Bf16Fp8 => Weights::Bf16,
        Compute::Fp16 | Compute::Fp16Autocast => Weights::Fp16,
        Compute::Fp32 | Compute::Tf32 => Weights::Fp32,
    });
    if let Some(weights) = mixed {
        facts.weights = take(&mut facts.weights).or_default(weights, program);
    }
}
