//! Accelerate: its launch file, with the script of the Hugging Face `Trainer`.

use super::common::{file, launch};
use super::header::header;
use super::{Files, Target, hf, yaml};
use crate::document::Document;
use crate::estimate::Estimate;
use crate::scenario::{Precision, Scenario};

pub(super) const TARGET: Target = Target {
    id: "accelerate",
    title: "Accelerate",
    versions: "accelerate 1.7 to 1.15, transformers 4.57 to 5.23, peft where adapters are used",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let header = header(&TARGET, scenario, estimate);
    let mut files = hf::trainer(scenario, &header)?;
    files.push(file(
        "accelerate.yaml",
        format!("{header}{}", config(scenario)),
    ));
    let words = [
        "accelerate",
        "launch",
        "--config_file",
        "accelerate.yaml",
        "train.py",
        "train.yaml",
    ];
    files.push(launch(&header, scenario, &words));
    Ok(files)
}

/// The launcher's own file, which TRL takes too.
pub(super) fn config(scenario: &Scenario) -> String {
    let gpus = scenario.hardware.gpus;
    let mixed = match scenario.training.precision {
        Precision::AmpBf16 | Precision::AmpBf16OnBf16 => "bf16",
        Precision::AmpFp16 => "fp16",
        Precision::Fp32 | Precision::Fp64 | Precision::Bf16 | Precision::Fp16 => "no",
    };
    let kind = if gpus > 1 { "MULTI_GPU" } else { "NO" };
    let document = Document::new()
        .with("compute_environment", "LOCAL_MACHINE")
        .with("distributed_type", kind)
        .with("mixed_precision", mixed)
        .with("num_machines", 1_u64)
        .with("num_processes", gpus)
        .with("machine_rank", 0_u64)
        .with("main_training_function", "main")
        .with("use_cpu", false);
    yaml::write(&document)
}
