//! SkyRL: commands that start one of its entrypoints with `section.key=value`.
//!
//! Defaults are those of `skyrl/train/config/config.py` and `sft_config.py`; keys before 0.3 are read too.

use super::common;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Form, Program, Source};
use crate::words::{Attention, Compute, DataParallel, Offload, Strategy, Task, Weights};

pub const PROGRAM: Program = Program {
    id: "skyrl",
    name: "SkyRL",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    match &source.form {
        Form::Command { launch, flags } => {
            let program = launch.program.text.as_str();
            let rl = flags.has("trainer.policy.model.path")
                || (program.contains("skyrl") || program.contains("examples."))
                    && flags.has("trainer.placement");
            let serves =
                program.contains("main_generate") || program.rsplit('.').next() == Some("serve");
            if rl && !serves {
                return Some(reinforced(flags, program));
            }
            let tuned = program.contains("main_sft")
                && (program.contains("skyrl") || flags.has("model.path"));
            (tuned && (flags.has("strategy") || flags.has("placement"))).then(|| supervised(flags))
        }
        Form::Document(keys) => keys
            .has("trainer.policy.model.path")
            .then(|| reinforced(keys, "")),
        Form::Python { .. } => None,
    }
}

/// Several names of one key, the newest first.
fn whole(keys: &Keys, names: &[&str]) -> Fact<u64> {
    names
        .iter()
        .fold(Fact::Unsaid, |said, name| said.or(keys.whole(name)))
}

fn reinforced(keys: &Keys, program: &str) -> Facts {
    let mut facts = Facts::of("skyrl");
    facts.model = keys.text("trainer.policy.model.path").or_default(
        "Qwen/Qwen2.5-1.5B-Instruct".into(),
        "SkyRL's trainer.policy.model.path",
    );
    let estimator = keys
        .text("trainer.algorithm.advantage_estimator")
        .or_default("grpo".into(), "SkyRL's advantage_estimator");
    facts.task = if program.contains("distill") {
        Fact::follows(Task::Distillation, "its module")
    } else {
        estimator.map(|name| match name.as_str() {
            "gae" => Task::Ppo,
            "rloo" => Task::Rloo,
            _ => Task::Grpo,
        })
    };
    let prompt = keys
        .whole("trainer.max_prompt_length")
        .or_default(512, "SkyRL's max_prompt_length");
    let answer = keys
        .whole("generator.sampling_params.max_generate_length")
        .or_default(1024, "SkyRL's max_generate_length");
    let input = keys.whole("generator.max_input_length");
    let turns = keys
        .whole("generator.max_turns")
        .value()
        .copied()
        .unwrap_or(1);
    facts.prompt = prompt.clone();
    facts.completion = answer.clone();
    facts.sequence = match (&prompt, &answer, input.value().filter(|_| turns > 1)) {
        // Several turns grow until the input has its longest.
        (_, Fact::Known { value: answer, .. }, Some(input)) => Fact::read(
            input.saturating_add(*answer),
            "generator.max_input_length and max_generate_length",
        ),
        (Fact::Known { value: prompt, .. }, Fact::Known { value: answer, .. }, None) => Fact::read(
            prompt.saturating_add(*answer),
            "trainer.max_prompt_length and max_generate_length",
        ),
        (Fact::Unknown(why), ..) | (_, Fact::Unknown(why), _) => Fact::Unknown(why.clone()),
        _ => Fact::Unsaid,
    };
    facts.samples = keys
        .whole("generator.n_samples_per_prompt")
        .or_default(5, "SkyRL's n_samples_per_prompt");
    let training = placed(keys, &mut facts);
    if let Some(own) = training {
        facts.trained_on = Fact::follows(own, "the policy's GPUs");
    }
    // Roles that share their GPUs take turns (`offload_to_cpu` of its workers, `sleep` of its engines).
    facts.vllm_sleeps = Fact::default_of(true, "SkyRL's colocate_all");
    facts.offloads_to_sample = Fact::default_of(true, "SkyRL's colocate_all");
    strategy(
        keys,
        "trainer.",
        "trainer.policy.",
        "fsdp",
        training,
        &mut facts,
    );
    facts.micro_batch = micro(keys, "trainer.", 1, &facts.sequence);
    accumulation(keys, training, &mut facts);
    common_to_both(keys, "trainer.", "trainer.policy.", &mut facts);
    facts.vllm = keys
        .number("generator.inference_engine.gpu_memory_utilization")
        .or(keys.number("generator.gpu_memory_utilization"))
        .or_default(0.8, "SkyRL's gpu_memory_utilization")
        .map(Some);
    let every = keys
        .number("trainer.eval_interval")
        .value()
        .copied()
        .unwrap_or(5.0);
    facts.evaluation = Fact::follows(every > 0.0, "trainer.eval_interval");
    facts
}

