//! Axolotl: a single file for the job.

use super::common::{PLACE, file, hub_name, launch_on_each, learning_rate, machines, processes};
use super::header::header;
use super::refuse::{self, Layout};
use super::trainer::Layouts;
use super::{Files, Target, accelerate, deepspeed, layout, task, trainer};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_core::estimate::Estimate;
use headroom_scenario::{
    Checkpointing, LmHead, LossKernel, Objective, Offload, Precision, Problem, Reference,
    ReferenceDtype, Sampler, Scenario,
};

pub(super) const TARGET: Target = Target {
    id: "axolotl",
    title: "Axolotl",
    versions: "axolotl 0.21",
    differs: "",
    write,
};

/// It loads the weights in the format that it computes in.
const PRECISIONS: &[Precision] = &[
    Precision::Fp32,
    Precision::Bf16,
    Precision::Fp16,
    Precision::AmpBf16OnBf16,
];

const LAYOUTS: Layouts = Layouts {
    strategies: accelerate::LAYOUTS.strategies,
    // ZeRO's sizes are in DeepSpeed's own file.
    details: &[&["parallel.reshard"], deepspeed::DETAILS],
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let training = &scenario.training;
    let own_loss = task::has_own_loss(&training.task);
    let mut fixed = trainer::ADAPTERS.to_vec();
    if own_loss {
        // Its Liger plugin would replace the loss.
        fixed.extend(trainer::LIGER);
    }
    // A plugin of its own, beside whatever Liger does.
    let cuts = training.loss == LossKernel::CutLinear && !own_loss;
    let config = if cuts {
        let mut other = scenario.clone();
        other.training.loss = LossKernel::Library;
        trainer::config_for_task(&other, &fixed, PRECISIONS, &LAYOUTS)
    } else {
        trainer::config_for_task(scenario, &fixed, PRECISIONS, &LAYOUTS)
    };
    let (config, task) = trainer::with_task(config, task(scenario), refuse::low_rank(scenario))?;
    let dataset = Document::new()
        .with_note("path", "train.jsonl", task.data)
        .with("ds_type", "json")
        .and(task.dataset);
    let mut document = Document::new()
        .with_note(
            "base_model",
            hub_name(scenario),
            "a Hugging Face name or a folder",
        )
        .with("datasets", Document::List(vec![dataset]))
        .with("dataset_prepared_path", "prepared")
        .with("output_dir", "out")
        .with("val_set_size", 0.0)
        .and(task.arguments)
        .with("sequence_len", scenario.data.sequence)
        .with("sample_packing", false)
        .with("micro_batch_size", scenario.data.micro_batch)
        .with("gradient_accumulation_steps", training.accumulation)
        .with("attn_implementation", training.attention.id());
    document = match training.precision {
        Precision::Bf16 => document.with_note("bfloat16", true, "no autocast"),
        Precision::Fp16 => document.with_note("float16", true, "no autocast"),
        Precision::AmpBf16OnBf16 => document.with_note("bf16", true, "autocast over bf16 weights"),
        _ => document.with("bf16", false),
    };
    let fsdp = config.layout.is_fsdp2();
    let checkpointing = training.checkpointing != Checkpointing::None;
    document = match config.layout {
        Layout::Zero(_) => document.with("deepspeed", deepspeed::FILE),
        Layout::Fsdp2 => document
            .with("fsdp_version", 2_u64)
            .with("fsdp_config", fsdp_config(scenario)),
        Layout::Hsdp => document
            .with("fsdp_version", 2_u64)
            .with("fsdp_config", fsdp_config(scenario))
            .with("dp_replicate_size", layout::replicas(scenario))
            .with(
                "dp_shard_size",
                processes(scenario) / layout::replicas(scenario).max(1),
            ),
        Layout::Ddp => document.with("ddp_bucket_cap_mb", scenario.parallel.bucket_mb),
        _ => document,
    };
    // FSDP does the checkpointing, and refuses to do it twice.
    let checkpointing = checkpointing && !fsdp;
    document = document.with("gradient_checkpointing", checkpointing);
    if checkpointing {
        let reentrant = Document::new().with("use_reentrant", false);
        document = document.with("gradient_checkpointing_kwargs", reentrant);
    }
    let mut plugins = Vec::new();
    if cuts {
        let plugin = "axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin";
        plugins.push(plugin.to_string());
    }
    if config.liger.is_used() {
        plugins.push("axolotl.integrations.liger.LigerPlugin".to_string());
    }
    if !plugins.is_empty() {
        document = document.with("plugins", plugins);
    }
    if cuts {
        document = document.with("cut_cross_entropy", true);
    }
    if config.liger.is_used() {
        document = document
            .with("liger_rope", config.liger.kernels)
            .with("liger_rms_norm", config.liger.kernels)
            .with("liger_glu_activation", config.liger.kernels);
        document = match config.liger.loss {
            LossKernel::LigerLinear => document.with("liger_fused_linear_cross_entropy", true),
            LossKernel::Liger => document.with("liger_cross_entropy", true),
            _ => document,
        };
    }
    if let Some(lora) = &training.lora {
        let four_bits = trainer::four_bits(scenario);
        document = match four_bits {
            None => document.with("adapter", "lora"),
            Some(double) => {
                let scales = Document::new().with("bnb_4bit_use_double_quant", double);
                document
                    .with("adapter", "qlora")
                    .with("load_in_4bit", true)
                    .with("bnb_config_kwargs", scales)
                    .with_note("embeddings_skip_upcast", true, "PEFT would make them fp32")
            }
        };
        document = document
            .and(trainer::peft(lora))
            .with("lora_target_modules", lora.targets.clone())
            .and(trainer::modules_to_save_and_dora(
                lora,
                "lora_modules_to_save",
                "peft_use_dora",
            ))
            .with_note(
                "lora_mlp_kernel",
                false,
                "its own kernels need less than predicted",
            )
            .with("lora_qkv_kernel", false)
            .with("lora_o_kernel", false);
    }
    let document = document.with("optimizer", config.optim).with_note(
        "max_grad_norm",
        if training.clip { 1.0 } else { 0.0 },
        "0: no clipping",
    );
    let document = document
        .with_note(
            "learning_rate",
            learning_rate(scenario),
            "yours to choose, as are the lines below",
        )
        .with("lr_scheduler", "cosine")
        .with("max_steps", 100_u64)
        .with("logging_steps", 10_u64)
        .with("dataloader_num_workers", scenario.runtime.workers)
        .with("dataloader_pin_memory", scenario.runtime.pin_memory);
    let document = trainer::saves(scenario, document);
    let header = header(&TARGET, scenario, estimate);
    let text = yaml::write(&document);
    let machines = machines(scenario).map_err(|problem| vec![problem])?;
    let (nodes, each) = (machines.nodes.to_string(), machines.each.to_string());
    let mut words = Vec::new();
    if training.task.objective == Objective::Grpo {
        // The reward is imported from here.
        words.extend(["env", "PYTHONPATH=."]);
    }
    words.extend(["axolotl", "train", "axolotl.yaml"]);
    if config.layout != Layout::Single {
        words.extend(["--launcher", "torchrun", "--", "--nproc-per-node", &each]);
    }
    if machines.nodes > 1 {
        words.extend(["--nnodes", &nodes]);
    }
    let mut files = vec![file("axolotl.yaml", format!("{header}{text}"))];
    if training.task.objective == Objective::Grpo {
        files.push(task::rewards());
    }
    files.extend(deepspeed::config_file(scenario, config.layout));
    files.push(launch_on_each(&header, scenario, &words, PLACE, &[]));
    Ok(files)
}

