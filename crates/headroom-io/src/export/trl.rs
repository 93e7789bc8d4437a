//! TRL's command line: `trl sft`, `trl dpo`, `trl distillation` and their like, a single file for the job.

use super::common::{file, hub_name, launch_on_each};
use super::header::header;
use super::refuse::{self, Layout};
use super::{Files, Target, accelerate, task, trainer};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_catalog as catalog;
use headroom_core::estimate::Estimate;
use headroom_scenario::{
    Kernels, LmHead, Lora, LossKernel, Objective, Precision, Problem, Reference, ReferenceDtype,
    Sampler, Scenario,
};

pub(super) const TARGET: Target = Target {
    id: "trl",
    title: "TRL (trl sft, dpo, grpo ...)",
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
    Precision::AmpFp16OnFp16,
];

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let training = &scenario.training;
    // Adapters over 4-bit weights are cast to bf16 after PEFT has created them in fp32.
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
    let mut with_own_loss = scenario.clone();
    if kernel.is_some() {
        with_own_loss.training.loss = LossKernel::Library;
    }
    let config = trainer::config_for_task(&with_own_loss, &fixed, PRECISIONS, &accelerate::LAYOUTS);
    // For the other tasks its single switch means another loss, and is among the fixed fields.
    let config = if is_sft(scenario) {
        trainer::with_one_switch(&with_own_loss, config)?
    } else {
        config?
    };
    let command = command(scenario).map_err(|problem| vec![problem])?;
    let problems = refuse::low_rank(scenario);
    if !problems.is_empty() {
        return Err(problems);
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
        .with_note("dataset_name", "data", command.data)
        .and(command.arguments);
    match kernel {
        Some("chunked_nll") => {
            document = document.with_note("loss_type", "chunked_nll", "from trl 1.7 on");
        }
        Some(kernel) => document = document.with("loss_type", kernel),
        None => {}
    }
    if command.packs {
        document = document.with_note(
            "packing",
            !scenario.data.padding_mask,
            "true: no batch has padding",
        );
        if !scenario.data.padding_mask {
            // The other strategies run attention over pieces with other kernels.
            document = document.with("packing_strategy", "wrapped");
        }
    }
    if let Some(lora) = &training.lora {
        document = document
            .with("use_peft", true)
            .and(trainer::peft(lora))
            .with("lora_target_modules", targets(lora))
            .and(trainer::modules_to_save_and_dora(
                lora,
                "lora_modules_to_save",
                "use_dora",
            ));
    }
    if let Some(double) = four_bits {
        document = document
            .with("load_in_4bit", true)
            .with("bnb_4bit_quant_type", "nf4")
            .with("use_bnb_nested_quant", double);
    }
    let text = yaml::write(&document.and(trainer::arguments(scenario, &config)));
    let mut files = vec![file(command.file, format!("{header}{text}"))];
    if command.name == "grpo" || command.name == "rloo" {
        files.push(task::rewards());
    }
    let mut words = vec!["trl", command.name, "--config", command.file];
    if config.layout != Layout::Single {
        let launcher = accelerate::config(scenario, config.layout);
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

/// The adapted layers. TRL turns a list of one into a string, which PEFT matches against full paths.
fn targets(lora: &Lora) -> Vec<String> {
    match &lora.targets[..] {
        [only] => vec![format!(r".*\.{}", only.replace('.', r"\."))],
        all => all.to_vec(),
    }
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

/// One of TRL's commands, and the task's keys in its file.
struct Command {
    name: &'static str,
    file: &'static str,
    /// What its data is.
    data: &'static str,
    arguments: Document,
    /// Whether it can pack samples.
    packs: bool,
}

/// The command of the scenario's task.
fn command(scenario: &Scenario) -> Result<Command, Problem> {
    let task = &scenario.training.task;
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
    let lora = scenario.training.lora.as_ref();
    if has_head && lora.is_some_and(|lora| lora.targets.iter().any(|name| name == "lm_head")) {
        let expected = "without lm_head, whose adapter TRL's head ignores";
        return refused("training.lora.targets", "lm_head", expected);
    }
    if let Some(problem) = reference(scenario).or_else(|| task::generations(task)) {
        return Err(problem);
    }
    if task.objective == Objective::Rloo && task.fp32_head {
        return refused("task.fp32_head", "on", "off: RLOO has no such option");
    }
    if task.objective == Objective::Kto && scenario.data.micro_batch < 2 {
        let expected = "2 or more: KTO takes its mismatched answers from the same micro-batch";
        return refused("data.micro_batch", "1", expected);
    }
    let precomputed = matches!(task.reference, Reference::Precomputed | Reference::ByItself);
    let compared = length.clone().with("precompute_ref_log_probs", precomputed);
    let sft = |arguments| Command {
        name: "sft",
        file: "sft.yaml",
        data: "a name, or a folder with train.jsonl",
        arguments,
        packs: true,
    };
    let other = |name, file, data, arguments| Command {
        name,
        file,
        data,
        arguments,
        packs: false,
    };
    let pairs = "a name, or a folder with train.jsonl: prompt, chosen, rejected";
    let prompts = "a name, or a folder with train.jsonl: prompt";
    Ok(match task.objective {
        Objective::Sft if task.labelled < 1.0 => sft(length.with("completion_only_loss", true)),
        Objective::Pretraining | Objective::Sft => sft(length),
        Objective::Dpo => {
            let loss = vec!["sigmoid".to_string()];
            other("dpo", "dpo.yaml", pairs, compared.with("loss_type", loss))
        }
        Objective::Kto => {
            let unpaired = "a name, or a folder with train.jsonl: prompt, completion, label";
            let arguments = compared.with("desirable_weight", 1.0);
            other("kto", "kto.yaml", unpaired, arguments)
        }
        Objective::Reward if lora.is_some() => {
            // The new head is trained with adapters of this kind only.
            let arguments = length.with("lora_task_type", "SEQ_CLS");
            other("reward", "reward.yaml", pairs, arguments)
        }
        Objective::Reward => other("reward", "reward.yaml", pairs, length),
        Objective::Grpo => other("grpo", "grpo.yaml", prompts, sampled(scenario, "grpo")),
        Objective::Rloo => other("rloo", "rloo.yaml", prompts, sampled(scenario, "rloo")),
        Objective::Distillation => {
            let arguments = distilled(scenario);
            other("distillation", "distillation.yaml", prompts, arguments)
        }
        unknown => {
            let expected =
                "sft, dpo, kto, reward, grpo, rloo or distillation, which `trl` has commands for";
            return refused("task.objective", unknown.id(), expected);
        }
    })
}

/// A problem with the source of the reference's log-probabilities.
fn reference(scenario: &Scenario) -> Option<Problem> {
    let training = &scenario.training;
    match training.task.reference {
        _ if !training.task.objective.refers() => None,
        Reference::ByItself => None,
        Reference::Precomputed if training.lora.is_some() => None,
        Reference::Precomputed => {
            let expected = "precomputed-by-itself: this target makes no copy of a model for that";
            let problem = Problem::new("task.reference", "precomputed", expected);
            Some(problem)
        }
        _ => task::reference(scenario, ReferenceDtype::Same),
    }
}

/// A file's keys for sampled completions.
fn sampled(scenario: &Scenario, command: &str) -> Document {
    let task = &scenario.training.task;
    let rewards = Document::List(vec![task::REWARD.into()]);
    let mut document = Document::new()
        .with_note(
            "reward_funcs",
            rewards,
            "a function of rewards.py; put your own there",
        )
        .with("num_generations", task.generations)
        .with("max_completion_length", task.completion)
        .with("steps_per_generation", task::batches(scenario))
        .with("num_iterations", task.iterations)
        .with_note("beta", task::beta(scenario), "0: no reference is kept");
    if command == "rloo" {
        document = document.with("normalize_advantages", false);
    } else if task.fp32_head {
        document = document.with("cast_lm_head_to_fp32", true);
    }
    document.and(sampler(scenario))
}

/// A file's keys for a teacher and the completions learned from it.
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
        ReferenceDtype::Fp32 => "float32",
        ReferenceDtype::Bf16 => "bfloat16",
        ReferenceDtype::Same => trainer::weights(scenario.training.precision),
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
            .with("vllm_tensor_parallel_size", task.vllm_tp)
            .with("vllm_enable_sleep_mode", task.vllm_sleep),
        Sampler::VllmElsewhere => document.with("use_vllm", true).with("vllm_mode", "server"),
    }
}
