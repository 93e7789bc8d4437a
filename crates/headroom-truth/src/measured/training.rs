//! How a record's model is trained.

use serde_json::Value;

use super::network::first_qwen;
use super::words::{self, adapters, optimizer, precision};
use super::{diffusion, litgpt, megatron, sources, text, torchtune};
use headroom_scenario::{
    Attention, Checkpointing, Compile, Kernels, LossKernel, Precision, Quantization, Training,
};

pub(super) fn training(record: &Value) -> Result<Training, String> {
    let task = text(record, "task");
    let sharded = text(record, "parallelism").contains("deepspeed");
    let precision = match precision(&text(record, "precision"))? {
        // DeepSpeed casts the model itself.
        Precision::AmpFp16 if sharded => Precision::Fp16,
        // `--bf16 True` of transformers' Trainer is autocast; the model's own file loads it in the type of its configuration.
        Precision::Bf16 if first_qwen(&text(record, "model")) => Precision::AmpBf16OnBf16,
        other => other,
    };
    let low_rank = adapters(record["task"].as_str().unwrap_or_default())?;
    let checkpoints = text(record, "activation_checkpointing");
    let optimizer_text = text(record, "optimizer");
    let other = text(record, "other");
    words::unsaid(&task, &other)?;
    let loss_text = text(record, "fused_or_chunked_ce");
    let in_backward =
        optimizer_text.contains("optimizer_in_bwd=true") || other.contains("optimizer_in_bwd=true");
    let framework = text(record, "framework");
    // transformers of 2022 had no SDPA, nor had timm when torch 2.0 was new.
    let old =
        framework.contains("2022") || text(record, "attention_impl").contains("eager in timm");
    // The records of fms-acceleration quantise twice; GPTQ's scales, 16 bits for each 128 weights, take about as much.
    let twice = framework.contains("fms") || task.contains("nf4-dq");
    let mut training = Training {
        precision,
        optimizer: optimizer(&optimizer_text)?,
        attention: if old {
            Attention::Eager
        } else {
            Attention::Sdpa
        },
        checkpointing: match checkpoints.as_str() {
            // Its presets differ in this.
            "" if framework.starts_with("torchtitan") => {
                return Err("the record does not say what is checkpointed".into());
            }
            "" => Checkpointing::None,
            none if none.starts_with("none") => Checkpointing::None,
            // The attention that Transformer Engine fuses keeps nothing that this would spare.
            "selective: core_attn" | "selective core_attn" => Checkpointing::None,
            "selective" | "selective (op)" => Checkpointing::KeepHalf,
            full if full.starts_with("full") => Checkpointing::Layers,
            other => return Err(format!("checkpointing `{other}` is not modelled")),
        },
        compile: if record["compile"].as_bool() == Some(true)
            && (framework.starts_with("torchtitan") || torchtune::is_record(record))
        {
            // `apply_compile` of torchtitan compiles each block, as torchtune's `compile_model` does.
            Compile::Layers
        } else {
            Compile::Nothing
        },
        accumulation: record["grad_accum"].as_u64().unwrap_or(1).max(1),
        loss: loss(&loss_text),
        optimizer_in_backward: in_backward,
        ema: other.contains("ema copy"),
        kernels: if framework.contains("automodel") {
            // `use_liger_kernel=True` of components/_transformers/auto_model.py is its default.
            Kernels::Liger
        } else if other.contains("rmsnorm / rope kernels") {
            Kernels::FusedNorms
        } else {
            Kernels::Library
        },
        quantization: match task.contains("nf4") || task.contains("gptq") {
            true if twice => Quantization::Nf4Double,
            true => Quantization::Nf4,
            false => Quantization::None,
        },
        // tuning/sft_trainer.py of fms-hf-tuning leaves the models' own setting; most models turn it off where they checkpoint.
        use_cache: framework.contains("fms"),
        // `prepare_model_for_kbit_training` of PEFT; the embeddings and the head it casts up TRL casts down again.
        fp32_norms: other.contains("prepare_model_for_kbit_training"),
        prompt_tokens: words::prompt_tokens(record["task"].as_str().unwrap_or_default()),
        lora: low_rank,
        zero_late: sources::zeroes_late(record),
        ..Training::default()
    };
    if litgpt::is_record(record) {
        litgpt::amend(record, &mut training);
    }
    if megatron::is_record(record) {
        megatron::amend(record, &mut training)?;
    }
    if torchtune::is_record(record) {
        torchtune::amend(record, &mut training)?;
    }
    if diffusion::is_record(record) {
        diffusion::amend(&mut training);
    }
    Ok(training)
}

fn loss(text: &str) -> LossKernel {
    if text.contains("liger fused linear") || text.contains("fusedlinearcrossentropy") {
        LossKernel::LigerLinear
    } else if text.contains("chunkedoutput") || text.contains("chunked ce") {
        // torchtune: the head makes all logits, the loss goes through eight chunks of them.
        LossKernel::ChunkedLoss
    } else if text.contains("triton cross-entropy") {
        LossKernel::Liger
    } else {
        LossKernel::Library
    }
}
