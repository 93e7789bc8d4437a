//! A run of verl: its configuration, or the words of its command line, which are the same keys.

use super::Imported;
use super::take::Take;
use super::tools::every_linear;
use headroom_base::document::Document;
use headroom_catalog as catalog;

/// Whether the document is such a configuration.
pub fn recognises(document: &Document) -> bool {
    let actor = document.get("actor_rollout_ref");
    let model = document.get("model");
    actor.is_some_and(|actor| actor.get("model").is_some() || actor.get("actor").is_some())
        || model.is_some_and(|model| model.get("partial_pretrain").is_some())
}

/// Words of a command that are read.
const WORDS: usize = 2_000;

/// The words behind a program of verl as the document that its configuration would be.
pub fn document(words: &[String]) -> Document {
    let mut document = Document::new();
    for word in words.iter().take(WORDS) {
        let Some((key, value)) = word.trim_start_matches('+').split_once('=') else {
            continue;
        };
        // What only running the script would tell is not said.
        let plain = |part: &str| part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if value.is_empty() || key.split('.').count() > 8 || !key.split('.').all(plain) {
            continue;
        }
        *document.at(key.split('.')) = said(value);
    }
    document
}

fn said(word: &str) -> Document {
    match word {
        "true" | "True" => return Document::Bool(true),
        "false" | "False" => return Document::Bool(false),
        "null" | "None" => return Document::Null,
        _ => {}
    }
    if let Ok(whole) = word.parse::<i128>() {
        return Document::Int(whole);
    }
    let list = word
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    match list {
        Some(items) => {
            let item = |item: &str| Document::from(item.trim().trim_matches(['\'', '"']));
            Document::List(items.split(',').map(item).collect())
        }
        None => word.into(),
    }
}

/// The default scenario with what the policy's update takes.
pub fn read(document: &Document) -> Imported {
    let mut take = Take::new(document);
    let tuned = document.get("actor_rollout_ref").is_none();
    let model = if tuned {
        "model."
    } else {
        "actor_rollout_ref.model."
    };
    let actor = if tuned {
        ""
    } else {
        "actor_rollout_ref.actor."
    };
    let of_model = |key: &str| format!("{model}{key}");
    let of_actor = |key: &str| format!("{actor}{key}");
    name(&mut take, &[of_model("partial_pretrain"), of_model("path")]);
    gpus(&mut take);
    strategy(
        &mut take,
        &of_actor("strategy"),
        &of_model("strategy"),
        tuned,
    );
    // Where nothing is said (verl/trainer/config/sft_trainer.yaml, actor/dp_actor.yaml, model/hf_model.yaml, optim/fsdp.yaml):
    // float32 weights, of which FSDP gathers bfloat16 ones; every layer is checkpointed; gradients are clipped at 1.
    take.set("training.precision", "amp-bf16");
    take.set("training.checkpointing", "layers");
    take.set("training.clip", "on");
    for key in ["fsdp_config.model_dtype", "fsdp_config.dtype"] {
        for key in [of_actor(key), of_model(key)] {
            match take.text(&key) {
                Some("bf16" | "bfloat16") if key.ends_with("model_dtype") => {
                    take.set("training.precision", "bf16");
                }
                Some("fp32" | "float32" | "bf16" | "bfloat16") | None => {}
                Some(_) => take.leave(&key),
            }
        }
    }
    take.checkpointing(&of_model("enable_gradient_checkpointing"));
    if take.switch(&of_model("enable_activation_offload")) == Some(true) {
        take.set("training.checkpointing", "offload");
    }
    if take.switch(&of_model("use_liger")) == Some(true) {
        take.set("training.kernels", "liger");
        take.set("training.loss", "liger-linear");
    }
    adapters(
        &mut take,
        &of_model("lora_rank"),
        &of_model("target_modules"),
    );
    let trained_before = of_model("lora_adapter_path");
    if take
        .seen(&trained_before)
        .is_some_and(|path| matches!(path, Document::Text(_)))
    {
        take.value(&trained_before);
        if take.imported.scenario.training.lora.is_none() {
            take.lora();
            every_linear(&mut take, &of_model("target_modules"));
            let note =
                "the adapters are those of lora_adapter_path, whose rank the file does not say";
            take.imported.notes.push(note.into());
        }
    }
    if tuned {
        take.set("data.micro_batch", "4");
        take.set("data.sequence", "1024");
        take.copy("data.micro_batch_size", "data.micro_batch");
        take.copy("data.micro_batch_size_per_gpu", "data.micro_batch");
        take.copy("data.max_length", "data.sequence");
        take.copy("ulysses_sequence_parallel_size", "parallel.cp");
    } else {
        updates(&mut take, &of_actor);
    }
    take.finish(WITHOUT_EFFECT)
}

