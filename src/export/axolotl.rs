//! Axolotl: one file for the whole job.

use super::common::{TRAINER_FIXED, causal, file, fixed, hub_name, launch, optim, precision_among};
use super::header::header;
use super::{Files, Target, yaml};
use crate::document::Document;
use crate::estimate::Estimate;
use crate::scenario::{Checkpointing, Precision, Scenario};

pub(super) const TARGET: Target = Target {
    id: "axolotl",
    title: "Axolotl",
    versions: "axolotl 0.21",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let training = &scenario.training;
    let mut problems = fixed(scenario, TRAINER_FIXED);
    problems.extend(causal(scenario));
    // It loads the weights in the format that it computes in.
    let known = [
        Precision::Fp32,
        Precision::Bf16,
        Precision::Fp16,
        Precision::AmpBf16OnBf16,
    ];
    problems.extend(precision_among(scenario, &known));
    let optim = optim(training.optimizer).map_err(|problem| problems.push(problem));
    let (Ok(optim), true) = (optim, problems.is_empty()) else {
        return Err(problems);
    };
    let dataset = Document::new()
        .with("path", "train.jsonl")
        .with("ds_type", "json")
        .with_note("type", "completion", "JSON lines with a \"text\"");
    let mut document = Document::new()
        .with_note(
            "base_model",
            hub_name(scenario),
            "a Hugging Face name or a folder",
        )
        .with("datasets", Document::List(vec![dataset]))
        .with("dataset_prepared_path", "prepared")
        .with("output_dir", "out")
        .with("val_set_size", 0.0)
        .with("sequence_len", scenario.data.sequence)
        .with("sample_packing", false)
        .with("pad_to_sequence_len", true)
        .with("micro_batch_size", scenario.data.micro_batch)
        .with("gradient_accumulation_steps", training.accumulation)
        .with("attn_implementation", training.attention.id());
    document = match training.precision {
        Precision::Bf16 => document.with_note("bfloat16", true, "no autocast"),
        Precision::Fp16 => document.with_note("float16", true, "no autocast"),
        Precision::AmpBf16OnBf16 => document.with_note("bf16", true, "autocast over bf16 weights"),
        _ => document.with("bf16", false),
    };
    let checkpointing = training.checkpointing != Checkpointing::None;
    document = document.with("gradient_checkpointing", checkpointing);
    if checkpointing {
        let reentrant = Document::new().with("use_reentrant", false);
        document = document.with("gradient_checkpointing_kwargs", reentrant);
    }
    if let Some(lora) = &training.lora {
        document = document
            .with("adapter", "lora")
            .with("lora_r", lora.rank)
            .with("lora_alpha", lora.rank.saturating_mul(2))
            .with("lora_dropout", lora.dropout)
            .with("lora_target_modules", lora.targets.clone())
            .with_note(
                "lora_mlp_kernel",
                false,
                "its own kernels need less than predicted",
            )
            .with("lora_qkv_kernel", false)
            .with("lora_o_kernel", false);
    }
    let document = document
        .with("optimizer", optim)
        .with_note(
            "max_grad_norm",
            if training.clip { 1.0 } else { 0.0 },
            "0: no clipping",
        )
        .with_note(
            "learning_rate",
            2e-5,
            "yours to choose, as are the lines below",
        )
        .with("lr_scheduler", "cosine")
        .with("max_steps", 100_u64)
        .with("logging_steps", 10_u64)
        .with("save_strategy", "no");
    let header = header(&TARGET, scenario, estimate);
    let config = yaml::write(&document);
    let gpus = scenario.hardware.gpus.to_string();
    let mut words = vec!["axolotl", "train", "axolotl.yaml"];
    if scenario.hardware.gpus > 1 {
        words.extend(["--launcher", "torchrun", "--", "--nproc-per-node", &gpus]);
    }
    Ok(vec![
        file("axolotl.yaml", format!("{header}{config}")),
        launch(&header, scenario, &words),
    ])
}
