//! Unsloth: the file of `unsloth train`, which leaves few choices.

use super::common::{file, hub_name, launch, processes};
use super::header::header;
use super::{Files, Target, refuse, trainer};
use crate::document::Document;
use crate::document::yaml;
use crate::estimate::Estimate;
use crate::scenario::{
    Attention, Checkpointing, Kernels, LossKernel, Optimizer, Precision, Problem, Scenario,
};

pub(super) const TARGET: Target = Target {
    id: "unsloth",
    title: "Unsloth (unsloth train)",
    versions: "unsloth 2026.10",
    differs: "its adapters' kernels keep less than was counted",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let training = &scenario.training;
    let mut problems = refuse::fixed(
        scenario,
        &[
            trainer::FIXED,
            trainer::ADAPTERS,
            refuse::RARE,
            &["hardware.nodes"],
        ],
    );
    problems.extend(refuse::task(scenario));
    problems.extend(refuse::causal(scenario));
    problems.extend(refuse::nvidia(scenario));
    problems.extend(refuse::quantized(scenario));
    problems.extend(refuse::precision_among(
        scenario,
        &[Precision::AmpBf16OnBf16],
    ));
    let mut expect = |field: &str, value: &str, right: bool, expected: &str| {
        if !right {
            problems.push(Problem::new(field, value, expected));
        }
    };
    let gpus = processes(scenario);
    expect(
        "hardware.gpus",
        &gpus.to_string(),
        gpus == 1,
        "1 for this target",
    );
    let lora = training.lora.as_ref();
    let expected = "on for this target; it trains all weights only by other rules";
    expect("training.lora", "off", lora.is_some(), expected);
    let optimizer = training.optimizer;
    let expected = "adamw-8bit, which is all that this target can do";
    expect(
        "training.optimizer",
        optimizer.id(),
        optimizer == Optimizer::AdamW8bit,
        expected,
    );
    let kernels = training.kernels;
    let expected = "fused-norms for this target";
    expect(
        "training.kernels",
        kernels.id(),
        kernels == Kernels::FusedNorms,
        expected,
    );
    let loss = training.loss;
    let expected = "liger or liger-linear for this target, whose loss is fused";
    let fused = matches!(loss, LossKernel::Liger | LossKernel::LigerLinear);
    expect("training.loss", loss.id(), fused, expected);
    let attention = training.attention;
    expect(
        "training.attention",
        attention.id(),
        attention == Attention::Sdpa,
        "sdpa for this target",
    );
    expect(
        "training.clip",
        "off",
        training.clip,
        "on for this target, which always clips",
    );
    let checkpointing = match training.checkpointing {
        Checkpointing::None => Some("none"),
        Checkpointing::Layers => Some("true"),
        _ => None,
    };
    let id = training.checkpointing.id();
    let expected = "none or layers for this target";
    expect(
        "training.checkpointing",
        id,
        checkpointing.is_some(),
        expected,
    );
    let (Some(lora), Some(checkpointing), true) = (lora, checkpointing, problems.is_empty()) else {
        return Err(problems);
    };
    let document = Document::new()
        .with_note(
            "model",
            hub_name(scenario),
            "a Hugging Face name or a folder",
        )
        .with(
            "data",
            Document::new()
                .with("local_dataset", vec!["train.jsonl".to_string()])
                .with_note("format_type", "raw", "JSON lines with a \"text\""),
        )
        .with(
            "training",
            Document::new()
                .with("training_type", "lora")
                .with("max_seq_length", scenario.data.sequence)
                .with("load_in_4bit", trainer::four_bits(scenario).is_some())
                .with("batch_size", scenario.data.micro_batch)
                .with("gradient_accumulation_steps", training.accumulation)
                .with("gradient_checkpointing", checkpointing)
                .with("packing", !scenario.data.padding_mask)
                .with("max_steps", 100_u64)
                .with("save_steps", scenario.runtime.save_every)
                .with_note("learning_rate", 2e-5, "yours to choose"),
        )
        .with(
            "lora",
            Document::new()
                .with("lora_r", lora.rank)
                .with("lora_alpha", lora.rank.saturating_mul(2))
                .with("lora_dropout", lora.dropout)
                .with("target_modules", lora.targets.join(",")),
        );
    let header = header(&TARGET, scenario, estimate);
    let words = ["unsloth", "train", "--config", "unsloth.yaml"];
    Ok(vec![
        file(
            "unsloth.yaml",
            format!("{header}{}", yaml::write(&document)),
        ),
        launch(&header, scenario, &words),
    ])
}
