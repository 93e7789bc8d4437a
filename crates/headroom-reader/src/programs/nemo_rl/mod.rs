//! NeMo-RL: YAML with a chain of `defaults`, alone or behind `examples/run_*.py --config …` with dotted overrides.
//!
//! Keys and defaults are those of `examples/configs/*.yaml` and `nemo_rl/models/policy/__init__.py`.

mod bases;

use headroom_base::document::Document;

use super::common;
use crate::documents;
use crate::fact::Fact;
use crate::facts::{Ask, Facts};
use crate::keys::Keys;
use crate::program::{Form, Program, Source};
use crate::words::{Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Weights};
use headroom_scripts::Beside;

pub const PROGRAM: Program = Program {
    id: "nemo-rl",
    name: "NeMo-RL",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    match &source.form {
        Form::Document(keys) => recognises(keys).then(|| of(keys, source.name, source.beside)),
        Form::Command { launch, flags } => {
            let program = launch.program.text.as_str();
            let file = program.rsplit('/').next().unwrap_or(program);
            let own = matches!(
                file,
                "run_grpo_math.py"
                    | "run_grpo.py"
                    | "run_dpo.py"
                    | "run_sft.py"
                    | "run_rm.py"
                    | "run_grpo_rm.py"
                    | "run_distillation_math.py"
                    | "run_distillation.py"
                    | "run_vlm_grpo.py"
                    | "run_ppo.py"
                    | "run_grpo_sliding_puzzle.py"
            );
            // Other programs have a `run_distillation.py` too.
            if !own || flags.has("teacher_model_name_or_path") {
                return None;
            }
            let default = match file {
                "run_dpo.py" => "dpo.yaml",
                "run_sft.py" => "sft.yaml",
                "run_rm.py" => "rm.yaml",
                "run_vlm_grpo.py" => "vlm_grpo_3B.yaml",
                "run_distillation_math.py" | "run_distillation.py" => "distillation_math.yaml",
                "run_ppo.py" => "ppo_math_1B.yaml",
                _ => "grpo_math_1B.yaml",
            };
            let path = flags.text("config");
            let path = path.value().map_or(default, String::as_str);
            let read = source
                .beside
                .text(path)
                .as_deref()
                .and_then(documents::read);
            let mut keys = read.unwrap_or_default();
            if !keys.has("policy") {
                keys.set("defaults", path.into());
            }
            for key in flags.below("") {
                if let (true, Some(value)) = (key != "config", flags.peek(&key)) {
                    keys.set(&key, value.clone());
                }
            }
            Some(of(&keys, path, source.beside))
        }
        Form::Python { .. } => None,
    }
}

fn recognises(keys: &Keys) -> bool {
    const METHODS: &[&str] = &["grpo", "dpo", "sft", "rm", "distillation", "ppo"];
    let method = METHODS.iter().any(|key| keys.has(key));
    let other = keys.has("trainer") || keys.has("actor_rollout_ref") || keys.has("model");
    // Hydra's `defaults` are a list; those of NeMo-RL name one file.
    let built =
        matches!(keys.peek("defaults"), Some(Document::Text(path)) if common::is_yaml(path));
    !other && (built || keys.has("policy.model_name") && method)
}

/// The document with those it is built on below it.
fn merged(keys: &Keys, beside: &dyn Beside) -> (Keys, Vec<String>) {
    let mut chain = vec![keys.tree().clone()];
    let mut missing = Vec::new();
    let mut next = named(keys.tree());
    // As deep as NeMo-RL's own recipes go, and more.
    for _ in 0..16 {
        let Some(path) = next.take() else { break };
        let file = path.rsplit('/').next().unwrap_or(&path).to_string();
        let text = beside.text(&path).or_else(|| beside.text(&file));
        let tree = text.as_deref().and_then(documents::raw);
        match tree.or_else(|| bases::named(&file)) {
            Some(tree) => {
                next = named(&tree);
                chain.push(tree);
            }
            None => missing.push(file),
        }
    }
    let mut all = Document::new();
    for tree in chain.into_iter().rev() {
        overlay(&mut all, tree);
    }
    (documents::interpolated(all), missing)
}