fn supervised(keys: &Keys) -> Facts {
    let mut facts = Facts::of("skyrl");
    facts.model = keys
        .text("model.path")
        .or_default("Qwen/Qwen3-0.6B".into(), "SkyRL's model.path");
    facts.task = Fact::follows(Task::Sft, "its module");
    facts.sequence = keys.whole("max_length");
    facts.nodes = keys
        .whole("placement.num_nodes")
        .or_default(1, "SkyRL's num_nodes");
    let each = keys
        .whole("placement.num_gpus_per_node")
        .or_default(4, "SkyRL's num_gpus_per_node");
    let nodes = facts.nodes.value().copied().unwrap_or(1);
    facts.gpus = each.map(|each| each.saturating_mul(nodes));
    let training = facts.gpus.value().copied();
    strategy(keys, "", "", "megatron", training, &mut facts);
    facts.micro_batch = micro(keys, "", 2, &facts.sequence);
    facts.batch_of_all = keys.whole("batch_size").or_default(4, "SkyRL's batch_size");
    common_to_both(keys, "", "", &mut facts);
    if keys.switch("use_sequence_packing").value() == Some(&true) {
        facts
            .notes
            .push("use_sequence_packing: a micro-batch is filled with whole samples".into());
    }
    let evaluates = keys.has("eval_dataset_name") || keys.has("eval_datasets");
    facts.evaluation = Fact::follows(evaluates, "eval_dataset_name");
    facts
}

/// GPUs of all roles; the answer is the policy's.
fn placed(keys: &Keys, facts: &mut Facts) -> Option<u64> {
    let at = |name: &str| format!("trainer.placement.{name}");
    let role = |role: &str| -> Fact<u64> {
        let nodes = keys.whole(&at(&format!("{role}_num_nodes")));
        let nodes = nodes.value().copied().unwrap_or(1);
        keys.whole(&at(&format!("{role}_num_gpus_per_node")))
            .or_default(1, "SkyRL's placement")
            .map(|each| each.saturating_mul(nodes))
    };
    let policy = role("policy");
    facts.nodes = keys
        .whole(&at("policy_num_nodes"))
        .or_default(1, "SkyRL's policy_num_nodes");
    let on = |name: &str| keys.switch(&at(name)).value() != Some(&false);
    if on("colocate_all") {
        facts.gpus = policy.clone();
        return policy.value().copied();
    }
    facts.nodes = Fact::Unsaid;
    let engine = |name: &str| {
        let new = format!("generator.inference_engine.{name}");
        let old = match name {
            "num_engines" => "generator.num_inference_engines".to_string(),
            _ => format!("generator.inference_engine_{name}"),
        };
        whole(keys, &[&new, &old]).value().copied().unwrap_or(1)
    };
    let generating = [
        "num_engines",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
    ]
    .iter()
    .fold(1u64, |all, name| all.saturating_mul(engine(name)));
    let local = keys
        .switch("generator.inference_engine.run_engines_locally")
        .or(keys.switch("generator.run_engines_locally"));
    let generating = if local.value() == Some(&false) {
        0
    } else {
        generating
    };
    let compared = ["use_kl_loss", "use_kl_in_reward"]
        .iter()
        .any(|key| keys.switch(&format!("trainer.algorithm.{key}")).value() == Some(&true))
        || !keys.has("trainer.algorithm.use_kl_loss");
    let extra = |needed: bool, name: &str| {
        if needed {
            role(name).value().copied().unwrap_or(0)
        } else {
            0
        }
    };
    let reference = extra(compared && !on("colocate_policy_ref"), "ref");
    let critic = extra(facts.task.value() == Some(&Task::Ppo), "critic");
    facts.gpus = policy.clone().map(|policy| {
        policy
            .saturating_add(generating)
            .saturating_add(reference)
            .saturating_add(critic)
    });
    policy.value().copied()
}