/// A task's keys in the file.
struct Task {
    /// Its data.
    data: &'static str,
    dataset: Document,
    arguments: Document,
}

/// The keys of the scenario's task.
fn task(scenario: &Scenario) -> Result<Task, Problem> {
    let task = &scenario.training.task;
    let refused =
        |path: &'static str, value: &str, expected: &str| Some(Problem::new(path, value, expected));
    // Without a type, the columns are taken as they are.
    let task_of = |data, kind: &str| Task {
        data,
        dataset: Document::new().with("split", "train"),
        arguments: Document::new().with("rl", kind),
    };
    let own = |kind: &'static str, data| Task {
        data,
        dataset: Document::new().with("type", kind),
        arguments: Document::new().with("pad_to_sequence_len", true),
    };
    let pairs = "JSON lines with prompt, chosen, rejected";
    let fused = &[LmHead::Fused];
    // These compute all logits in any case, except with Liger's losses.
    let all = &[LmHead::Fused, LmHead::Logits];
    let (problem, known) = match task.objective {
        Objective::Pretraining => (None, own("completion", "JSON lines with a \"text\"")),
        Objective::Sft => {
            let known = own("chat_template", "JSON lines with \"messages\"");
            (task::supervised(scenario), known)
        }
        Objective::Dpo => {
            let mut known = task_of(pairs, "dpo");
            let precomputed = task.reference == Reference::Precomputed;
            known.arguments = known
                .arguments
                .with("precompute_ref_log_probs", precomputed);
            let reference = if precomputed {
                task::copy_type(scenario, ReferenceDtype::Same)
            } else {
                task::reference(scenario, ReferenceDtype::Same)
            };
            (task::head(task, fused).or(reference), known)
        }
        Objective::Kto => {
            let mut known = task_of("JSON lines with prompt, completion, label", "kto");
            known.arguments = known.arguments.with("remove_unused_columns", false);
            let reference = task::reference(scenario, ReferenceDtype::Same);
            let alone = (scenario.data.micro_batch < 2)
                .then(|| Problem::new("data.micro_batch", "1", "2 or more for this target"));
            (task::head(task, fused).or(reference).or(alone), known)
        }
        Objective::Orpo => (task::head(task, all), task_of(pairs, "orpo")),
        Objective::SimPo => {
            let mut known = task_of(pairs, "simpo");
            known.arguments = known.arguments.with_note(
                "cpo_alpha",
                0.0,
                "0: no loss of its own for the chosen answers",
            );
            (task::head(task, all), known)
        }
        Objective::Grpo => {
            let mut known = task_of("JSON lines with a prompt", "grpo");
            known.arguments = known.arguments.and(sampled(scenario));
            let reference = task::reference(scenario, ReferenceDtype::Same);
            let static_cache = task.sampler == Sampler::Static;
            let problem = if static_cache {
                let expected = "generate, vllm or vllm-server for this target";
                refused("task.sampler", task.sampler.id(), expected)
            } else if task.fp32_head {
                refused("task.fp32_head", "on", "off for this target")
            } else {
                task::head(task, fused).or_else(|| task::generations(task))
            };
            (
                problem.or_else(|| group_of_each(scenario)).or(reference),
                known,
            )
        }
        other => {
            let expected = "pretraining, sft, dpo, kto, orpo, simpo or grpo for this target";
            return Err(Problem::new("task.objective", other.id(), expected));
        }
    };
    let loads_more = matches!(
        task.objective,
        Objective::Kto | Objective::SimPo | Objective::Grpo
    );
    if loads_more && scenario.training.lora.is_none() {
        let expected = "on for this task: without adapters this target keeps a copy of the model that it does not use";
        return Err(Problem::new("training.lora", "off", expected));
    }
    problem.map_or(Ok(known), Err)
}

