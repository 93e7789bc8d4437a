//! ms-swift: one file for `swift sft`.

use super::common::{PLACE_IN_VARIABLES, file, hub_name, launch_on_each, machines};
use super::header::header;
use super::refuse::Layout;
use super::{Files, Target, deepspeed, trainer};
use crate::document::Document;
use crate::document::yaml;
use crate::estimate::Estimate;
use crate::scenario::{Precision, Problem, Scenario};

pub(super) const TARGET: Target = Target {
    id: "swift",
    title: "ms-swift (swift sft)",
    versions: "ms-swift 4.6",
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
    if !scenario.data.padding_mask {
        let expected =
            "on for this target, which pads each batch (its packing takes other attention kernels)";
        let problem = Problem::new("data.padding_mask", "off", expected);
        return Err(vec![problem]);
    }
    let mut document = Document::new()
        .with_note("model", hub_name(scenario), "a name on a hub or a folder")
        .with_note("dataset", "train.jsonl", "JSON lines with \"messages\"")
        .with("torch_dtype", trainer::weights(training.precision))
        .with("attn_impl", training.attention.id())
        .with("max_length", scenario.data.sequence)
        .with("truncation_strategy", "right")
        .with("packing", false);
    document = match &training.lora {
        None => document.with("tuner_type", "full"),
        Some(lora) => document
            .with("tuner_type", "lora")
            .with("lora_rank", lora.rank)
            .with("lora_alpha", lora.rank.saturating_mul(2))
            .with("lora_dropout", lora.dropout)
            .with("target_modules", lora.targets.clone()),
    };
    if let Some(double) = trainer::four_bits(scenario) {
        document = document
            .with("quant_method", "bnb")
            .with("quant_bits", 4_u64)
            .with("bnb_4bit_quant_type", "nf4")
            .with("bnb_4bit_use_double_quant", double);
    }
    if let Layout::Zero(_) = asked.layout {
        document = document.with("deepspeed", deepspeed::FILE);
    }
    let document = document.and(trainer::arguments(scenario, &asked));
    let header = header(&TARGET, scenario, estimate);
    let config = yaml::write(&document);
    let mut files = vec![file("swift.yaml", format!("{header}{config}"))];
    files.extend(deepspeed::beside(scenario, asked.layout));
    let machines = machines(scenario).map_err(|problem| vec![problem])?;
    let each = format!("NPROC_PER_NODE={}", machines.each);
    let nodes = format!("NNODES={}", machines.nodes);
    let words = ["swift", "sft", "swift.yaml"];
    let mut launcher: Vec<&str> = Vec::new();
    if asked.layout != Layout::Single {
        launcher.extend(["env", &each]);
    }
    if machines.nodes > 1 {
        launcher.push(&nodes);
    }
    files.push(launch_on_each(
        &header,
        scenario,
        &launcher,
        PLACE_IN_VARIABLES,
        &words,
    ));
    Ok(files)
}
