//! Further optimizers, adapters, losses, kernels and ways to recompute: knobs with a `feature` and its `fk`.

use super::adapters;
use super::knobs::{FeatureKnobs, Knobs};
use super::record::refuse;
use headroom_scenario::{
    AdapterMethod, Checkpointing, Compile, Kernels, LossKernel, LowPrecision, Optimizer, Precision,
    Quantization, Training,
};

pub fn optimizer(knobs: &Knobs) -> Result<Optimizer, String> {
    let FeatureKnobs { rank, og, .. } = knobs.fk;
    let name = knobs.optim.as_str();
    Ok(match name {
        // A compiled step makes no lists of temporaries, as the fused kernel makes none.
        "adamw" if knobs.opt_compile => Optimizer::AdamWFused,
        "" | "ao_adamw" => Optimizer::AdamWFused,
        "adam" => Optimizer::AdamW,
        // LoRA-FA keeps Adam's states for each second matrix (peft/optimizers/lorafa.py).
        "lorafa" => Optimizer::AdamWLoop,
        "sgdm" => Optimizer::SgdMomentum,
        "lion_pytorch" => Optimizer::LionLoop,
        "muon_mix" => Optimizer::MuonAdamW,
        "ao_adamw8bit" => Optimizer::AdamW8bitAo,
        "ao_adamw4bit" => Optimizer::AdamW4bitAo,
        "ao_adamwfp8" => Optimizer::AdamWFp8Ao,
        "ao_cpuoffload" if og => Optimizer::AdamWOffloadGradients,
        "ao_cpuoffload" => Optimizer::AdamWOffload,
        "schedulefree" => Optimizer::ScheduleFree,
        "stableadamw" => Optimizer::StableAdamW,
        "galore8" => Optimizer::GaLore8bit,
        "galore_ada" => Optimizer::GaLoreAdafactor,
        "apollo" if rank == Some(128) => Optimizer::Apollo128,
        "apollo" if rank.is_some_and(|rank| rank != 256) => {
            return Err("APOLLO of this rank is not modelled".into());
        }
        _ => bitsandbytes(name)
            .or_else(|| {
                let own = name.trim_start_matches("po_").to_lowercase();
                Optimizer::from_id(&own.replace('_', "-"))
            })
            .ok_or_else(|| format!("optimizer `{name}` is not known"))?,
    })
}

/// `bnb_PagedAdamW8bit` is "adamw-paged-8bit", `bnb_AdamW32bit` is "adamw-bnb".
fn bitsandbytes(name: &str) -> Option<Optimizer> {
    let name = name.strip_prefix("bnb_")?.to_lowercase();
    let kind = name
        .trim_start_matches("paged")
        .trim_end_matches("8bit")
        .trim_end_matches("32bit");
    let bits = if name.ends_with("8bit") { "-8bit" } else { "" };
    let suffix = match (kind, name.starts_with("paged"), bits) {
        (_, true, _) => "-paged",
        ("ademamix", ..) | (_, _, "-8bit") => "",
        _ => "-bnb",
    };
    let kind = if kind == "adam" { "adamw" } else { kind };
    Optimizer::from_id(&format!("{kind}{suffix}{bits}"))
}

