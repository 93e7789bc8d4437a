//! TRL's command line: `trl sft`, one file for the whole job.

use super::common::{file, hub_name, launch};
use super::header::header;
use super::refuse::Layout;
use super::{Files, Target, accelerate, trainer};
use crate::document::Document;
use crate::document::yaml;
use crate::estimate::Estimate;
use crate::scenario::{Precision, Problem, Scenario};

pub(super) const TARGET: Target = Target {
    id: "trl",
    title: "TRL (trl sft)",
    versions: "trl 1.0 to 1.16",
    differs: "from trl 1.7 on the loss is computed in chunks and needs less than predicted",
    write,
};

/// Without bf16 or fp16 in its file, TRL turns bf16 on.
const PRECISIONS: &[Precision] = &[
    Precision::Fp32,
    Precision::AmpBf16,
    Precision::AmpFp16,
    Precision::Bf16,
    Precision::AmpBf16OnBf16,
];

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let training = &scenario.training;
    // Adapters over weights in four bits are made bf16 after PEFT has made them fp32.
    let fp32_adapters = training.lora.as_ref().is_some_and(|it| it.fp32_adapters);
    let four_bits = trainer::four_bits(scenario);
    let mut fixed = [trainer::ADAPTERS, trainer::LIGER].concat();
    if four_bits.is_some() {
        fixed.retain(|path| *path != "training.lora.fp32_adapters");
    }
    let asked = trainer::asked(scenario, &fixed, PRECISIONS, accelerate::LAYOUTS)?;
    if four_bits.is_some() && fp32_adapters {
        let expected = "off with weights in four bits, where this target makes adapters bf16";
        let problem = Problem::new("training.lora.fp32_adapters", "on", expected);
        return Err(vec![problem]);
    }
    let header = header(&TARGET, scenario, estimate);
    let mut document = Document::new()
        .with_note(
            "model_name_or_path",
            hub_name(scenario),
            "a Hugging Face name or a folder",
        )
        .with("dtype", trainer::weights(training.precision))
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
        document = document.with("use_peft", true).and(trainer::peft(lora));
    }
    if let Some(double) = four_bits {
        document = document
            .with("load_in_4bit", true)
            .with("bnb_4bit_quant_type", "nf4")
            .with("use_bnb_nested_quant", double);
    }
    let config = yaml::write(&document.and(trainer::arguments(scenario, &asked)));
    let mut files = vec![file("sft.yaml", format!("{header}{config}"))];
    let mut words = vec!["trl", "sft", "--config", "sft.yaml"];
    if asked.layout != Layout::Single {
        let launcher = accelerate::config(scenario, asked.layout);
        files.push(file("accelerate.yaml", format!("{header}{launcher}")));
        words.extend(["--accelerate_config", "accelerate.yaml"]);
    }
    files.push(launch(&header, scenario, &words));
    Ok(files)
}
