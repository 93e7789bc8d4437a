//! LLaMA-Factory: its file and the description of the data.

use super::common::{PLACE_IN_VARIABLES, file, hub_name, launch_on_each, machines};
use super::header::header;
use super::refuse::Layout;
use super::{Files, Target, deepspeed, trainer};
use crate::document::{Document, Entry};
use crate::document::{json, yaml};
use crate::estimate::Estimate;
use crate::scenario::{Attention, Checkpointing, Precision, Problem, Scenario};

pub(super) const TARGET: Target = Target {
    id: "llama-factory",
    title: "LLaMA-Factory",
    versions: "llamafactory 0.9.5",
    differs: "",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let training = &scenario.training;
    let asked = trainer::asked(
        scenario,
        trainer::ADAPTERS,
        Precision::ALL,
        &deepspeed::LAYOUTS,
    );
    let asked = trainer::with_one_switch(scenario, asked)?;
    if let Some(problem) = precision(scenario) {
        return Err(vec![problem]);
    }
    let attention = match training.attention {
        Attention::Sdpa => "sdpa",
        Attention::Eager => "disabled",
        Attention::Flash2 => "fa2",
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
    if let Some(double) = trainer::four_bits(scenario) {
        document = document
            .with("quantization_bit", 4_u64)
            .with("quantization_type", "nf4")
            .with("double_quantization", double);
    }
    if asked.liger.is_used() {
        document = document.with("enable_liger_kernel", true);
    }
    if let Layout::Zero(_) = asked.layout {
        document = document.with("deepspeed", deepspeed::FILE);
    }
    let mut document = document.and(trainer::arguments(scenario, &asked));
    if let Document::Map(entries) = &mut document {
        // Checkpointing and Liger have their own words here.
        let own = |entry: &Entry| {
            entry.key.starts_with("gradient_checkpointing") || entry.key == "use_liger_kernel"
        };
        entries.retain(|entry| !own(entry));
    }
    let columns = Document::new().with("prompt", "text");
    let data = Document::new()
        .with("file_name", "train.jsonl")
        .with("columns", columns);
    let data = json::write(&Document::new().with("train", data));
    let header = header(&TARGET, scenario, estimate);
    let config = yaml::write(&document);
    let machines = machines(scenario).map_err(|problem| vec![problem])?;
    let each = format!("NPROC_PER_NODE={}", machines.each);
    let nodes = format!("NNODES={}", machines.nodes);
    let words = ["llamafactory-cli", "train", "train.yaml"];
    let mut launcher: Vec<&str> = Vec::new();
    if asked.layout != Layout::Single {
        launcher.extend(["env", "FORCE_TORCHRUN=1", &each]);
    }
    if machines.nodes > 1 {
        launcher.push(&nodes);
    }
    let mut files = vec![
        file("train.yaml", format!("{header}{config}")),
        file("dataset_info.json", data),
    ];
    files.extend(deepspeed::beside(scenario, asked.layout));
    files.push(launch_on_each(
        &header,
        scenario,
        &launcher,
        PLACE_IN_VARIABLES,
        &words,
    ));
    Ok(files)
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
