//! How a record's model is trained.

use super::descriptions::{Adapted, adapters, not_in_scenario, optimizer, precision};
use super::repository::first_qwen;
use super::{Record, Text, diffusion, litgpt, megatron, sources, torchtune};
use headroom_scenario::{
    Attention, Checkpointing, Compile, Kernels, LossKernel, Precision, Quantization, Training,
};

pub(super) fn training(record: &Record) -> Result<Training, String> {
    let Record {
        framework,
        task,
        other,
        ..
    } = record;
    let precision = match precision(&record.precision)? {
        // DeepSpeed casts the model itself.
        Precision::AmpFp16 if record.parallelism.contains("deepspeed") => Precision::Fp16,
        // `--bf16 True` of transformers' Trainer is autocast; the model's own file loads it in the type of its configuration.
        Precision::Bf16 if first_qwen(&record.model) => Precision::AmpBf16OnBf16,
        other => other,
    };
    let Adapted {
        lora,
        prompt_tokens,
    } = adapters(task, &record.id)?;
    not_in_scenario(task, other)?;
    // transformers of 2022 had no SDPA, nor had timm when torch 2.0 was new.
    let is_old = framework.contains("2022") || record.attention_impl.contains("eager in timm");
    // The records of fms-acceleration quantise twice; GPTQ's scales, 16 bits for each 128 weights, take about as much.
    let quantises_twice = framework.contains("fms") || task.contains("nf4-dq");
    let in_backward = "optimizer_in_bwd=true";
    let compiles_layers = framework.starts_with("torchtitan") || torchtune::is_record(record);
    let mut training = Training {
        precision,
        optimizer: optimizer(&record.optimizer)?,
        attention: if is_old {
            Attention::Eager
        } else {
            Attention::Sdpa
        },
        checkpointing: match &*record.activation_checkpointing {
            // Its presets differ in this.
            "" if framework.starts_with("torchtitan") => {
                return Err("the record does not say what is checkpointed".into());
            }
            "" => Checkpointing::None,
            none if none.starts_with("none") => Checkpointing::None,
            // The attention that Transformer Engine fuses keeps nothing that this would spare.
            "selective: core_attn" | "selective core_attn" => Checkpointing::None,
            "selective" | "selective (op)" => Checkpointing::KeepHalf,
            // SimpleTuner's own.
            own if own.contains("attention activation") => {
                return Err(format!("checkpointing `{own}` is not modelled"));
            }
            some if some.contains(" of every ") => Checkpointing::Layers,
            full if full.starts_with("full") => Checkpointing::Layers,
            other => return Err(format!("checkpointing `{other}` is not modelled")),
        },
        compile: if compiles_layers && record.compile.switch() == Some(true) {
            // `apply_compile` of torchtitan compiles each block, as torchtune's `compile_model` does.
            Compile::Layers
        } else {
            Compile::Nothing
        },
        accumulation: record.grad_accum.number().unwrap_or(1).max(1),
        loss: loss(&record.fused_or_chunked_ce),
        optimizer_in_backward: record.optimizer.contains(in_backward)
            || other.contains(in_backward),
        ema: other.contains_any(&["ema copy", "ema model kept on gpu", "modelema copy"]),
        kernels: if framework.contains("automodel") {
            // `use_liger_kernel=True` of components/_transformers/auto_model.py is its default.
            Kernels::Liger
        } else if other.contains("rmsnorm / rope kernels") {
            Kernels::FusedNorms
        } else {
            Kernels::Library
        },
        quantization: match task.contains_any(&["nf4", "gptq"]) {
            true if quantises_twice => Quantization::Nf4Double,
            true => Quantization::Nf4,
            false if task.contains("base=int8") => Quantization::Int8,
            false => Quantization::None,
        },
        // tuning/sft_trainer.py of fms-hf-tuning leaves the models' own setting; most models turn it off where they checkpoint.
        use_cache: framework.contains("fms"),
        // `prepare_model_for_kbit_training` of PEFT; the embeddings and the head it casts up TRL casts down again.
        fp32_norms: other.contains("prepare_model_for_kbit_training"),
        prompt_tokens,
        lora,
        zero_late: sources::zeroes_late(record),
        ..Training::default()
    };
    if litgpt::is_record(record) {
        litgpt::amend(record, &mut training);
    }
    if megatron::is_record(record) {
        if training.lora.is_some() {
            return Err("adapters under Megatron-Core are not modelled".into());
        }
        megatron::amend(record, &mut training)?;
    }
    if torchtune::is_record(record) {
        torchtune::amend(record, &mut training)?;
    }
    diffusion::amend(record, &mut training);
    Ok(training)
}

fn loss(text: &Text) -> LossKernel {
    if text.contains_any(&["liger fused linear", "fusedlinearcrossentropy"]) {
        LossKernel::LigerLinear
    } else if text.contains("cut_cross_entropy") {
        LossKernel::CutLinear
    } else if text.contains_any(&["chunkedoutput", "chunked ce"]) {
        // torchtune: the head makes all logits, the loss goes through eight chunks of them.
        LossKernel::ChunkedLoss
    } else if text.contains("triton cross-entropy") {
        LossKernel::Liger
    } else {
        LossKernel::Library
    }
}
