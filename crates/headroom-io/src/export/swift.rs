//! ms-swift: one file for `swift sft` or `swift rlhf`.

use super::common::{PLACE_IN_VARIABLES, file, hub_name, launch_on_each, machines};
use super::header::header;
use super::refuse::{self, Layout};
use super::{Files, Target, deepspeed, task, trainer};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_core::estimate::Estimate;
use headroom_scenario::{LmHead, Objective, Precision, Problem, ReferenceDtype, Sampler, Scenario};

pub(super) const TARGET: Target = Target {
    id: "swift",
    title: "ms-swift (swift sft, swift rlhf)",
    versions: "ms-swift 4.6",
    differs: "preference losses compute the logits of the answers only, which needs less than predicted for all tokens",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let training = &scenario.training;
    let own_loss = task::has_own_loss(&training.task);
    let mut fixed = trainer::ADAPTERS.to_vec();
    if own_loss {
        // Its single switch then means other losses too.
        fixed.extend(trainer::LIGER);
    }
    let config = trainer::config_for_task(scenario, &fixed, Precision::ALL, &deepspeed::LAYOUTS);
    let config = if own_loss {
        config
    } else {
        trainer::with_one_switch(scenario, config)
    };
    let problems = refuse::low_rank(scenario);
    let (config, command) = trainer::with_task(config, command(scenario), problems)?;
    if !scenario.data.padding_mask && !training.task.objective.samples() {
        let expected =
            "on for this target, which pads each batch (its packing takes other attention kernels)";
        let problem = Problem::new("data.padding_mask", "off", expected);
        return Err(vec![problem]);
    }
    let mut document = Document::new()
        .with_note("model", hub_name(scenario), "a name on a hub or a folder")
        .with_note("dataset", "train.jsonl", command.data)
        .with("torch_dtype", trainer::weights(training.precision))
        .with("attn_impl", training.attention.id())
        .with("max_length", scenario.data.sequence)
        .with("truncation_strategy", command.truncates)
        .with("packing", false)
        .and(command.arguments);
    document = match &training.lora {
        None => document.with("tuner_type", "full"),
        Some(lora) => document
            .with("tuner_type", "lora")
            .with("lora_rank", lora.rank)
            .with("lora_alpha", lora.rank.saturating_mul(2))
            .with("lora_dropout", lora.dropout)
            .with("target_modules", lora.targets.clone())
            .and(trainer::modules_to_save_and_dora(
                lora,
                "modules_to_save",
                "use_dora",
            )),
    };
    if let Some(double) = trainer::four_bits(scenario) {
        document = document
            .with("quant_method", "bnb")
            .with("quant_bits", 4_u64)
            .with("bnb_4bit_quant_type", "nf4")
            .with("bnb_4bit_use_double_quant", double);
    }
    if let Layout::Zero(_) = config.layout {
        document = document.with("deepspeed", deepspeed::FILE);
    }
    let document = document.and(trainer::arguments(scenario, &config));
    let header = header(&TARGET, scenario, estimate);
    let text = yaml::write(&document);
    let mut files = vec![file("swift.yaml", format!("{header}{text}"))];
    files.extend(deepspeed::config_file(scenario, config.layout));
    let machines = machines(scenario).map_err(|problem| vec![problem])?;
    let each = format!("NPROC_PER_NODE={}", machines.each);
    let nodes = format!("NNODES={}", machines.nodes);
    let words = ["swift", command.name, "swift.yaml"];
    let mut launcher: Vec<&str> = Vec::new();
    if config.layout != Layout::Single {
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

/// One of its commands, and the task's keys in its file.
struct Command {
    name: &'static str,
    data: &'static str,
    truncates: &'static str,
    arguments: Document,
}

/// The command of the scenario's task.
fn command(scenario: &Scenario) -> Result<Command, Problem> {
    let task = &scenario.training.task;
    let sft = Command {
        name: "sft",
        data: "JSON lines with \"messages\"",
        truncates: "right",
        arguments: Document::new(),
    };
    let rlhf_type = |kind: &str| Document::new().with("rlhf_type", kind);
    let rlhf = |data, arguments| Command {
        name: "rlhf",
        data,
        truncates: "right",
        arguments,
    };
    let pairs = "JSON lines with \"messages\" and \"rejected_messages\"";
    let logits = &[LmHead::Logits];
    // These compute all logits in any case, except with Liger's losses.
    let all = &[LmHead::Fused, LmHead::Logits];
    let (problem, command) = match task.objective {
        Objective::Pretraining => (None, sft),
        Objective::Sft => (task::supervised(scenario), sft),
        Objective::Dpo => (task::head(task, logits), rlhf(pairs, rlhf_type("dpo"))),
        Objective::Kto => {
            let unpaired = "JSON lines with \"messages\" and \"label\"";
            (task::head(task, logits), rlhf(unpaired, rlhf_type("kto")))
        }
        Objective::Orpo => (task::head(task, all), rlhf(pairs, rlhf_type("orpo"))),
        Objective::Cpo => (task::head(task, all), rlhf(pairs, rlhf_type("cpo"))),
        Objective::SimPo => {
            let arguments = rlhf_type("simpo").with_note(
                "cpo_alpha",
                0.0,
                "0: no loss of its own for the chosen answers",
            );
            (task::head(task, all), rlhf(pairs, arguments))
        }
        Objective::Reward => (None, rlhf(pairs, rlhf_type("rm"))),
        Objective::Grpo => {
            let command = Command {
                truncates: "left",
                ..rlhf("JSON lines with \"messages\"", sampled(scenario))
            };
            let problem = task::head(task, logits).or_else(|| samplers(scenario));
            (problem.or_else(|| task::generations(task)), command)
        }
        other => {
            let expected =
                "pretraining, sft, dpo, kto, orpo, cpo, simpo, reward or grpo for this target";
            return Err(Problem::new("task.objective", other.id(), expected));
        }
    };
    let problem = problem.or_else(|| task::reference(scenario, ReferenceDtype::Same));
    problem.map_or(Ok(command), Err)
}

/// A problem with the sampler or the head.
fn samplers(scenario: &Scenario) -> Option<Problem> {
    let task = &scenario.training.task;
    if task.sampler == Sampler::Static {
        let expected = "generate, vllm or vllm-server for this target";
        return Some(Problem::new("task.sampler", task.sampler.id(), expected));
    }
    let expected = "off for this target";
    task.fp32_head
        .then(|| Problem::new("task.fp32_head", "on", expected))
}

/// The file's keys for sampled completions.
fn sampled(scenario: &Scenario) -> Document {
    let task = &scenario.training.task;
    let document = Document::new()
        .with("rlhf_type", "grpo")
        .with_note(
            "reward_funcs",
            vec!["format".to_string()],
            "yours: names, or a plugin's",
        )
        .with("num_generations", task.generations)
        .with("max_completion_length", task.completion)
        .with("steps_per_generation", task::batches(scenario))
        .with("num_iterations", task.iterations)
        .with_note("beta", task::beta(scenario), "0: no reference is kept");
    match task.sampler {
        Sampler::Generate | Sampler::Static => document.with("use_vllm", false),
        Sampler::Vllm => document
            .with("use_vllm", true)
            .with("vllm_mode", "colocate")
            .with("vllm_gpu_memory_utilization", task.vllm_share)
            .with("vllm_tensor_parallel_size", task.vllm_tp)
            .with("sleep_level", u64::from(task.vllm_sleep)),
        Sampler::VllmElsewhere => document
            .with("use_vllm", true)
            .with("vllm_mode", "server")
            .with_note(
                "vllm_server_host",
                vec!["127.0.0.1".to_string()],
                "where `swift rollout` runs",
            ),
    }
}
