//! Transformers' `Trainer`: the YAML of `TrainingArguments` and a short script that reads it.

use super::common::{file, hub_name, launch_alone, launch_torchrun, machines};
use super::header::header;
use super::refuse::Layout;
use super::trainer::Layouts;
use super::{File, Files, Target, adapters, trainer as words};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_core::estimate::Estimate;
use headroom_scenario::{Parallelism, Precision, Problem, Scenario};

pub(super) const TARGET: Target = Target {
    id: "hf",
    title: "Hugging Face Trainer",
    versions: "transformers 4.57 to 5.23, peft where adapters are used",
    differs: "",
    write,
};

/// It shards only with a launcher. Without one it copies the model to every visible GPU.
const LAYOUTS: Layouts = Layouts {
    strategies: &[Parallelism::Ddp, Parallelism::DataParallel],
    details: &[&["parallel.sync_each"], words::COMPILE],
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let header = header(&TARGET, scenario, estimate);
    let (mut files, layout) = trainer(scenario, &header, &LAYOUTS)?;
    if layout == Layout::DataParallel {
        files.push(launch_alone(&header, scenario, &["train.py", "train.yaml"]));
        return Ok(files);
    }
    let machines = machines(scenario).map_err(|problem| vec![problem])?;
    let words = ["train.py", "train.yaml"].map(String::from);
    files.push(launch_torchrun(&header, scenario, &machines, &words));
    Ok(files)
}

/// `train.yaml` and `train.py`, for any launcher that knows these layouts, and the layout.
pub(super) fn trainer(
    scenario: &Scenario,
    header: &str,
    layouts: &Layouts,
) -> Result<(Vec<File>, Layout), Vec<Problem>> {
    // Our own script passes on every option of PEFT.
    let config = words::config(scenario, &[], Precision::ALL, layouts)?;
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
        .with("dtype", words::weights(scenario.training.precision))
        .with("attn_implementation", scenario.training.attention.id());
    if let Some(lora) = &scenario.training.lora {
        document = document
            .with("lora_method", lora.method.id())
            .with("lora_r", lora.rank)
            .with("lora_block", lora.block())
            .with("lora_dropout", lora.dropout)
            .with("lora_target_modules", lora.targets.clone())
            .with("lora_modules_to_save", lora.modules_to_save.clone())
            .with("lora_exclude_modules", lora.exclude.clone())
            .with("lora_fp32", lora.fp32_adapters);
    }
    if let Some(double) = words::four_bits(scenario) {
        document = document
            .with("load_in_4bit", true)
            .with("bnb_4bit_use_double_quant", double);
    }
    let text = yaml::write(&document.and(words::arguments(scenario, &config)));
    let mut files = vec![
        file("train.yaml", format!("{header}{text}")),
        file("train.py", include_str!("train.py").into()),
    ];
    files.extend(adapters::adapter_module(scenario));
    Ok((files, config.layout))
}