/// The model by what the hub calls it, or by the last part of its path.
fn name(take: &mut Take, keys: &[String]) {
    for key in keys {
        if let Some(name) = take.text(key) {
            let found = catalog::model_named(name).map(|entry| entry.id);
            return take.model(key, name, found);
        }
    }
    let key = keys.last().map_or("model", String::as_str);
    take.model(key, "", None);
}

/// GPUs of all machines.
fn gpus(take: &mut Take) {
    let count = |take: &mut Take, key: &str| match take.value(key) {
        Some(Document::Int(count)) => u32::try_from(*count).ok().filter(|count| *count > 0),
        _ => None,
    };
    let nodes = count(take, "trainer.nnodes").unwrap_or(1);
    let each = count(take, "trainer.n_gpus_per_node").unwrap_or(8);
    let all = each.saturating_mul(nodes);
    take.set("hardware.gpus", &all.to_string());
    if nodes > 1 {
        take.set("hardware.nodes", &nodes.to_string());
    }
}

/// How the GPUs share the policy: by FSDP of the first version where nothing is said, of the second in fine-tuning.
fn strategy(take: &mut Take, of_actor: &str, of_model: &str, tuned: bool) {
    let said = take.text(of_actor).or_else(|| take.text(of_model));
    let one = take.imported.scenario.hardware.gpus < 2;
    let strategy = match said.unwrap_or(if tuned { "fsdp2" } else { "fsdp" }) {
        "fsdp" => "fsdp1",
        "fsdp2" => "fsdp2",
        "megatron" => return megatron(take),
        _ => {
            take.leave(of_actor);
            return take.leave(of_model);
        }
    };
    if !one {
        take.set("parallel.strategy", strategy);
    }
}

/// Megatron-Core's own division.
fn megatron(take: &mut Take) {
    take.trainer("megatron");
    for (key, field) in [
        ("tensor_model_parallel_size", "parallel.tp"),
        ("pipeline_model_parallel_size", "parallel.pp"),
        ("context_parallel_size", "parallel.cp"),
        ("expert_model_parallel_size", "parallel.ep"),
    ] {
        take.copy(&format!("actor_rollout_ref.actor.megatron.{key}"), field);
    }
}

fn adapters(take: &mut Take, rank: &str, targets: &str) {
    match take.value(rank) {
        Some(Document::Int(found)) if *found > 0 => {}
        _ => {
            take.value(targets);
            return;
        }
    }
    take.lora();
    take.copy(rank, "training.lora.rank");
    match take.text(targets) {
        None if take.seen(targets).is_some() => take.targets(targets, "training.lora.targets"),
        None | Some("all-linear") => every_linear(take, targets),
        Some(_) => take.targets(targets, "training.lora.targets"),
    }
}

/// What one update of the policy takes: prompt and completion of so many samples, or so many tokens in a row.
fn updates(take: &mut Take, of_actor: &impl Fn(&str) -> String) {
    let tokens = |take: &mut Take, key: &str| match take.value(key) {
        Some(Document::Int(count)) => u64::try_from(*count).unwrap_or(0),
        _ => 512,
    };
    let prompt = tokens(take, "data.max_prompt_length");
    let completion = tokens(take, "data.max_response_length");
    let dynamic = take.switch(&of_actor("use_dynamic_bsz")) == Some(true);
    if dynamic {
        take.set("data.micro_batch", "1");
        // ppo_max_token_len_per_gpu where nothing is said (actor/actor.yaml).
        take.set("data.sequence", "16384");
        take.copy(&of_actor("ppo_max_token_len_per_gpu"), "data.sequence");
        take.set("data.packing", "on");
    } else {
        take.set(
            "data.sequence",
            &prompt.saturating_add(completion).to_string(),
        );
        take.copy(&of_actor("ppo_micro_batch_size"), "data.micro_batch");
        take.copy(
            &of_actor("ppo_micro_batch_size_per_gpu"),
            "data.micro_batch",
        );
    }
    take.copy(&of_actor("ulysses_sequence_parallel_size"), "parallel.cp");
    take.imported.notes.push(
        "the answer is of the policy's update: the rollouts, the reference, the critic and the passes for log-probabilities are \
         not modelled"
            .into(),
    );
}

