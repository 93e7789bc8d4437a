//! verl: hydra's `section.key=value` behind `python -m verl.trainer.…`, and its YAML.
//!
//! Defaults are those of `verl/trainer/config/*.yaml` (0.4 to 0.7).

use headroom_scripts::shell::{Count, Launch};

use super::common;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Form, Program, Source};
use crate::words::{Attention, Compute, DataParallel, Offload, Strategy, Task, Weights};

pub const PROGRAM: Program = Program {
    id: "verl",
    name: "verl",
    read,
};

const ACTOR: &str = "actor_rollout_ref.actor";

fn read(source: &Source) -> Option<Facts> {
    match &source.form {
        Form::Document(keys) => (keys.has("actor_rollout_ref.actor") && keys.has("trainer"))
            .then(|| reinforced(keys, false)),
        Form::Command { launch, flags } => {
            let program = launch.program.text.as_str();
            if flags.has("actor_rollout_ref") {
                let megatron = flags
                    .text("config_name")
                    .value()
                    .is_some_and(|name| name.contains("megatron"));
                return Some(reinforced(flags, megatron));
            }
            let tuned = program.contains("verl") && program.contains("sft_trainer");
            tuned.then(|| supervised(flags, launch))
        }
        Form::Python { .. } => None,
    }
}

/// `by_megatron`: whether its configuration is Megatron's, of which the strategy is a default.
fn reinforced(keys: &Keys, by_megatron: bool) -> Facts {
    let mut facts = Facts::of("verl");
    facts.model = keys.text("actor_rollout_ref.model.path").or_default(
        "~/models/deepseek-llm-7b-chat".into(),
        "verl's actor_rollout_ref.model.path",
    );
    let estimator = keys
        .text("algorithm.adv_estimator")
        .or_default("gae".into(), "verl's adv_estimator");
    facts.task = estimator.map(|name| match name.as_str() {
        "gae" => Task::Ppo,
        "rloo" => Task::Rloo,
        _ => Task::Grpo,
    });
    let prompt = keys
        .whole("data.max_prompt_length")
        .or_default(512, "verl's max_prompt_length");
    let answer = keys
        .whole("data.max_response_length")
        .or_default(512, "verl's max_response_length");
    facts.prompt = prompt.clone();
    facts.completion = answer.clone();
    facts.sequence = match (prompt, answer) {
        (Fact::Known { value: prompt, .. }, Fact::Known { value: answer, .. }) => Fact::read(
            prompt.saturating_add(answer),
            "data.max_prompt_length and max_response_length",
        ),
        (Fact::Unknown(why), _) | (_, Fact::Unknown(why)) => Fact::Unknown(why),
        _ => Fact::Unsaid,
    };
    facts.samples = keys
        .whole("actor_rollout_ref.rollout.n")
        .or_default(1, "verl's rollout.n");
    facts.nodes = keys.whole("trainer.nnodes").or_default(1, "verl's nnodes");
    let nodes = facts.nodes.value().copied();
    facts.gpus = match (
        keys.whole("trainer.n_gpus_per_node")
            .or_default(8, "verl's n_gpus_per_node"),
        nodes,
    ) {
        (each, Some(nodes)) => each.map(|each| each.saturating_mul(nodes)),
        (_, None) => Fact::Unknown("trainer.nnodes is not known".into()),
    };
    spread(keys, by_megatron, &mut facts);
    let gpus = facts.gpus.value().copied();
    facts.micro_batch = micro(keys, &facts.sequence, gpus);
    accumulation(keys, &mut facts);
    let rank = keys.whole("actor_rollout_ref.model.lora_rank");
    method(keys, rank, "actor_rollout_ref.model", &mut facts);
    facts.optimizer = Fact::default_of("adamw".into(), "verl");
    facts.checkpointing = common::checkpointing(
        keys.switch("actor_rollout_ref.model.enable_gradient_checkpointing")
            .or_default(true, "verl's enable_gradient_checkpointing"),
    );
    facts.attention = Fact::default_of(Attention::Flash, "verl");
    facts.packing = keys
        .switch("actor_rollout_ref.model.use_remove_padding")
        .or_default(false, "verl's use_remove_padding");
    facts.liger = keys
        .switch("actor_rollout_ref.model.use_liger")
        .or_default(false, "verl's use_liger");
    facts.vllm = keys
        .number("actor_rollout_ref.rollout.gpu_memory_utilization")
        .or_default(0.5, "verl's gpu_memory_utilization")
        .map(Some);
    let offloads = ["param_offload", "optimizer_offload"].iter().all(|key| {
        keys.switch(&format!("critic.model.fsdp_config.{key}"))
            .value()
            == Some(&true)
    });
    let critic = facts.task.value() == Some(&Task::Ppo);
    facts.critic_stays = Fact::follows(critic && !offloads, "critic.model.fsdp_config");
    let every = keys
        .number("trainer.test_freq")
        .value()
        .copied()
        .unwrap_or(-1.0);
    facts.evaluation = Fact::follows(every > 0.0, "trainer.test_freq");
    facts
}