fn named(tree: &Document) -> Option<String> {
    match tree.get("defaults")? {
        Document::Text(path) => Some(path.clone()),
        Document::List(paths) => match paths.last()? {
            Document::Text(path) => Some(path.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn overlay(into: &mut Document, from: Document) {
    match (into, from) {
        (Document::Map(own), Document::Map(entries)) => {
            for entry in entries {
                match own.iter_mut().find(|known| known.key == entry.key) {
                    Some(known) => overlay(&mut known.value, entry.value),
                    None => own.push(entry),
                }
            }
        }
        (into, from) => *into = from,
    }
}

fn of(own: &Keys, name: &str, beside: &dyn Beside) -> Facts {
    let (keys, missing) = merged(own, beside);
    let keys = &keys;
    let base = own.text("defaults").value().cloned().unwrap_or_default();
    let base = base.rsplit('/').next().unwrap_or_default().to_string();
    if own.has("eval") || base.starts_with("eval") {
        return Facts::refuse("it evaluates and trains nothing");
    }
    let mut facts = Facts::of("nemo-rl");
    if let Some(base) = missing.first() {
        facts.ask(
            Ask::BaseConfig,
            format!("{base} decides the rest, and is not here"),
        );
    } else if own.has("defaults") {
        // The shipped file's values stand in only where the run itself is said here.
        let said = |paths: &[&str]| paths.iter().any(|path| own.has(path));
        let whole = said(&["policy.model_name"])
            && said(&[
                "policy.train_micro_batch_size",
                "policy.train_global_batch_size",
            ])
            && said(&["policy.max_total_sequence_length"])
            && said(&["cluster.gpus_per_node", "cluster.num_nodes"]);
        if !whole && beside.text(&base).is_none() {
            facts.ask(
                Ask::BaseConfig,
                format!("{base} decides the rest, and is not here"),
            );
        }
    }
    facts.task = task(own, keys, name);
    facts.model = keys.text("policy.model_name");
    facts.micro_batch = keys.whole("policy.train_micro_batch_size");
    facts.sequence = keys.whole("policy.max_total_sequence_length");
    if matches!(
        facts.task.value(),
        Some(Task::Grpo | Task::Ppo | Task::Distillation)
    ) {
        facts.samples = ["grpo", "ppo", "distillation"]
            .iter()
            .fold(Fact::Unsaid, |said, section| {
                said.or(keys.whole(&format!("{section}.num_generations_per_prompt")))
            });
        rollout(keys, &mut facts);
    }
    cluster(keys, &mut facts);
    let megatron = keys.switch("policy.megatron_cfg.enabled").value() == Some(&true);
    let unknown = !missing.is_empty() && !keys.has("policy.dtensor_cfg.enabled");
    if megatron {
        with_megatron(keys, &mut facts);
    } else if !unknown {
        with_dtensor(keys, &mut facts);
    }
    let packed = keys.switch("policy.sequence_packing.enabled");
    facts.packing = packed.or_default(false, "NeMo-RL's sequence_packing");
    facts.evaluation = Fact::follows(true, "val_period");
    facts
}

fn task(own: &Keys, keys: &Keys, name: &str) -> Fact<Task> {
    const SECTIONS: &[(&str, Task)] = &[
        ("distillation", Task::Distillation),
        ("dpo", Task::Dpo),
        ("sft", Task::Sft),
        ("rm", Task::Reward),
        ("ppo", Task::Ppo),
        ("grpo", Task::Grpo),
    ];
    let file = name.rsplit('/').next().unwrap_or(name);
    let found = SECTIONS.iter().find(|(section, _)| own.has(section));
    let found = found.or_else(|| {
        SECTIONS
            .iter()
            .find(|(section, _)| file.starts_with(section))
    });
    match found.or_else(|| SECTIONS.iter().find(|(section, _)| keys.has(section))) {
        Some((section, task)) => Fact::read(*task, *section),
        None => Fact::Unsaid,
    }
}

fn rollout(keys: &Keys, facts: &mut Facts) {
    let backend = keys.text("policy.generation.backend");
    facts.vllm = if backend.value().is_some_and(|name| name == "vllm") {
        keys.number("policy.generation.vllm_cfg.gpu_memory_utilization")
            .map(Some)
    } else {
        Fact::follows(None, "policy.generation.backend")
    };
    if keys.number("loss_fn.reference_policy_kl_penalty").value() != Some(&0.0) {
        facts
            .notes
            .push("the reference's weights are kept in host memory and swapped in".into());
    }
}

fn cluster(keys: &Keys, facts: &mut Facts) {
    facts.nodes = keys.whole("cluster.num_nodes");
    let each = keys.whole("cluster.gpus_per_node");
    let nodes = facts.nodes.value().copied().unwrap_or(1);
    facts.gpus = each.map(|each| each.saturating_mul(nodes));
}

/// GPUs that train: without those that only generate.
fn trainers(keys: &Keys, facts: &Facts) -> Option<u64> {
    let all = *facts.gpus.value()?;
    if keys.switch("policy.generation.colocated.enabled").value() != Some(&false) {
        return Some(all);
    }
    let resource = |key: &str| {
        keys.whole(&format!("policy.generation.colocated.resources.{key}"))
            .value()
            .copied()
    };
    let each = resource("gpus_per_node")
        .or_else(|| keys.whole("cluster.gpus_per_node").value().copied())?;
    let generating = each.saturating_mul(resource("num_nodes").unwrap_or(1));
    Some(all.saturating_sub(generating).max(1))
}

fn spread(keys: &Keys, facts: &mut Facts, mut strategy: Strategy) {
    let model = strategy
        .tp
        .saturating_mul(strategy.pp)
        .saturating_mul(strategy.cp)
        .max(1);
    let trainers = trainers(keys, facts);
    if let Some(own) = trainers {
        facts.trained_on = Fact::follows(own, "the policy's GPUs");
    }
    // `offload_before_refit` and `offload_after_refit` of its workers, and vLLM's sleep, where they share GPUs.
    facts.vllm_sleeps = Fact::default_of(true, "NeMo-RL");
    facts.offloads_to_sample = Fact::default_of(true, "NeMo-RL");
    let ranks = trainers.map(|gpus| (gpus / model).max(1));
    // The distributed optimizer and FSDP divide over context-parallel GPUs too.
    let divided = ranks.is_some_and(|ranks| ranks.saturating_mul(strategy.cp) > 1);
    if ranks.is_some() && !divided && (strategy.data == DataParallel::Zero1 || model > 1) {
        strategy.data = DataParallel::None;
    }
    facts.strategy = Fact::read(strategy, "policy's parallel sizes");
    let by = ranks.zip(facts.micro_batch.value().copied());
    let by = by.map(|(ranks, micro)| ranks.saturating_mul(micro));
    let global = keys.whole("policy.train_global_batch_size");
    facts.accumulation = common::divided(&global, by, "policy.train_global_batch_size");
}

fn with_megatron(keys: &Keys, facts: &mut Facts) {
    let at = |key: &str| format!("policy.megatron_cfg.{key}");
    let size = |key: &str| keys.whole(&at(key)).value().copied().unwrap_or(1).max(1);
    let distributed = keys.switch(&at("optimizer.use_distributed_optimizer"));
    let data = if distributed.value() == Some(&false) {
        DataParallel::Ddp
    } else {
        DataParallel::Zero1
    };
    let strategy = Strategy {
        data,
        tp: size("tensor_model_parallel_size"),
        pp: size("pipeline_model_parallel_size"),
        cp: size("context_parallel_size"),
        ep: size("expert_model_parallel_size"),
    };
    spread(keys, facts, strategy);
    let fp8 = keys.switch(&at("fp8_cfg.enabled")).value() == Some(&true);
    facts.compute = if fp8 {
        Fact::read(Compute::Bf16Fp8, at("fp8_cfg"))
    } else {
        precision(keys)
    };
    let kept = fp8 && keys.switch(&at("fp8_cfg.fp8_param")).value() == Some(&true);
    facts.weights = if kept {
        Fact::read(Weights::Fp8, at("fp8_cfg.fp8_param"))
    } else {
        Fact::follows(
            Weights::Bf16,
            "Megatron keeps the model in policy.precision, and an fp32 copy",
        )
    };
    facts.optimizer = keys
        .text(&at("optimizer.optimizer"))
        .or_default("adam".into(), "NeMo-RL");
    let on = keys
        .switch(&at("activation_checkpointing"))
        .or_default(false, "NeMo-RL");
    let selective = keys.text(&at("recompute_granularity"));
    let selective = selective.value().is_some_and(|name| name == "selective");
    facts.checkpointing = on.map(|on| match (on, selective) {
        (false, _) => Checkpointing::Off,
        (true, true) => Checkpointing::Selective,
        (true, false) => Checkpointing::On,
    });
    let on_host = keys.switch(&at("optimizer.optimizer_cpu_offload")).value() == Some(&true);
    facts.offload = if on_host {
        Fact::read(Offload::Optimizer, at("optimizer.optimizer_cpu_offload"))
    } else {
        Fact::default_of(Offload::None, "NeMo-RL")
    };
    for (key, effect) in [
        (
            "fine_grained_activation_offloading",
            "kept activations are in host memory",
        ),
        (
            "optimizer.use_precision_aware_optimizer",
            "moments may have fewer bits than fp32",
        ),
    ] {
        if keys.switch(&at(key)).value() == Some(&true) {
            facts.not_modelled.push(format!("{}: {effect}", at(key)));
        }
    }
    adapters(keys, "policy.megatron_cfg.peft", facts);
}

fn with_dtensor(keys: &Keys, facts: &mut Facts) {
    let at = |key: &str| format!("policy.dtensor_cfg.{key}");
    let size = |key: &str| keys.whole(&at(key)).value().copied().unwrap_or(1).max(1);
    let replicas = size("data_parallel_replicate_size").max(size("dp_replicate_size"));
    let strategy = Strategy {
        data: if replicas > 1 {
            DataParallel::Hsdp
        } else {
            DataParallel::Fsdp2
        },
        tp: size("tensor_parallel_size"),
        pp: 1,
        cp: size("context_parallel_size"),
        ep: size("expert_parallel_size"),
    };
    spread(keys, facts, strategy);
    facts.compute = precision(keys);
    facts.weights = Fact::follows(
        Weights::Fp32,
        "NeMo-RL keeps fp32 weights under FSDP2's mixed precision",
    );
    let optimizer = keys.text("policy.optimizer.name").map(|name| {
        let last = name.rsplit('.').next().unwrap_or(&name);
        last.to_ascii_lowercase()
    });
    facts.optimizer = optimizer.or_default("adamw".into(), "NeMo-RL");
    facts.checkpointing = common::checkpointing(
        keys.switch(&at("activation_checkpointing"))
            .or_default(false, "NeMo-RL"),
    );
    let on_host = keys.switch(&at("cpu_offload")).value() == Some(&true);
    facts.offload = if on_host {
        Fact::read(Offload::Both, at("cpu_offload"))
    } else {
        Fact::default_of(Offload::None, "NeMo-RL")
    };
    adapters(keys, "policy.dtensor_cfg.lora_cfg", facts);
}

fn precision(keys: &Keys) -> Fact<Compute> {
    let said = keys
        .text("policy.precision")
        .or_default("bfloat16".into(), "NeMo-RL's precision");
    said.and_then(|name| {
        Some(match name.as_str() {
            "bfloat16" | "bf16" => Compute::Bf16,
            "float16" | "fp16" => Compute::Fp16,
            "float32" | "fp32" => Compute::Fp32,
            _ => return None,
        })
    })
}

fn adapters(keys: &Keys, at: &str, facts: &mut Facts) {
    if keys.switch(&format!("{at}.enabled")).value() != Some(&true) {
        common::trains_all(facts);
        return;
    }
    let rank = keys
        .whole(&format!("{at}.dim"))
        .or_default(8, "NeMo-RL's dim");
    common::trains_lora(facts, rank, at);
    let targets = keys.list(&format!("{at}.target_modules"));
    let named = targets.value().is_some_and(|targets| !targets.is_empty());
    facts.targets =
        if named && keys.switch(&format!("{at}.match_all_linear")).value() != Some(&true) {
            targets
        } else {
            Fact::follows(vec!["all-linear".into()], format!("{at} names none"))
        };
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::{check, check_beside};

    const RUN: &str = "
defaults: ../../grpo_math_1B.yaml
policy:
  model_name: Qwen/Qwen3-8B
  train_micro_batch_size: 2
  max_total_sequence_length: 8192
  dtensor_cfg: {enabled: false}
  megatron_cfg: {enabled: true, tensor_model_parallel_size: 2, activation_checkpointing: true}
cluster: {gpus_per_node: 8, num_nodes: 2}
";

    #[test]
    fn a_shipped_base_stands_in_where_the_run_is_said() {
        check(
            "grpo.yaml",
            RUN,
            &[
                ("outcome", "estimate"),
                ("task", "grpo"),
                ("strategy", "zero1+tp2"),
                ("accumulation", "32"),
                ("gpus", "16"),
                ("weights", "bf16"),
                ("samples", "16"),
                ("optimizer", "adam"),
            ],
        );
        let short = "defaults: sft.yaml\ncluster: {gpus_per_node: 4}";
        check(
            "sft-x.yaml",
            short,
            &[("outcome", "question"), ("asks", "base config")],
        );
        let unknown = RUN.replace("grpo_math_1B", "our_base");
        check("grpo.yaml", &unknown, &[("outcome", "question")]);
        let base = "sft: {}\npolicy: {model_name: gpt2, train_global_batch_size: 8, train_micro_batch_size: 1, max_total_sequence_length: 64, dtensor_cfg: {enabled: true}}";
        check_beside(
            &[("sft-x.yaml", short), ("sft.yaml", base)],
            &[
                ("outcome", "estimate"),
                ("model", "gpt2"),
                ("accumulation", "2"),
                ("strategy", "fsdp2"),
            ],
        );
    }
}
