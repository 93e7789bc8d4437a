//! verl: a Hydra configuration over its own `ppo_trainer`, for GRPO and RLOO with vLLM on the same cards.

use std::num::NonZero;

use super::common::{file, hub_name, launch, machines, processes};
use super::header::header;
use super::{Files, Target, refuse, task, trainer};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_core::estimate::Estimate;
use headroom_scenario::{
    Kernels, LmHead, Objective, Optimizer, Parallelism, Precision, Problem, ReferenceDtype,
    Sampler, SamplingOffload, Scenario, settings,
};

pub(super) const TARGET: Target = Target {
    id: "verl",
    title: "verl (main_ppo)",
    versions: "verl 0.9",
    differs: "without a strategy, or with DDP, it wraps the models in FSDP, which keeps weights in flat parameters and computes in bf16 copies of them",
    write,
};

const LAYOUTS: &[Parallelism] = &[Parallelism::None, Parallelism::Ddp, Parallelism::Fsdp2];

/// Settings that few programs have, and this one does.
const OWN: &[&str] = &["task.sampling_offload", "task.scored_rows"];

/// Settings of a divided model that are its defaults, each with the value it has.
const DIVIDED: &[(&str, &str)] = &[
    ("parallel.param_dtype", "bf16"),
    ("parallel.reduce_dtype", "fp32"),
    ("parallel.sync_each", "on"),
];