fn spread(keys: &Keys, by_megatron: bool, facts: &mut Facts) {
    let default = if by_megatron { "megatron" } else { "fsdp" };
    let kind = keys
        .text(&format!("{ACTOR}.strategy"))
        .or_default(default.into(), "verl's strategy");
    let kind = kind.value().cloned().unwrap_or_default();
    let size = |path: String| keys.whole(&path).value().copied().unwrap_or(1).max(1);
    let gpus = facts.gpus.value().copied();
    let on = |path: &str| keys.switch(&format!("{ACTOR}.{path}")).value() == Some(&true);
    if kind == "megatron" {
        let part = |name: &str| size(format!("{ACTOR}.megatron.{name}"));
        let mut strategy = Strategy {
            data: DataParallel::Zero1,
            tp: part("tensor_model_parallel_size"),
            pp: part("pipeline_model_parallel_size"),
            cp: part("context_parallel_size"),
            ep: part("expert_model_parallel_size"),
        };
        if gpus.is_some_and(|gpus| gpus / strategy.tp.saturating_mul(strategy.pp).max(1) <= 1) {
            strategy.data = DataParallel::None;
        }
        facts.strategy = Fact::read(strategy, format!("{ACTOR}.megatron"));
        facts.weights = Fact::default_of(Weights::Bf16, "verl with Megatron, with an fp32 copy");
    } else {
        let data = match kind.as_str() {
            "fsdp2" => DataParallel::Fsdp2,
            _ => DataParallel::Fsdp1,
        };
        let shard = keys
            .number(&format!("{ACTOR}.fsdp_config.fsdp_size"))
            .value()
            .copied();
        let hybrid =
            shard.is_some_and(|size| size > 0.0 && gpus.is_some_and(|gpus| size < gpus as f64));
        let strategy = Strategy {
            cp: size(format!("{ACTOR}.ulysses_sequence_parallel_size")),
            ..Strategy::from(if hybrid { DataParallel::Hsdp } else { data })
        };
        facts.strategy = Fact::follows(strategy, format!("{ACTOR}.strategy"));
        let kept = keys.text(&format!("{ACTOR}.fsdp_config.model_dtype"));
        facts.weights = match kept.value().map(String::as_str) {
            Some("bf16" | "bfloat16") => {
                Fact::read(Weights::Bf16, format!("{ACTOR}.fsdp_config.model_dtype"))
            }
            _ => Fact::default_of(Weights::Fp32, "verl's fsdp_config.model_dtype"),
        };
    }
    facts.compute = Fact::default_of(Compute::Bf16, "verl's mixed precision");
    let section = if kind == "megatron" {
        "megatron"
    } else {
        "fsdp_config"
    };
    let offloaded = |what: &str| on(&format!("{section}.{what}"));
    facts.offload = Fact::default_of(Offload::None, "verl");
    // Under FSDP what waits on the host between updates is a setting (`task.sampling_offload`).
    for what in ["param_offload", "optimizer_offload", "grad_offload"] {
        if kind == "megatron" && offloaded(what) {
            let effect = "in host memory between updates, on the GPU while they run";
            facts
                .not_modelled
                .push(format!("{ACTOR}.{section}.{what}: {effect}"));
        }
    }
    if on("fsdp_config.offload_policy") {
        facts.offload = Fact::read(Offload::Both, format!("{ACTOR}.fsdp_config.offload_policy"));
    }
}

fn micro(keys: &Keys, length: &Fact<u64>, gpus: Option<u64>) -> Fact<u64> {
    if keys.switch(&format!("{ACTOR}.use_dynamic_bsz")).value() == Some(&true) {
        let tokens = keys
            .whole(&format!("{ACTOR}.ppo_max_token_len_per_gpu"))
            .or_default(16_384, "verl's ppo_max_token_len_per_gpu");
        return match (tokens, length.value()) {
            (Fact::Known { value: tokens, .. }, Some(length)) => {
                let why = format!("a micro-batch of {tokens} tokens");
                Fact::follows((tokens / (*length).max(1)).max(1), why)
            }
            (Fact::Unknown(why), _) => Fact::Unknown(why),
            _ => Fact::Unsaid,
        };
    }
    keys.whole(&format!("{ACTOR}.ppo_micro_batch_size_per_gpu"))
        .or(keys.whole(&format!("{ACTOR}.micro_batch_size_per_gpu")))
        .or({
            // The older key counts the rows of all GPUs.
            let all = keys.whole(&format!("{ACTOR}.ppo_micro_batch_size"));
            common::divided(&all, gpus, "ppo_micro_batch_size")
        })
        .or(Fact::Unknown(
            "verl wants ppo_micro_batch_size_per_gpu".into(),
        ))
}