fn strategy(
    keys: &Keys,
    at: &str,
    model: &str,
    default: &'static str,
    gpus: Option<u64>,
    facts: &mut Facts,
) {
    let said = keys
        .text(&format!("{at}strategy"))
        .or_default(default.into(), "SkyRL's strategy");
    let size = |name: &str| {
        keys.whole(&format!("{model}{name}"))
            .value()
            .copied()
            .unwrap_or(1)
            .max(1)
    };
    let megatron = said.value().is_some_and(|name| name == "megatron");
    let mut spread = if megatron {
        Strategy {
            data: DataParallel::Zero1,
            tp: size("megatron_config.tensor_model_parallel_size"),
            pp: size("megatron_config.pipeline_model_parallel_size"),
            cp: size("megatron_config.context_parallel_size"),
            ep: size("megatron_config.expert_model_parallel_size"),
        }
    } else {
        let shard = keys
            .number(&format!("{model}fsdp_config.fsdp_size"))
            .value()
            .copied();
        let hybrid =
            shard.is_some_and(|size| size > 0.0 && gpus.is_some_and(|gpus| size < gpus as f64));
        Strategy {
            cp: size("sequence_parallel_size"),
            ..Strategy::from(if hybrid {
                DataParallel::Hsdp
            } else {
                DataParallel::Fsdp2
            })
        }
    };
    let ranks = gpus.map(|gpus| gpus / spread.tp.saturating_mul(spread.pp).max(1));
    if megatron && ranks == Some(1) {
        spread.data = DataParallel::None;
    }
    let known = said.and_then(|name| {
        matches!(name.as_str(), "fsdp" | "fsdp2" | "megatron" | "deepspeed").then_some(spread)
    });
    facts.strategy = known;
    facts.weights = if megatron {
        Fact::default_of(Weights::Bf16, "SkyRL with Megatron, with an fp32 copy")
    } else {
        Fact::default_of(
            Weights::Fp32,
            "SkyRL keeps fp32 weights under FSDP's mixed precision",
        )
    };
    facts.compute = Fact::default_of(Compute::Bf16, "SkyRL");
    let on_host = keys
        .switch(&format!("{model}fsdp_config.cpu_offload"))
        .value()
        == Some(&true);
    facts.offload = if on_host && !megatron {
        Fact::read(Offload::Both, format!("{model}fsdp_config.cpu_offload"))
    } else if keys
        .switch(&format!(
            "{model}megatron_config.optimizer_config_kwargs.optimizer_cpu_offload"
        ))
        .value()
        == Some(&true)
    {
        Fact::read(
            Offload::Optimizer,
            format!("{model}megatron_config.optimizer_config_kwargs"),
        )
    } else {
        Fact::default_of(Offload::None, "SkyRL")
    };
}

