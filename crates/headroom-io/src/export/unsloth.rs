//! Unsloth: the file of `unsloth train`, which allows few choices, and a script for other tasks.

use std::num::NonZero;

use super::common::{file, hub_name, launch, learning_rate, processes};
use super::header::header;
use super::{File, Files, Target, refuse, task, trainer};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_core::estimate::Estimate;
use headroom_scenario::{
    Attention, Checkpointing, Kernels, LmHead, Lora, LossKernel, Objective, Optimizer, Precision,
    Problem, ReferenceDtype, Sampler, Scenario,
};

pub(super) const TARGET: Target = Target {
    id: "unsloth",
    title: "Unsloth (unsloth train, or a script)",
    versions: "unsloth 2026.10",
    differs: "its adapters' kernels, and its own losses in place of TRL's, save less than predicted",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let training = &scenario.training;
    let mut problems = refuse::fixed(
        scenario,
        &[
            trainer::FIXED,
            trainer::ADAPTERS,
            trainer::MODULES_TO_SAVE,
            refuse::RARE,
            refuse::COMPILE,
            &["hardware.nodes"],
        ],
    );
    let goal = &training.task;
    let script = matches!(
        goal.objective,
        Objective::Dpo | Objective::Kto | Objective::Grpo
    );
    if script {
        problems.extend(refuse::adapters(scenario));
        problems.extend(task::head(goal, &[LmHead::Fused]));
        problems.extend(task::reference(scenario, ReferenceDtype::Same));
        problems.extend(task::generations(goal));
    } else {
        problems.extend(refuse::task(scenario));
    }
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
    let expected = "adamw-8bit, the only optimizer that this target has";
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
    expect("training.loss", loss.id(), fused || script, expected);
    if goal.objective == Objective::Grpo {
        let known = matches!(goal.sampler, Sampler::Generate | Sampler::Vllm);
        let expected = "generate or vllm for this target";
        expect("task.sampler", goal.sampler.id(), known, expected);
        let expected = "off for this target";
        expect("task.fp32_head", "on", !goal.fp32_head, expected);
    }
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
    let header = header(&TARGET, scenario, estimate);
    if script {
        return Ok(with_script(scenario, lora, checkpointing, &header));
    }
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
                .with(
                    "save_steps",
                    scenario.runtime.save_every.map_or(0, NonZero::get),
                )
                .with_note("learning_rate", learning_rate(scenario), "yours to choose"),
        )
        .with(
            "lora",
            Document::new()
                .with("lora_r", lora.rank)
                .with("lora_alpha", lora.rank.saturating_mul(2))
                .with("lora_dropout", lora.dropout)
                .with("target_modules", lora.targets.join(",")),
        );
    let words = ["unsloth", "train", "--config", "unsloth.yaml"];
    Ok(vec![
        file(
            "unsloth.yaml",
            format!("{header}{}", yaml::write(&document)),
        ),
        launch(&header, scenario, &words),
    ])
}

/// The script for TRL's trainers as Unsloth patches them, and the file it reads.
fn with_script(scenario: &Scenario, lora: &Lora, checkpointing: &str, header: &str) -> Vec<File> {
    let training = &scenario.training;
    let goal = &training.task;
    let checkpoints = checkpointing == "true";
    let by_vllm = goal.objective == Objective::Grpo && goal.sampler == Sampler::Vllm;
    let mut model = Document::new()
        .with_note(
            "model_name",
            hub_name(scenario),
            "a Hugging Face name or a folder",
        )
        .with("max_seq_length", scenario.data.sequence)
        .with("load_in_4bit", trainer::four_bits(scenario).is_some());
    if by_vllm {
        model = model
            .with("fast_inference", true)
            .with("gpu_memory_utilization", goal.vllm_share)
            .with("max_lora_rank", lora.rank);
    }
    let adapters = Document::new()
        .with("r", lora.rank)
        .with("lora_alpha", lora.rank.saturating_mul(2))
        .with("lora_dropout", lora.dropout)
        .with("target_modules", lora.targets.clone())
        .with("use_gradient_checkpointing", checkpoints);
    let mut arguments = Document::new()
        .with("output_dir", "output")
        .with("per_device_train_batch_size", scenario.data.micro_batch)
        .with("gradient_accumulation_steps", training.accumulation)
        .with("gradient_checkpointing", checkpoints)
        .with("optim", "adamw_8bit")
        .with("bf16", true)
        .with("max_grad_norm", 1.0)
        .with("max_steps", 100_u64)
        .with(
            "save_steps",
            scenario.runtime.save_every.map_or(1, NonZero::get),
        )
        .with_note("learning_rate", 5e-6, "yours to choose");
    let (name, data) = match goal.objective {
        Objective::Grpo => {
            arguments = arguments
                .with("num_generations", goal.generations)
                .with("max_completion_length", goal.completion)
                .with("steps_per_generation", task::batches(scenario))
                .with("num_iterations", goal.iterations)
                .with("beta", task::beta(scenario))
                .with("use_vllm", by_vllm);
            if by_vllm {
                arguments = arguments
                    .with("vllm_mode", "colocate")
                    .with("vllm_enable_sleep_mode", goal.vllm_sleep);
            }
            ("grpo", "JSON lines with \"prompt\"")
        }
        Objective::Kto => {
            arguments = arguments.with("max_length", scenario.data.sequence);
            (
                "kto",
                "JSON lines with \"prompt\", \"completion\" and \"label\"",
            )
        }
        _ => {
            arguments = arguments.with("max_length", scenario.data.sequence);
            (
                "dpo",
                "JSON lines with \"prompt\", \"chosen\" and \"rejected\"",
            )
        }
    };
    let document = Document::new()
        .with("task", name)
        .with_note("data", "train.jsonl", data)
        .with("model", model)
        .with("adapters", adapters)
        .with("training", arguments);
    vec![
        file(
            "unsloth.yaml",
            format!("{header}{}", yaml::write(&document)),
        ),
        file("train.py", include_str!("unsloth_task.py").into()),
        launch(header, scenario, &["python", "train.py", "unsloth.yaml"]),
    ]
}
