//! TRL's command line: `trl sft`, one file for the whole job.

use super::common::{
    TRAINER_FIXED, causal, file, fixed, hub_name, launch, optim, precision_among,
    training_arguments, weights,
};
use super::header::header;
use super::{Files, Target, accelerate, yaml};
use crate::document::{Document, Entry};
use crate::estimate::Estimate;
use crate::scenario::{Precision, Scenario};

pub(super) const TARGET: Target = Target {
    id: "trl",
    title: "TRL (trl sft)",
    versions: "trl 1.0 to 1.16; from 1.7 on it computes the loss in chunks and needs less than predicted",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let training = &scenario.training;
    let mut problems = fixed(scenario, TRAINER_FIXED);
    problems.extend(causal(scenario));
    // Without bf16 or fp16 in its file, TRL turns bf16 on.
    let known = [
        Precision::Fp32,
        Precision::AmpBf16,
        Precision::AmpFp16,
        Precision::Bf16,
        Precision::AmpBf16OnBf16,
    ];
    problems.extend(precision_among(scenario, &known));
    let optim = optim(training.optimizer).map_err(|problem| problems.push(problem));
    let (Ok(optim), true) = (optim, problems.is_empty()) else {
        return Err(problems);
    };
    let header = header(&TARGET, scenario, estimate);
    let mut document = Document::new()
        .with_note(
            "model_name_or_path",
            hub_name(scenario),
            "a Hugging Face name or a folder",
        )
        .with("dtype", weights(training.precision))
        .with("attn_implementation", training.attention.id())
        .with_note(
            "dataset_name",
            "data",
            "a name, or a folder with train.jsonl",
        )
        .with("max_length", scenario.data.sequence)
        .with_note(
            "packing",
            !scenario.data.padding_mask,
            "true: no batch has padding",
        );
    if !scenario.data.padding_mask {
        // The other strategies run attention over pieces, which takes other kernels.
        document = document.with("packing_strategy", "wrapped");
    }
    if let Some(lora) = &training.lora {
        document = document
            .with("use_peft", true)
            .with("lora_r", lora.rank)
            .with("lora_alpha", lora.rank.saturating_mul(2))
            .with("lora_dropout", lora.dropout)
            .with("lora_target_modules", lora.targets.clone());
    }
    let mut entries: Vec<Entry> = Vec::new();
    for part in [document, training_arguments(scenario, optim)] {
        if let Document::Map(more) = part {
            entries.extend(more);
        }
    }
    let config = yaml::write(&Document::Map(entries));
    let mut files = vec![file("sft.yaml", format!("{header}{config}"))];
    let mut words = vec!["trl", "sft", "--config", "sft.yaml"];
    if scenario.hardware.gpus > 1 {
        let launcher = accelerate::config(scenario);
        files.push(file("accelerate.yaml", format!("{header}{launcher}")));
        words.extend(["--accelerate_config", "accelerate.yaml"]);
    }
    files.push(launch(&header, scenario, &words));
    Ok(files)
}