pub fn apply(knobs: &Knobs, training: &mut Training) -> Result<(), String> {
    let fk = &knobs.fk;
    let has_no_options = *fk == FeatureKnobs::default();
    match knobs.feature.as_str() {
        "" => {}
        "optim_in_bwd" => training.optimizer_in_backward = true,
        "lora" | "qlora" => {
            training.lora = Some(fk.adapters.recorded(AdapterMethod::Lora));
            if knobs.feature == "qlora" {
                training.quantization = quantization(fk)?;
                if let Some(lora) = &mut training.lora {
                    // torchtune's layers make adapters in the model's type.
                    lora.fp32_adapters &= training.quantization != Quantization::Nf4Ao;
                }
                // Records with a number of bits are of a model that `prepare_model_for_kbit_training` has cast to fp32
                // but for what is quantised.
                if fk.bits.is_some() && fk.prep != Some(false) {
                    training.precision = Precision::Fp32;
                }
            }
        }
        "peft" => peft(fk, training)?,
        "bitfit" => training.train_only = adapters::names("bias norm"),
        "int8" => {
            training.low_precision = match fk.kind.as_str() {
                "mp" => LowPrecision::Int8Mixed,
                "bitnet" => LowPrecision::BitNet,
                other => {
                    return Err(format!("int8 training of kind `{other}` is not modelled"));
                }
            };
        }
        "mxfp8" if has_no_options => training.low_precision = LowPrecision::MxFp8,
        "nvfp4" if has_no_options => training.low_precision = LowPrecision::NvFp4,
        "float8" => match fk.recipe.as_str() {
            "tensorwise" => training.fp8 = true,
            "rowwise" => training.low_precision = LowPrecision::Rowwise,
            "rowwise_with_gw_hp" => training.low_precision = LowPrecision::RowwiseHigh,
            other => return Err(format!("float8 by the recipe `{other}` is not modelled")),
        },
        "qat" if has_no_options => training.qat = true,
        "compile" if has_no_options => training.compile = Compile::Model,
        "chunked_ce" => {
            training.loss_chunks = fk.adapters.n.unwrap_or(8);
            training.loss = match fk.style.as_str() {
                "ckpt" => LossKernel::ChunkedCheckpoint,
                "bf16logits" => LossKernel::ChunkedLoss,
                "plain" | "head" | "" | "chunk" | "linear" => LossKernel::ChunkedHead,
                other => return Err(format!("chunks of the style `{other}` are not known")),
            };
        }
        "sac" => {
            training.checkpointing = match fk.mode.as_str() {
                "full" => Checkpointing::Layers,
                "save_mm" => Checkpointing::KeepMatmuls,
                "op" => Checkpointing::KeepHalf,
                "attn" | "save_attn" | "attention" | "sdpa" | "save_sdpa" => {
                    Checkpointing::KeepAttention
                }
                other => return Err(format!("selective checkpointing `{other}` is not known")),
            };
            training.checkpoint_every = fk.every.unwrap_or(1);
        }
        "save_on_cpu" => training.checkpointing = Checkpointing::Offload,
        "liger" => {
            training.kernels = Kernels::Liger;
            training.loss = match (fk.fused_linear_cross_entropy, fk.cross_entropy) {
                (Some(false), true) => LossKernel::Liger,
                (Some(false), false) => LossKernel::Library,
                _ => LossKernel::LigerLinear,
            };
        }
        other => return Err(format!("the feature `{other}` is not modelled")),
    }
    if let Some(lora) = training.lora.as_mut().filter(|_| knobs.optim == "lorafa") {
        // The optimizer's constructor freezes the first matrices.
        lora.method = AdapterMethod::LoraFa;
    }
    Ok(())
}

fn quantization(fk: &FeatureKnobs) -> Result<Quantization, String> {
    Ok(match (fk.lib.as_str(), fk.bits) {
        ("bnb" | "", None | Some(4)) if fk.dq == Some(false) => Quantization::Nf4,
        ("bnb" | "", None | Some(4)) => Quantization::Nf4Double,
        ("ao" | "torchao", None | Some(4)) => Quantization::Nf4Ao,
        ("", Some(8)) => Quantization::Int8,
        ("gptq", None) => Quantization::Gptq,
        ("awq", None) => Quantization::Awq,
        ("aqlm", None) => Quantization::Aqlm,
        (other, _) => return Err(format!("quantisation by `{other}` is not modelled")),
    })
}

/// One of PEFT's methods.
fn peft(fk: &FeatureKnobs, training: &mut Training) -> Result<(), String> {
    refuse(&fk.rest, &["use_rslora"])?;
    if matches!(fk.kind.as_str(), "prompt" | "ptuning") {
        training.prompt_tokens = fk.adapters.n.unwrap_or(20);
        if fk.kind == "ptuning" {
            training.prompt_hidden = fk.eh.unwrap_or(128);
        }
        return Ok(());
    }
    let method = adapters::method(&fk.kind)
        .ok_or_else(|| format!("adapters of the kind `{}` are not modelled", fk.kind))?;
    let mut lora = fk.adapters.recorded(method);
    lora.fp32_adapters = fk.autocast_adapter_dtype != Some(false);
    training.lora = Some(lora);
    Ok(())
}