/// A problem where several processes sample less than a group each, which `check_grpo_batch_size_divisibility` of
/// utils/schemas/validation.py refuses.
fn group_of_each(scenario: &Scenario) -> Option<Problem> {
    let generations = scenario.training.task.generations;
    let rows = task::batches(scenario).saturating_mul(scenario.data.micro_batch);
    let expected = format!("at most {rows}, which each GPU samples at a time, for this target");
    (processes(scenario) > 1 && rows < generations)
        .then(|| Problem::new("task.generations", generations.to_string(), expected))
}

/// The file's keys for sampled completions.
fn sampled(scenario: &Scenario) -> Document {
    let task = &scenario.training.task;
    let gpus = u64::from(processes(scenario));
    let rows = task::batches(scenario)
        .saturating_mul(scenario.data.micro_batch)
        .saturating_mul(gpus);
    let trl = Document::new()
        .with_note(
            "reward_funcs",
            vec![task::REWARD.to_string()],
            "a function of rewards.py; put your own there",
        )
        .with("num_generations", task.generations)
        .with("max_completion_length", task.completion)
        .with("generation_batch_size", rows)
        .with("num_iterations", task.iterations)
        .with_note("beta", task::beta(scenario), "0: no reference is kept");
    let document = |trl: Document| Document::new().with("trl", trl);
    match task.sampler {
        Sampler::Generate | Sampler::Static => document(trl),
        Sampler::Vllm => {
            let vllm = Document::new()
                .with("gpu_memory_utilization", task.vllm_share)
                .with("tensor_parallel_size", task.vllm_tp);
            let trl = trl
                .with("use_vllm", true)
                .with("vllm_mode", "colocate")
                .with("vllm_enable_sleep_mode", task.vllm_sleep);
            document(trl).with("vllm", vllm)
        }
        Sampler::VllmElsewhere => document(trl.with("use_vllm", true).with("vllm_mode", "server")),
    }
}

/// FSDP's keys, which have no prefix here.
fn fsdp_config(scenario: &Scenario) -> Document {
    let training = &scenario.training;
    Document::new()
        .with("reshard_after_forward", scenario.parallel.reshard)
        .with("offload_params", scenario.parallel.offload != Offload::None)
        .with("auto_wrap_policy", "TRANSFORMER_BASED_WRAP")
        // Weights in four bits cannot be sent to the other processes.
        .with(
            "cpu_ram_efficient_loading",
            trainer::four_bits(scenario).is_none(),
        )
        .with(
            "activation_checkpointing",
            training.checkpointing != Checkpointing::None,
        )
        .with("state_dict_type", "SHARDED_STATE_DICT")
}