fn accumulation(keys: &Keys, facts: &mut Facts) {
    let prompts = keys
        .whole(&format!("{ACTOR}.ppo_mini_batch_size"))
        .or_default(256, "verl's ppo_mini_batch_size");
    let samples = facts.samples.value().copied().unwrap_or(1);
    let rows = prompts.map(|prompts| prompts.saturating_mul(samples));
    let model = facts.strategy.value().map_or(1, |spread| {
        spread
            .tp
            .saturating_mul(spread.pp)
            .saturating_mul(spread.cp)
    });
    let ranks = facts.gpus.value().map(|gpus| (gpus / model.max(1)).max(1));
    let by = ranks.zip(facts.micro_batch.value().copied());
    let by = by.map(|(ranks, micro)| ranks.saturating_mul(micro));
    facts.accumulation = common::divided(&rows, by, "a mini-batch of");
}

fn supervised(keys: &Keys, launch: &Launch) -> Facts {
    let mut facts = Facts::of("verl");
    facts.model = keys
        .text("model.partial_pretrain")
        .or(keys.text("model.path"));
    facts.task = Fact::follows(Task::Sft, "its module");
    facts.sequence = keys
        .whole("data.max_length")
        .or_default(1024, "verl's data.max_length");
    facts.micro_batch = keys
        .whole("data.micro_batch_size_per_gpu")
        .or(keys.whole("data.micro_batch_size"))
        .or_default(4, "verl's micro_batch_size_per_gpu");
    facts.batch_of_all = keys
        .whole("data.train_batch_size")
        .or_default(256, "verl's train_batch_size");
    facts.gpus = match &launch.gpus {
        Count::Known(count) => Fact::read(*count, "the launcher"),
        Count::Unknown(why) => Fact::Unknown(why.clone()),
    };
    facts.nodes = launch
        .nodes
        .map_or(Fact::Unsaid, |nodes| Fact::read(nodes, "the launcher"));
    let kind = keys
        .text("model.strategy")
        .or_default("fsdp2".into(), "verl's model.strategy");
    let cp = keys
        .whole("ulysses_sequence_parallel_size")
        .value()
        .copied()
        .unwrap_or(1)
        .max(1);
    facts.strategy = kind.and_then(|kind| {
        let data = match kind.as_str() {
            "fsdp" => DataParallel::Fsdp1,
            "fsdp2" => DataParallel::Fsdp2,
            _ => return None,
        };
        Some(Strategy {
            cp,
            ..Strategy::from(data)
        })
    });
    let kept = keys.text("model.fsdp_config.model_dtype");
    facts.weights = match kept.value().map(String::as_str) {
        Some("bf16" | "bfloat16") => Fact::read(Weights::Bf16, "model.fsdp_config.model_dtype"),
        _ => Fact::default_of(Weights::Fp32, "verl's model_dtype"),
    };
    facts.compute = Fact::default_of(Compute::Bf16, "verl's mixed precision");
    method(keys, keys.whole("model.lora_rank"), "model", &mut facts);
    facts.optimizer = Fact::default_of("adamw".into(), "verl");
    facts.checkpointing = common::checkpointing(
        keys.switch("model.enable_gradient_checkpointing")
            .or_default(true, "verl's enable_gradient_checkpointing"),
    );
    facts.attention = Fact::default_of(Attention::Flash, "verl");
    facts.packing = keys.switch("use_remove_padding").or_default(false, "verl");
    facts.offload = if keys.switch("model.fsdp_config.cpu_offload").value() == Some(&true) {
        Fact::read(Offload::Both, "model.fsdp_config.cpu_offload")
    } else {
        Fact::default_of(Offload::None, "verl")
    };
    facts
}

fn method(keys: &Keys, rank: Fact<u64>, at: &str, facts: &mut Facts) {
    match rank.value() {
        Some(size) if *size > 0 => {
            common::trains_lora(facts, rank, &format!("{at}.lora_rank"));
            facts.targets = keys
                .list(&format!("{at}.target_modules"))
                .or_default(vec!["all-linear".into()], "verl's target_modules");
        }
        _ => common::trains_all(facts),
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    #[test]
    fn rollouts_are_divided_over_ranks() {
        let run = "
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \\
  data.max_prompt_length=1024 data.max_response_length=1024 actor_rollout_ref.actor.ppo_mini_batch_size=64 \\
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 actor_rollout_ref.rollout.n=4 trainer.n_gpus_per_node=8 \\
  actor_rollout_ref.actor.fsdp_config.param_offload=True
";
        check(
            "run.sh",
            run,
            &[
                ("outcome", "estimate"),
                ("task", "grpo"),
                ("sequence", "2048"),
                ("accumulation", "8"),
                ("strategy", "fsdp1"),
                ("weights", "fp32"),
                ("samples", "4"),
            ],
        );
        let tuned = "torchrun --nproc_per_node=4 -m verl.trainer.fsdp_sft_trainer model.partial_pretrain=gpt2 data.train_batch_size=64 data.micro_batch_size_per_gpu=8";
        check(
            "sft.sh",
            tuned,
            &[
                ("task", "sft"),
                ("gpus", "4"),
                ("accumulation", "2"),
                ("strategy", "fsdp2"),
            ],
        );
    }
}
