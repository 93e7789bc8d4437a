//! What the words of a record mean: precision, optimizer, adapters.

use serde_json::Value;

use super::peft;
use headroom_scenario::{Lora, Optimizer, Precision};

pub(super) fn precision(text: &str) -> Result<Precision, String> {
    Ok(match text {
        "fp32" => Precision::Fp32,
        _ if text.starts_with("bfloat16 weights + bf16 autocast") => Precision::AmpBf16OnBf16,
        _ if text.starts_with("bfloat16 weights") => Precision::Bf16,
        // The same bytes in either half precision.
        _ if text.starts_with("float16 weights + fp16 autocast") => Precision::AmpBf16OnBf16,
        _ if text.starts_with("float16 weights") => Precision::Fp16,
        _ if text.starts_with("bf16 amp")
            || text.starts_with("bf16 autocast")
            // Sharded in fp32 and computed in bf16, as autocast would.
            || text.contains("fp32 params")
            || text.contains("fp32 sharded params") =>
        {
            Precision::AmpBf16
        }
        _ if text.starts_with("fp16 amp")
            || text.starts_with("fp16 autocast")
            || text.starts_with("fp16/bf16 amp") =>
        {
            Precision::AmpFp16
        }
        _ if text.starts_with("bf16") || text.starts_with("pure bf16") => Precision::Bf16,
        other => return Err(format!("the precision `{other}` is not modelled")),
    })
}

pub(super) fn optimizer(text: &str) -> Result<Optimizer, String> {
    Ok(
        if text.contains("pagedadamw") || text.contains("paged adamw") {
            Optimizer::PagedAdamW
        } else if text.contains("bnb adamw8bit")
            || text.contains("bnb adam8bit")
            || text.contains("8-bit adamw")
        {
            Optimizer::AdamW8bit
        } else if text.contains("torchao adamw8bit") {
            Optimizer::AdamW8bitAo
        } else if text.contains("adamwfp8") {
            Optimizer::AdamWFp8Ao
        } else if text.contains("4bit") || text.contains("4-bit") {
            Optimizer::AdamW4bitAo
        } else if text.contains("adafactor") {
            Optimizer::AdafactorHf
        } else if text.contains("sgd") && text.contains("no momentum") {
            Optimizer::Sgd
        } else if text.starts_with("sgd") {
            Optimizer::SgdMomentum
        } else if text.contains("fused") && !text.contains("foreach") {
            Optimizer::AdamWFused
        } else if text == "adamw (hf)" {
            // transformers' own, one tensor after the other.
            Optimizer::AdamWLoop
        } else if text.contains("adam") {
            Optimizer::AdamW
        } else {
            return Err(format!("the optimizer `{text}` is not modelled"));
        },
    )
}

/// What ran beside the training of the named model, or was done to it, that no scenario says.
pub(super) fn unsaid(task: &str, other: &str) -> Result<(), String> {
    if task.contains("quantized moe experts") {
        return Err("experts that the trainer itself quantises are not modelled".into());
    }
    let encodes = other.contains("online") || other.contains("encode");
    if other.contains("vae") && encodes && !other.contains("pre-computed") {
        return Err("an autoencoder that runs in the same loop is not modelled".into());
    }
    Ok(())
}

/// The adapters that a task names, in words or as PEFT's settings.
pub(super) fn adapters(task: &str) -> Result<Option<Lora>, String> {
    let lower = task.to_lowercase();
    let kind = lower.split([' ', '{']).next().unwrap_or_default();
    if let Some(json) = task.find('{').and_then(|at| task.get(at..)) {
        let given: Value = serde_json::from_str(json)
            .map_err(|_| "the adapter's settings cannot be read".to_string())?;
        return peft::adapters(kind, &given);
    }
    match kind {
        "full" | "full," | "pretrain" | "pretrain/full" | "llama-adapter" | "adapter" => {
            return Ok(None);
        }
        "lora" | "qlora" | "gptq-lora" => {}
        other => return Err(format!("`{other}` is not modelled")),
    }
    let after = |mark: &str| lower.split_once(mark).map(|(_, rest)| rest);
    let number = |mark: &str| {
        after(mark).and_then(|rest| {
            let end = rest
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .unwrap_or(rest.len());
            rest.get(..end)
                .and_then(|digits| digits.parse::<f64>().ok())
        })
    };
    let named = after("targets=")
        .or_else(|| after(" on "))
        .unwrap_or_default();
    let mut targets: Vec<String> = Vec::new();
    for word in named.split([' ', ',', '+', ';']) {
        let names: &[&str] = match word {
            "query" | "q" => &["q_proj"],
            "key" | "k" => &["k_proj"],
            "value" | "v" => &["v_proj"],
            "projection" | "o" => &["o_proj"],
            "mlp" => &["gate_proj", "up_proj", "down_proj"],
            "head" => &["lm_head"],
            // Qwen of 2023: `c_proj` is the last product of attention and of the feed-forward part.
            "c_attn" => &["c_attn"],
            "c_proj" => &["o_proj", "down_proj"],
            "w1" => &["up_proj"],
            "w2" => &["gate_proj"],
            "base" | "quantized" => break,
            _ if word.ends_with("_proj") => {
                targets.push(word.to_string());
                continue;
            }
            _ => continue,
        };
        targets.extend(names.iter().map(|name| (*name).to_string()));
    }
    // "... + trainable wte & lm_head (modules_to_save)"
    let whole = after("+ trainable ").unwrap_or_default();
    let whole = whole.split(" (").next().unwrap_or_default();
    let modules_to_save = whole.split(" & ").filter_map(|name| match name {
        "" => None,
        // Qwen of 2023 again.
        "wte" => Some("embed_tokens"),
        other => Some(other),
    });
    // litgpt keeps its adapters in the base's type; PEFT keeps them in fp32.
    let by_words = lower.contains("query");
    Ok(Some(Lora {
        rank: number("r=").map_or(8, |r| r as u64),
        targets,
        modules_to_save: modules_to_save.map(String::from).collect(),
        dropout: number("dropout=").unwrap_or(0.0),
        fp32_adapters: !by_words,
        ..Lora::default()
    }))
}

/// Learned tokens before each sample. Gated prompts lengthen no sample: a single learned token stands in, from which on
/// activations are kept as theirs are.
pub(super) fn prompt_tokens(task: &str) -> u64 {
    let kind = task.split([' ', '{']).next().unwrap_or_default();
    let given: Value = task
        .find('{')
        .and_then(|at| task.get(at..))
        .and_then(|json| serde_json::from_str(json).ok())
        .unwrap_or_default();
    match kind {
        "prompt_tuning" | "ptuning" => given["num_virtual_tokens"].as_u64().unwrap_or(20),
        "adaptionprompt" => 1,
        _ => 0,
    }
}
