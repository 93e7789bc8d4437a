//! Transformers' `Trainer`: the YAML of `TrainingArguments` and a short script that reads it.

use super::common::{
    self, causal, file, fixed, hub_name, launch, optim, training_arguments, weights,
};
use super::header::header;
use super::{File, Files, Target, yaml};
use crate::document::Document;
use crate::estimate::Estimate;
use crate::scenario::{Problem, Scenario};

pub(super) const TARGET: Target = Target {
    id: "hf",
    title: "Hugging Face Trainer",
    versions: "transformers 4.57 to 5.23, peft where adapters are used",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let header = header(&TARGET, scenario, estimate);
    let mut files = trainer(scenario, &header)?;
    let gpus = scenario.hardware.gpus.to_string();
    let torchrun = ["torchrun", "--standalone", "--nproc-per-node", &gpus];
    let words = [&torchrun[..], &["train.py", "train.yaml"]].concat();
    files.push(launch(&header, scenario, &words));
    Ok(files)
}

/// `train.yaml` and `train.py`, for any launcher.
pub(super) fn trainer(scenario: &Scenario, header: &str) -> Result<Vec<File>, Vec<Problem>> {
    // The script is ours: it passes on what the adapters' library can do.
    let script = ["training.lora.exclude", "training.lora.fp32_adapters"];
    let paths: Vec<&str> = common::TRAINER_FIXED
        .iter()
        .copied()
        .filter(|path| !script.contains(path))
        .collect();
    let mut problems = fixed(scenario, &paths);
    problems.extend(causal(scenario));
    let optim = optim(scenario.training.optimizer).map_err(|problem| problems.push(problem));
    let (Ok(optim), true) = (optim, problems.is_empty()) else {
        return Err(problems);
    };
    let mut document = Document::new()
        .with_note(
            "model_name_or_path",
            hub_name(scenario),
            "a Hugging Face name or a folder",
        )
        .with_note("train_file", "train.jsonl", "JSON lines with a \"text\"")
        .with("max_seq_len", scenario.data.sequence)
        .with_note(
            "join_texts",
            !scenario.data.padding_mask,
            "true: no batch has padding",
        )
        .with("dtype", weights(scenario.training.precision))
        .with("attn_implementation", scenario.training.attention.id());
    if let Some(lora) = &scenario.training.lora {
        document = document
            .with("lora_r", lora.rank)
            .with("lora_alpha", lora.rank.saturating_mul(2))
            .with("lora_dropout", lora.dropout)
            .with("lora_target_modules", lora.targets.clone())
            .with("lora_exclude_modules", lora.exclude.clone())
            .with("lora_fp32", lora.fp32_adapters);
    }
    let (Document::Map(mut entries), Document::Map(more)) =
        (document, training_arguments(scenario, optim))
    else {
        return Err(problems);
    };
    entries.extend(more);
    let config = yaml::write(&Document::Map(entries));
    Ok(vec![
        file("train.yaml", format!("{header}{config}")),
        file("train.py", include_str!("train.py").into()),
    ])
}
