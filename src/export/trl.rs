//! TRL's command line: `trl sft`, `trl dpo`, `trl distillation` and their like, one file for the whole job.

use super::common::{file, hub_name, launch_on_each};
use super::header::header;
use super::refuse::Layout;
use super::{Files, Target, accelerate, trainer};
use crate::catalog;
use crate::document::Document;
use crate::document::yaml;
use crate::estimate::Estimate;
use crate::scenario::{
    AdapterMethod, BesideType, Kernels, LmHead, LossKernel, Objective, Precision, Problem,
    Reference, Sampler, Scenario,
};

pub(super) const TARGET: Target = Target {
    id: "trl",
    title: "TRL (trl sft)",
    versions: "trl 1.0 to 1.16",
    differs: "since trl 1.16 every loss is computed in chunks, which needs less than predicted for all logits at once",
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
    let fp32_adapters = training
        .lora
        .as_ref()
        .is_some_and(|lora| lora.fp32_adapters);
    let four_bits = trainer::four_bits(scenario);
    let mut fixed = trainer::ADAPTERS.to_vec();
    if !is_sft(scenario) {
        fixed.extend(trainer::LIGER);
    }
    if four_bits.is_some() {
        fixed.retain(|path| *path != "training.lora.fp32_adapters");
    }
    let kernel = loss_kernel(scenario);
    let mut asked_for = scenario.clone();
    if kernel.is_some() {
        asked_for.training.loss = LossKernel::Library;
    }
    let asked = trainer::asked_for_task(&asked_for, &fixed, PRECISIONS, &accelerate::LAYOUTS);
    // For the other tasks its one switch means another loss, and is among what is fixed.
    let asked = if is_sft(scenario) {
        trainer::with_one_switch(&asked_for, asked)?
    } else {
        asked?
    };
    let task = task(scenario).map_err(|problem| vec![problem])?;
    if let Some(lora) = training
        .lora
        .as_ref()
        .filter(|lora| lora.method != AdapterMethod::Lora)
    {
        let expected = "lora, which is all that this target makes";
        let problem = Problem::new("training.lora.method", lora.method.id(), expected);
        return Err(vec![problem]);
    }
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
        .and(task.arguments);
    match kernel {
        Some("chunked_nll") => {
            document = document.with_note("loss_type", "chunked_nll", "from trl 1.7 on");
        }
        Some(kernel) => document = document.with("loss_type", kernel),
        None => {}
    }
    if task.packs {
        document = document.with_note(
            "packing",
            !scenario.data.padding_mask,
            "true: no batch has padding",
        );
        if !scenario.data.padding_mask {
            // The other strategies run attention over pieces, which takes other kernels.
            document = document.with("packing_strategy", "wrapped");
        }
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
    let mut files = vec![file(task.file, format!("{header}{config}"))];
    let mut words = vec!["trl", task.name, "--config", task.file];
    if asked.layout != Layout::Single {
        let launcher = accelerate::config(scenario, asked.layout);
        files.push(file("accelerate.yaml", format!("{header}{launcher}")));
        words.extend(["--accelerate_config", "accelerate.yaml"]);
    }
    files.push(launch_on_each(
        &header,
        scenario,
        &words,
        accelerate::PLACE,
        &[],
    ));
    Ok(files)
}

fn is_sft(scenario: &Scenario) -> bool {
    let objective = scenario.training.task.objective;
    matches!(objective, Objective::Pretraining | Objective::Sft)
}

/// What `trl sft` calls the loss, where it computes that itself: all logits at once, or those of a part of the tokens at a
/// time, which are made again in backward.
fn loss_kernel(scenario: &Scenario) -> Option<&'static str> {
    let training = &scenario.training;
    if !is_sft(scenario) || training.kernels != Kernels::Library {
        return None;
    }
    match training.loss {
        LossKernel::Library => Some("nll"),
        LossKernel::ChunkedCheckpoint => Some("chunked_nll"),
        _ => None,
    }
}

/// One of TRL's commands, and what its file says of the task.
struct Command {
    name: &'static str,
    file: &'static str,
    arguments: Document,
    /// Whether it can pack samples.
    packs: bool,
}