const WITHOUT_EFFECT: &[&str] = &[
    "algorithm",
    "data",
    "optim.lr",
    "optim.betas",
    "optim.weight_decay",
    "optim.lr_warmup_steps_ratio",
    "optim.lr_scheduler",
    "trainer",
    "actor_rollout_ref.actor.optim",
    "actor_rollout_ref.actor.ppo_mini_batch_size",
    "actor_rollout_ref.actor.use_kl_loss",
    "actor_rollout_ref.actor.kl_loss_coef",
    "actor_rollout_ref.actor.kl_loss_type",
    "actor_rollout_ref.actor.entropy_coeff",
    "actor_rollout_ref.actor.clip_ratio_low",
    "actor_rollout_ref.actor.clip_ratio_high",
    "actor_rollout_ref.actor.clip_ratio_c",
    "actor_rollout_ref.actor.loss_agg_mode",
    "actor_rollout_ref.actor.fsdp_config.param_offload",
    "actor_rollout_ref.actor.fsdp_config.optimizer_offload",
    "actor_rollout_ref.actor.fsdp_config.grad_offload",
    "actor_rollout_ref.actor.fsdp_config.fsdp_size",
    "actor_rollout_ref.model.lora_alpha",
    "actor_rollout_ref.model.trust_remote_code",
    "actor_rollout_ref.model.use_remove_padding",
    "actor_rollout_ref.model.use_shm",
    "model.lora_alpha",
    "model.trust_remote_code",
];

#[cfg(test)]
mod tests {
    use crate::import::script;
    use headroom_scenario::{Scenario, settings};

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let imported = script(text, &Scenario::default()).unwrap();
        assert_eq!((&imported.problems, &imported.question), (&vec![], &None));
        for (key, value) in expected {
            let setting = settings::named(key).unwrap();
            assert_eq!(setting.get(&imported.scenario), *value, "{key}");
        }
    }

    #[test]
    fn commands_are_read_as_their_configuration() {
        check(
            "response=$((1024 * 4))\npython3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.max_prompt_length=512 \
             data.max_response_length=${response} actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct \\\n \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 actor_rollout_ref.model.lora_rank=64 \
             actor_rollout_ref.rollout.n=5 trainer.n_gpus_per_node=4 trainer.nnodes=2 $@",
            &[
                ("model", "qwen2-7b"),
                ("seq", "4608"),
                ("mb", "2"),
                ("gpus", "8"),
                ("nodes", "2"),
                ("par", "fsdp1"),
                ("precision", "amp-bf16"),
                ("ckpt", "layers"),
                ("lora_rank", "64"),
                (
                    "lora_targets",
                    "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj",
                ),
            ],
        );
        check(
            "torchrun --nproc_per_node=2 -m verl.trainer.fsdp_sft_trainer data.micro_batch_size_per_gpu=8 +data.max_length=2048 \
             model.partial_pretrain=Qwen/Qwen2.5-0.5B-Instruct model.enable_gradient_checkpointing=False",
            &[
                ("model", "qwen2.5-0.5b"),
                ("seq", "2048"),
                ("mb", "8"),
                ("gpus", "2"),
                ("par", "fsdp2"),
                ("ckpt", "none"),
                ("lora", "off"),
            ],
        );
    }

    #[test]
    fn a_model_that_is_not_known_is_asked_for() {
        let text =
            "python -m verl.trainer.main_ppo actor_rollout_ref.model.path=somebody/Unheard-Of-9B";
        let imported = script(text, &Scenario::default()).unwrap();
        assert!(imported.question.is_some());
    }
}