fn micro(keys: &Keys, at: &str, default: u64, length: &Fact<u64>) -> Fact<u64> {
    let tokens = keys.whole(&format!("{at}max_tokens_per_microbatch"));
    if let (Some(tokens), Some(length)) =
        (tokens.value().filter(|tokens| **tokens > 0), length.value())
    {
        let why = format!("a micro-batch of {tokens} tokens");
        return Fact::follows((tokens / (*length).max(1)).max(1), why);
    }
    keys.whole(&format!("{at}micro_train_batch_size_per_gpu"))
        .or_default(default, "SkyRL's micro_train_batch_size_per_gpu")
}

/// A mini-batch of prompts with their samples, over data-parallel ranks and micro-batches.
fn accumulation(keys: &Keys, gpus: Option<u64>, facts: &mut Facts) {
    let prompts = keys
        .whole("trainer.policy_mini_batch_size")
        .or_default(256, "SkyRL's policy_mini_batch_size");
    let samples = facts.samples.value().copied().unwrap_or(1);
    let rows = prompts.map(|prompts| prompts.saturating_mul(samples));
    let model = facts.strategy.value().map_or(1, |spread| {
        spread
            .tp
            .saturating_mul(spread.pp)
            .saturating_mul(spread.cp)
    });
    let ranks = gpus.map(|gpus| (gpus / model.max(1)).max(1));
    let by = ranks.zip(facts.micro_batch.value().copied());
    let by = by.map(|(ranks, micro)| ranks.saturating_mul(micro));
    facts.accumulation = common::divided(&rows, by, "a mini-batch of");
}

fn common_to_both(keys: &Keys, at: &str, model: &str, facts: &mut Facts) {
    let rank = keys.whole(&format!("{model}model.lora.rank"));
    match rank.value() {
        Some(rank_) if *rank_ > 0 => {
            common::trains_lora(facts, rank, &format!("{model}model.lora.rank"));
            facts.targets = keys
                .list(&format!("{model}model.lora.target_modules"))
                .or_default(vec!["all-linear".into()], "SkyRL's target_modules");
        }
        _ => common::trains_all(facts),
    }
    facts.optimizer = Fact::default_of("adamw".into(), "SkyRL");
    facts.checkpointing = common::checkpointing(
        keys.switch(&format!("{at}gradient_checkpointing"))
            .or_default(true, "SkyRL's gradient_checkpointing"),
    );
    facts.attention = keys
        .switch(&format!("{at}flash_attn"))
        .or_default(true, "SkyRL's flash_attn")
        .map(|flash| {
            if flash {
                Attention::Flash
            } else {
                Attention::Sdpa
            }
        });
    let packed = keys.switch(&format!("{at}remove_microbatch_padding"));
    facts.packing = packed
        .or(keys.switch(&format!("{at}use_sample_packing")))
        .or_default(true, "SkyRL's remove_microbatch_padding");
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    #[test]
    fn samples_of_a_mini_batch_are_divided_over_ranks() {
        let run = "
TP=2
uv run -m skyrl.train.entrypoints.main_base trainer.policy.model.path=Qwen/Qwen3-8B trainer.strategy=megatron \\
  trainer.placement.policy_num_gpus_per_node=8 trainer.policy.megatron_config.tensor_model_parallel_size=$TP \\
  trainer.policy_mini_batch_size=64 trainer.micro_train_batch_size_per_gpu=4 generator.n_samples_per_prompt=4 \\
  trainer.max_prompt_length=1024 generator.sampling_params.max_generate_length=3072
";
        check(
            "run.sh",
            run,
            &[
                ("outcome", "estimate"),
                ("gpus", "8"),
                ("strategy", "zero1+tp2"),
                ("accumulation", "16"),
                ("sequence", "4096"),
                ("weights", "bf16"),
            ],
        );
        let apart = run.replace(
            "trainer.strategy=megatron",
            "trainer.placement.colocate_all=false generator.num_inference_engines=4",
        );
        check(
            "run.sh",
            &apart,
            &[("strategy", "fsdp2"), ("gpus", "12"), ("weights", "fp32")],
        );
    }
}
