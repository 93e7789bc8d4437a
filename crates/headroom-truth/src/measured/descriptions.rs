//! Precision, optimizer and adapters from a record's free text.

use super::Text;
use crate::adapters::{self, Adapters};
use crate::record::{parse, read};
use headroom_scenario::{AdapterMethod, Lora, Optimizer, Precision};

pub(super) fn precision(text: &str) -> Result<Precision, String> {
    Ok(match text {
        // The same bytes, whichever units multiply them.
        "fp32" | "fp32 (tf32 matmul on)" => Precision::Fp32,
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

pub(super) fn optimizer(text: &Text) -> Result<Optimizer, String> {
    let named: [(&[&str], Optimizer); 6] = [
        (&["pagedadamw", "paged adamw"], Optimizer::PagedAdamW),
        (
            &[
                "bnb adamw8bit",
                "bnb adam8bit",
                "8-bit adamw",
                "8-bit bitsandbytes",
            ],
            Optimizer::AdamW8bit,
        ),
        (&["torchao adamw8bit"], Optimizer::AdamW8bitAo),
        (&["adamwfp8"], Optimizer::AdamWFp8Ao),
        (&["4bit", "4-bit"], Optimizer::AdamW4bitAo),
        (&["adafactor"], Optimizer::AdafactorHf),
    ];
    if let Some((_, optimizer)) = named.iter().find(|(names, _)| text.contains_any(names)) {
        return Ok(*optimizer);
    }
    Ok(match &**text {
        sgd if sgd.contains("sgd") && sgd.contains("no momentum") => Optimizer::Sgd,
        sgd if sgd.starts_with("sgd") => Optimizer::SgdMomentum,
        fused if fused.contains("fused") && !fused.contains("foreach") => Optimizer::AdamWFused,
        // transformers' own, one tensor after the other.
        "adamw (hf)" => Optimizer::AdamWLoop,
        adam if adam.contains("adam") => Optimizer::AdamW,
        lion if lion.ends_with("lion") => Optimizer::Lion,
        other => return Err(format!("the optimizer `{other}` is not modelled")),
    })
}

/// Refuses runs with parts that no setting expresses.
pub(super) fn not_in_scenario(task: &Text, other: &Text) -> Result<(), String> {
    if task.contains("quantized moe experts") {
        return Err("experts that the trainer itself quantises are not modelled".into());
    }
    let encodes = other.contains_any(&["online", "encode"]);
    if other.contains("vae") && encodes && !other.contains("pre-computed") {
        return Err("an autoencoder that runs in the same loop is not modelled".into());
    }
    Ok(())
}

/// Trained parameters that a task adds to the model.
#[derive(Debug, Default)]
pub(super) struct Adapted {
    pub lora: Option<Lora>,
    /// Learned tokens before each sample.
    pub prompt_tokens: u64,
}

/// The adapters that a task describes, in prose or as PEFT's settings.
pub(super) fn adapters(task: &Text, id: &str) -> Result<Adapted, String> {
    let kind = task.split([' ', '{']).next().unwrap_or_default();
    if let Some(json) = (task.written.find('{')).and_then(|at| task.written.get(at..)) {
        let settings = parse(json).and_then(|settings| read(&settings));
        let settings = settings.map_err(|_| "the adapter's settings cannot be read".to_string())?;
        return peft(kind, &settings, id);
    }
    match kind {
        "full" | "full," | "pretrain" | "pretrain/full" | "llama-adapter" | "adapter" => {
            return Ok(Adapted::default());
        }
        "lora" | "qlora" | "gptq-lora" => {}
        other => return Err(format!("`{other}` is not modelled")),
    }
    let after = |mark: &str| task.split_once(mark).map(|(_, rest)| rest);
    let number = |mark: &str| {
        let rest = after(mark)?;
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let digits = rest.get(..end.unwrap_or(rest.len()))?;
        digits.parse::<f64>().ok()
    };
    let named = after("targets=").or_else(|| after(" on "));
    let mut targets = Vec::new();
    for term in named.unwrap_or_default().split([' ', ',', '+', ';']) {
        let names = match term {
            "query" | "q" => "q_proj",
            "key" | "k" => "k_proj",
            "value" | "v" => "v_proj",
            "projection" | "o" => "o_proj",
            "mlp" => "gate_proj up_proj down_proj",
            "head" => "lm_head",
            // Qwen of 2023: `c_proj` is the last product of attention and of the feed-forward part.
            "c_attn" => "c_attn",
            "c_proj" => "o_proj down_proj",
            "w1" => "up_proj",
            "w2" => "gate_proj",
            "base" | "quantized" => break,
            _ if term.ends_with("_proj") => term,
            _ => continue,
        };
        targets.extend(adapters::names(names));
    }
    // "... + trainable wte & lm_head (modules_to_save)"
    let modules = after("+ trainable ").unwrap_or_default();
    let modules = modules.split(" (").next().unwrap_or_default();
    let modules_to_save = modules.split(" & ").filter_map(|name| match name {
        "" => None,
        // Qwen of 2023 again.
        "wte" => Some("embed_tokens"),
        other => Some(other),
    });
    let lora = Lora {
        rank: number("r=").map_or(8, |r| r as u64),
        targets,
        modules_to_save: modules_to_save.map(String::from).collect(),
        dropout: number("dropout=").unwrap_or(0.0),
        // litgpt, which writes "query", keeps its adapters in the base's type; PEFT keeps them in fp32.
        fp32_adapters: !task.contains("query"),
        ..Lora::default()
    };
    Ok(Adapted {
        lora: Some(lora),
        prompt_tokens: 0,
    })
}

/// Settings of PEFT's methods that its comparison of them names in the record's id alone, and FRoD of pictures, whose record does not say
/// whether base weights wait on the host (`runtime_offload_base_weight`).
const VARIANTS_NOT_MODELLED: [&str; 3] = ["vector-paths", "sparse0.02", "flux2klein_frod"];

/// A method's name and its settings, as PEFT's own comparison of methods writes them.
fn peft(kind: &str, settings: &Adapters, id: &str) -> Result<Adapted, String> {
    if let Some(variant) = VARIANTS_NOT_MODELLED
        .iter()
        .find(|name| id.contains(**name))
    {
        return Err(format!("`{kind}` with `{variant}` is not modelled"));
    }
    let settings = &Adapters {
        para: id.ends_with("-para"),
        ..settings.clone()
    };
    if settings.use_bdlora.is_some() && settings.r.is_none() {
        return Err("this variant of LoRA is not modelled".into());
    }
    let prompt_tokens = match kind {
        "prompt_tuning" | "ptuning" => settings.n.unwrap_or(20),
        // Gated prompts lengthen no sample: a single learned token replaces them, behind which activations are kept as theirs are.
        "adaptionprompt" => 1,
        _ => 0,
    };
    let lora = match adapters::method(kind) {
        _ if prompt_tokens > 0 => None,
        // The settings do not state OSF's rank.
        None | Some(AdapterMethod::Osf) => return Err(format!("`{kind}` is not modelled")),
        Some(method) => Some(settings.lora(method)),
    };
    Ok(Adapted {
        lora,
        prompt_tokens,
    })
}