/// Settings that it does not expose.
const FIXED: &[&str] = &[
    "training.quantization",
    "training.loss",
    "task.fp32_head",
    "parallel.bucket_view",
    "parallel.bucket_mb",
];

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let training = &scenario.training;
    let goal = &training.task;
    let rare: Vec<&str> = refuse::RARE
        .iter()
        .filter(|path| !OWN.contains(path))
        .copied()
        .collect();
    let fixed = [
        trainer::FIXED,
        &rare,
        refuse::COMPILE,
        trainer::ADAPTERS,
        trainer::MODULES_TO_SAVE,
        FIXED,
    ];
    let mut problems = refuse::fixed(scenario, &fixed);
    problems.extend(refuse::causal(scenario));
    problems.extend(refuse::adapters(scenario));
    problems.extend(refuse::nvidia(scenario));
    problems.extend(refuse::plain_checkpointing(scenario));
    let own: Vec<&str> = DIVIDED.iter().map(|(path, _)| *path).collect();
    problems.extend(refuse::details(scenario, &own));
    problems.extend(divided(scenario));
    problems.extend(refuse::layout(scenario, LAYOUTS).err());
    let known = [Precision::AmpBf16, Precision::AmpBf16OnBf16];
    problems.extend(refuse::precision_among(scenario, &known));
    problems.extend(task::generations(goal));
    problems.extend(task::head(
        goal,
        &[LmHead::Fused, LmHead::InPlace, LmHead::Logits],
    ));
    problems.extend(task::reference(scenario, goal.reference_type));
    let mut expect = |field: &str, value: &str, right: bool, expected: &str| {
        if !right {
            problems.push(Problem::new(field, value, expected));
        }
    };
    let estimator = match goal.objective {
        Objective::Grpo => Some("grpo"),
        Objective::Rloo => Some("rloo"),
        _ => None,
    };
    let expected = "grpo or rloo for this target";
    expect(
        "task.objective",
        goal.objective.id(),
        estimator.is_some(),
        expected,
    );
    let expected = "vllm for this target";
    let by_vllm = goal.sampler == Sampler::Vllm;
    expect("task.sampler", goal.sampler.id(), by_vllm, expected);
    let expected = "on for this target, which always clips";
    expect("training.clip", "off", training.clip, expected);
    let liger = matches!(training.kernels, Kernels::Library | Kernels::Liger);
    let expected = "library or liger for this target";
    expect("training.kernels", training.kernels.id(), liger, expected);
    let lora = training.lora.as_ref();
    let dropout = lora.map_or(0.0, |lora| lora.dropout);
    let expected = "0 for this target";
    expect(
        "training.lora.dropout",
        &dropout.to_string(),
        dropout == 0.0,
        expected,
    );
    let rows = Rows::of(scenario);
    let whole = rows.prompts(rows.sampled).zip(rows.prompts(rows.stepped));
    let expected = "a divisor of the rows that are sampled at once, and of those of a step";
    let generations = goal.generations.to_string();
    expect("task.generations", &generations, whole.is_some(), expected);
    let optimizer = match optimizer(training.optimizer) {
        Ok(optimizer) => Some(optimizer),
        Err(problem) => {
            problems.push(problem);
            None
        }
    };
    let machines = match machines(scenario) {
        Ok(machines) => Some(machines),
        Err(problem) => {
            problems.push(problem);
            None
        }
    };
    let (Some(estimator), Some(whole), Some(optimizer), Some(machines), true) =
        (estimator, whole, optimizer, machines, problems.is_empty())
    else {
        return Err(problems);
    };
    let (prompts, of_a_step) = whole;
    let micro_batch = scenario.data.micro_batch;
    let beta = task::beta(scenario);
    let weights = match training.precision {
        Precision::AmpBf16 => "fp32",
        _ => "bf16",
    };
    let beside = match goal.reference_type {
        ReferenceDtype::Same => weights,
        ReferenceDtype::Bf16 => "bf16",
        ReferenceDtype::Fp32 => "fp32",
    };
    let name = literal(hub_name(scenario));
    let mut model = Document::new()
        .with_note("path", name, "a Hugging Face name or a folder")
        .with(
            "enable_gradient_checkpointing",
            training.checkpointing != headroom_scenario::Checkpointing::None,
        )
        .with("use_remove_padding", !scenario.data.padding_mask)
        .with("use_liger", training.kernels == Kernels::Liger)
        .with("use_fused_kernels", goal.head == LmHead::Fused);
    if let Some(lora) = lora {
        let targets: Vec<String> = lora.targets.iter().map(|name| literal(name)).collect();
        model = model
            .with("lora_rank", lora.rank)
            .with("lora_alpha", lora.rank.saturating_mul(2))
            .with("target_modules", targets);
    }
    let mut sharding = Document::new().with("model_dtype", weights);
    let mut beside_sharding = Document::new().with("model_dtype", beside);
    let divides = scenario.parallel.strategy == Parallelism::Fsdp2 && processes(scenario) > 1;
    let waits = goal.sampling_offload;
    if waits != SamplingOffload::None {
        sharding = sharding
            .with("param_offload", waits != SamplingOffload::Optimizer)
            .with("optimizer_offload", waits != SamplingOffload::Parameters);
    }
    if processes(scenario) > 1 && !divides {
        // Each GPU has all weights, as with DDP.
        sharding = sharding.with("fsdp_size", 1_u64);
        beside_sharding = beside_sharding.with("fsdp_size", 1_u64);
    }
    let mut actor = Document::new();
    if divides {
        actor = actor.with("strategy", "fsdp2");
    }
    let actor = actor
        .with("optim", optimizer.with_note("lr", 1e-6, "yours to choose"))
        .with("fsdp_config", sharding)
        .with("ppo_mini_batch_size", of_a_step)
        .with("ppo_micro_batch_size_per_gpu", micro_batch)
        .with("ppo_epochs", goal.iterations)
        .with("use_kl_loss", beta > 0.0)
        .with("kl_loss_coef", beta);
    let mut rollout = Document::new()
        .with("name", "vllm")
        .with("n", goal.generations)
        .with("tensor_model_parallel_size", goal.vllm_tp)
        .with("gpu_memory_utilization", goal.vllm_share)
        .with_note(
            "free_cache_engine",
            goal.vllm_sleep,
            "whether vLLM sleeps while the model is trained",
        )
        .with(
            "log_prob_micro_batch_size_per_gpu",
            match goal.scored_rows {
                0 => micro_batch,
                rows => rows,
            },
        );
    if lora.is_some() {
        // The base weights come from the files; only adapters are sent over.
        rollout = rollout.with("load_format", "safetensors");
    }
    let reference = Document::new()
        .with("fsdp_config", beside_sharding)
        .with("log_prob_micro_batch_size_per_gpu", micro_batch);
    let document = Document::new()
        .with(
            "defaults",
            vec!["ppo_trainer".to_string(), "_self_".to_string()],
        )
        .with(
            "algorithm",
            Document::new().with("adv_estimator", estimator),
        )
        .with(
            "data",
            Document::new()
                .with_note(
                    "train_files",
                    "train.parquet",
                    "columns prompt, data_source and reward_model",
                )
                .with("val_files", "train.parquet")
                .with_note(
                    "train_batch_size",
                    prompts,
                    "prompts in a round of sampling",
                )
                .with("max_prompt_length", goal.prompt)
                .with("max_response_length", goal.completion),
        )
        .with(
            "actor_rollout_ref",
            Document::new()
                .with("model", model)
                .with("actor", actor)
                .with("rollout", rollout)
                .with("ref", reference),
        )
        .with(
            "reward",
            Document::new().with(
                "custom_reward_function",
                Document::new()
                    .with("path", "reward.py")
                    .with("name", "compute_score"),
            ),
        )
        .with(
            "trainer",
            Document::new()
                .with("nnodes", u64::from(machines.nodes))
                .with("n_gpus_per_node", u64::from(machines.each))
                .with("logger", vec!["console".to_string()])
                .with("val_before_train", false)
                .with(
                    "save_freq",
                    scenario.runtime.save_every.map_or(1, NonZero::get),
                )
                .with("total_training_steps", 100_u64),
        );
    let header = header(&TARGET, scenario, estimate);
    let config = yaml::write(&document);
    let words = [
        "python",
        "-m",
        "verl.trainer.main_ppo",
        "--config-dir",
        ".",
        "--config-name",
        "verl",
    ];
    Ok(vec![
        file("verl.yaml", format!("{header}{config}")),
        file("reward.py", include_str!("verl_reward.py").into()),
        launch(&header, scenario, &words),
    ])
}

