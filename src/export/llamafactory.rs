//! LLaMA-Factory: its file and the description of the data.

use super::common::{
    TRAINER_FIXED, causal, file, fixed, hub_name, launch, optim, training_arguments,
};
use super::header::header;
use super::{Files, Target, json, yaml};
use crate::document::{Document, Entry};
use crate::estimate::Estimate;
use crate::scenario::{Attention, Checkpointing, Precision, Problem, Scenario};

pub(super) const TARGET: Target = Target {
    id: "llama-factory",
    title: "LLaMA-Factory",
    versions: "llamafactory 0.9.5",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let training = &scenario.training;
    let mut problems = fixed(scenario, TRAINER_FIXED);
    problems.extend(causal(scenario));
    problems.extend(precision(scenario));
    let optim = optim(training.optimizer).map_err(|problem| problems.push(problem));
    let (Ok(optim), true) = (optim, problems.is_empty()) else {
        return Err(problems);
    };
    let attention = match training.attention {
        Attention::Sdpa => "sdpa",
        Attention::Eager => "disabled",
    };
    let checkpointing = training.checkpointing != Checkpointing::None;
    let packing = !scenario.data.padding_mask;
    let cutoff = scenario.data.sequence.saturating_add(packing.into());
    let mut document = Document::new()
        .with_note(
            "model_name_or_path",
            hub_name(scenario),
            "a Hugging Face name or a folder",
        )
        .with("flash_attn", attention)
        .with("stage", "pt")
        .with("do_train", true)
        .with("dataset", "train")
        .with("dataset_dir", ".")
        .with_note("cutoff_len", cutoff, "packing takes one off")
        .with_note("packing", packing, "true: no batch has padding")
        .with_note(
            "disable_gradient_checkpointing",
            !checkpointing,
            "it is on unless disabled",
        )
        .with("use_reentrant_gc", false)
        .with("pure_bf16", training.precision == Precision::Bf16);
    document = match &training.lora {
        None => document.with("finetuning_type", "full"),
        Some(lora) => document
            .with("finetuning_type", "lora")
            .with("lora_rank", lora.rank)
            .with("lora_alpha", lora.rank.saturating_mul(2))
            .with("lora_dropout", lora.dropout)
            .with("lora_target", lora.targets.join(",")),
    };
    let mut entries: Vec<Entry> = Vec::new();
    for part in [document, training_arguments(scenario, optim)] {
        if let Document::Map(more) = part {
            // Checkpointing has its own words here.
            let keep = |entry: &Entry| !entry.key.starts_with("gradient_checkpointing");
            entries.extend(more.into_iter().filter(keep));
        }
    }
    let columns = Document::new().with("prompt", "text");
    let data = Document::new()
        .with("file_name", "train.jsonl")
        .with("columns", columns);
    let data = json::write(&Document::new().with("train", data));
    let header = header(&TARGET, scenario, estimate);
    let config = yaml::write(&Document::Map(entries));
    let mut words = vec!["llamafactory-cli", "train", "train.yaml"];
    let gpus = format!("NPROC_PER_NODE={}", scenario.hardware.gpus);
    if scenario.hardware.gpus > 1 {
        words.splice(0..0, ["env", "FORCE_TORCHRUN=1", &gpus]);
    }
    Ok(vec![
        file("train.yaml", format!("{header}{config}")),
        file("dataset_info.json", data),
        launch(&header, scenario, &words),
    ])
}

/// It loads weights in the 16-bit format and casts what is trained to fp32, unless told to stay pure.
fn precision(scenario: &Scenario) -> Option<Problem> {
    let training = &scenario.training;
    let known = matches!(
        (training.precision, &training.lora),
        (Precision::Fp32 | Precision::Bf16, _)
            | (Precision::AmpBf16 | Precision::AmpFp16, None)
            | (Precision::AmpBf16OnBf16, Some(_))
    );
    let expected = "for this target fp32 or bf16; for all weights also amp-bf16 or amp-fp16, for adapters amp-bf16-on-bf16";
    (!known).then(|| Problem::new("training.precision", training.precision.id(), expected))
}