/// The command of the scenario's task.
fn task(scenario: &Scenario) -> Result<Command, Problem> {
    let task = &scenario.training.task;
    let adapters = scenario.training.lora.is_some();
    let refused =
        |path: &'static str, value: &str, expected: &str| Err(Problem::new(path, value, expected));
    let length = Document::new().with("max_length", scenario.data.sequence);
    let has_head =
        !is_sft(scenario) && !matches!(task.objective, Objective::Reward | Objective::Distillation);
    if has_head && task.head != LmHead::Fused {
        return refused(
            "task.head",
            task.head.id(),
            "fused, as TRL since 1.7 computes it",
        );
    }
    if task.objective.refers() {
        let copied = !adapters && matches!(task.reference, Reference::Copy | Reference::Auto);
        let off = adapters && matches!(task.reference, Reference::AdaptersOff | Reference::Auto);
        let before = task.reference == Reference::Precomputed;
        let none = task.reference == Reference::None;
        if !(copied || off || before || none) {
            let expected = "auto: TRL switches adapters off, and copies a model without any";
            return refused("task.reference", task.reference.id(), expected);
        }
    }
    Ok(match task.objective {
        Objective::Pretraining => Command {
            name: "sft",
            file: "sft.yaml",
            arguments: length,
            packs: true,
        },
        Objective::Sft => Command {
            name: "sft",
            file: "sft.yaml",
            arguments: if task.labelled < 1.0 {
                length.with("completion_only_loss", true)
            } else {
                length
            },
            packs: true,
        },
        Objective::Dpo => Command {
            name: "dpo",
            file: "dpo.yaml",
            arguments: length.with(
                "precompute_ref_log_probs",
                task.reference == Reference::Precomputed,
            ),
            packs: false,
        },
        Objective::Kto => Command {
            name: "kto",
            file: "kto.yaml",
            arguments: length.with(
                "precompute_ref_log_probs",
                task.reference == Reference::Precomputed,
            ),
            packs: false,
        },
        Objective::Reward => Command {
            name: "reward",
            file: "reward.yaml",
            arguments: length,
            packs: false,
        },
        Objective::Grpo => Command {
            name: "grpo",
            file: "grpo.yaml",
            arguments: sampled(scenario, "grpo"),
            packs: false,
        },
        Objective::Rloo => Command {
            name: "rloo",
            file: "rloo.yaml",
            arguments: sampled(scenario, "rloo"),
            packs: false,
        },
        Objective::Distillation => Command {
            name: "distillation",
            file: "distillation.yaml",
            arguments: distilled(scenario),
            packs: false,
        },
        other => {
            let expected =
                "sft, dpo, kto, reward, grpo, rloo or distillation, which `trl` has commands for";
            return refused("task.objective", other.id(), expected);
        }
    })
}

/// What a file says of completions that are sampled.
fn sampled(scenario: &Scenario, command: &str) -> Document {
    let task = &scenario.training.task;
    let refers = match task.reference {
        Reference::None => false,
        Reference::Auto => command == "rloo",
        _ => true,
    };
    let batches = match task.generation_batches {
        0 => scenario.training.accumulation,
        batches => batches,
    };
    let rewards = Document::List(vec!["think_format_reward".into()]);
    let mut document = Document::new()
        .with_note(
            "reward_funcs",
            rewards,
            "yours: a name, or a path to a function",
        )
        .with("num_generations", task.generations)
        .with("max_completion_length", task.completion)
        .with("steps_per_generation", batches)
        .with("num_iterations", task.iterations)
        .with_note(
            "beta",
            if refers { 0.04 } else { 0.0 },
            "0: no reference is kept",
        );
    if task.fp32_head && command == "grpo" {
        document = document.with("cast_lm_head_to_fp32", true);
    }
    document.and(sampler(scenario))
}

/// What a file says of a teacher, and of the completions that are learned from it.
fn distilled(scenario: &Scenario) -> Document {
    let task = &scenario.training.task;
    let teacher = catalog::model(&task.teacher).map_or(&*task.teacher, |model| {
        if model.hf_id.is_empty() {
            model.id
        } else {
            model.hf_id
        }
    });
    let dtype = match task.reference_type {
        BesideType::Fp32 => "float32",
        BesideType::Bf16 => "bfloat16",
        BesideType::Same => trainer::weights(scenario.training.precision),
    };
    Document::new()
        .with_note(
            "teacher_model_name_or_path",
            teacher,
            "a name or a folder; checked with trl 1.16",
        )
        .with(
            "teacher_model_init_kwargs",
            Document::new().with("dtype", dtype),
        )
        .with("max_completion_length", task.completion)
        .and(sampler(scenario))
}

/// How completions are sampled.
fn sampler(scenario: &Scenario) -> Document {
    let (task, document) = (&scenario.training.task, Document::new());
    match task.sampler {
        Sampler::Generate => document,
        Sampler::Static => document.with("cache_implementation", "static"),
        Sampler::Vllm => document
            .with("use_vllm", true)
            .with("vllm_mode", "colocate")
            .with("vllm_gpu_memory_utilization", task.vllm_share)
            .with("vllm_enable_sleep_mode", task.vllm_sleep),
        Sampler::VllmElsewhere => document.with("use_vllm", true).with("vllm_mode", "server"),
    }
}