/// Problems with what verl does to every model that it divides.
fn divided(scenario: &Scenario) -> Vec<Problem> {
    if scenario.parallel.strategy != Parallelism::Fsdp2 || processes(scenario) == 1 {
        return Vec::new();
    }
    let own = |(path, value): &(&'static str, &str)| {
        let setting = settings::find(path)?;
        let given = setting.get(scenario);
        (setting.applies(scenario) && given != *value)
            .then(|| Problem::new(*path, given, format!("{value} for this target")))
    };
    DIVIDED.iter().filter_map(own).collect()
}

/// The rows of completions, of all GPUs.
struct Rows {
    sampled: u64,
    stepped: u64,
    generations: u64,
}

impl Rows {
    fn of(scenario: &Scenario) -> Self {
        let each = scenario
            .data
            .micro_batch
            .saturating_mul(processes(scenario).into());
        Self {
            sampled: each.saturating_mul(task::batches(scenario)),
            stepped: each.saturating_mul(scenario.training.accumulation),
            generations: scenario.training.task.generations.max(1),
        }
    }

    /// The prompts of so many rows, if these are complete groups.
    fn prompts(&self, rows: u64) -> Option<u64> {
        rows.is_multiple_of(self.generations)
            .then(|| rows / self.generations)
    }
}

/// Text that OmegaConf leaves as it is: `${` would start an interpolation.
fn literal(text: &str) -> String {
    let mut literal = String::new();
    for (place, part) in text.split("${").enumerate() {
        if place > 0 {
            // Two backslashes before it mean one.
            let slashes = literal.len() - literal.trim_end_matches('\\').len();
            literal.push_str(&"\\".repeat(slashes + 1));
            literal.push_str("${");
        }
        literal.push_str(part);
    }
    literal
}

/// The class that steps exactly like this optimizer.
fn optimizer(optimizer: Optimizer) -> Result<Document, Problem> {
    let of = |library: &str, class: &str| {
        Ok(Document::new()
            .with("optimizer", class)
            .with("optimizer_impl", library))
    };
    let told = |option: &str, value: bool| {
        let options = Document::new().with(option, value);
        Ok(Document::new()
            .with("optimizer", "AdamW")
            .with("optimizer_impl", "torch.optim")
            .with("override_optimizer_config", options))
    };
    match optimizer {
        Optimizer::AdamW => of("torch.optim", "AdamW"),
        Optimizer::AdamWFused => told("fused", true),
        Optimizer::AdamWLoop => told("foreach", false),
        Optimizer::Sgd => of("torch.optim", "SGD"),
        Optimizer::AdamW8bit => of("bitsandbytes.optim", "AdamW8bit"),
        Optimizer::AdamWBnb => of("bitsandbytes.optim", "AdamW32bit"),
        Optimizer::PagedAdamW => of("bitsandbytes.optim", "PagedAdamW32bit"),
        Optimizer::PagedAdamW8bit => of("bitsandbytes.optim", "PagedAdamW8bit"),
        other => {
            let expected =
                "adamw, adamw-fused, adamw-loop, sgd, or AdamW of bitsandbytes, for this target";
            Err(Problem::new("training.optimizer", other.id(), expected))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::literal;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(literal(text), expected);
    }

    #[test]
    fn no_name_is_interpolated() {
        check("Qwen/Qwen2.5-1.5B", "Qwen/Qwen2.5-1.5B");
        check("${IFS}", "\\${IFS}");
        check("a\\${b}", "a\\\\\\${b}");
    }
}
