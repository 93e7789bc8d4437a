//! verl: its configuration, or its command line, which has the same keys.

use super::Imported;
use super::take::KeyReader;
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

/// The default scenario with the settings of the policy's update.
pub fn read(document: &Document) -> Imported {
    let mut reader = KeyReader::new(document);
    let fine_tunes = document.get("actor_rollout_ref").is_none();
    let model = if fine_tunes {
        "model."
    } else {
        "actor_rollout_ref.model."
    };
    let actor = if fine_tunes {
        ""
    } else {
        "actor_rollout_ref.actor."
    };
    let of_model = |key: &str| format!("{model}{key}");
    let of_actor = |key: &str| format!("{actor}{key}");
    name(
        &mut reader,
        &[of_model("partial_pretrain"), of_model("path")],
    );
    gpus(&mut reader);
    strategy(
        &mut reader,
        &of_actor("strategy"),
        &of_model("strategy"),
        fine_tunes,
    );
    // Defaults (verl/trainer/config/sft_trainer.yaml, actor/dp_actor.yaml, model/hf_model.yaml, optim/fsdp.yaml):
    // float32 weights, of which FSDP gathers bfloat16 ones; every layer is checkpointed; gradients are clipped at 1.
    reader.set("training.precision", "amp-bf16");
    reader.set("training.checkpointing", "layers");
    reader.set("training.clip", "on");
    for key in ["fsdp_config.model_dtype", "fsdp_config.dtype"] {
        for key in [of_actor(key), of_model(key)] {
            match reader.text(&key) {
                Some("bf16" | "bfloat16") if key.ends_with("model_dtype") => {
                    reader.set("training.precision", "bf16");
                }
                Some("fp32" | "float32" | "bf16" | "bfloat16") | None => {}
                Some(_) => reader.mark_unused(&key),
            }
        }
    }
    reader.checkpointing(&of_model("enable_gradient_checkpointing"));
    if reader.switch(&of_model("enable_activation_offload")) == Some(true) {
        reader.set("training.checkpointing", "offload");
    }
    if reader.switch(&of_model("use_liger")) == Some(true) {
        reader.set("training.kernels", "liger");
        reader.set("training.loss", "liger-linear");
    }
    adapters(
        &mut reader,
        &of_model("lora_rank"),
        &of_model("target_modules"),
    );
    let trained_before = of_model("lora_adapter_path");
    if reader
        .peek(&trained_before)
        .is_some_and(|path| matches!(path, Document::Text(_)))
    {
        reader.value(&trained_before);
        if reader.imported.scenario.training.lora.is_none() {
            reader.lora();
            every_linear(&mut reader, &of_model("target_modules"));
            let note =
                "the adapters are loaded from lora_adapter_path, whose rank is not in the file";
            reader.imported.notes.push(note.into());
        }
    }
    if fine_tunes {
        reader.set("data.micro_batch", "4");
        reader.set("data.sequence", "1024");
        reader.copy("data.micro_batch_size", "data.micro_batch");
        reader.copy("data.micro_batch_size_per_gpu", "data.micro_batch");
        reader.copy("data.max_length", "data.sequence");
        reader.copy("ulysses_sequence_parallel_size", "parallel.cp");
    } else {
        updates(&mut reader, &of_actor);
    }
    reader.finish(WITHOUT_EFFECT)
}

/// The model by what the hub calls it, or by the last part of its path.
fn name(reader: &mut KeyReader, keys: &[String]) {
    for key in keys {
        if let Some(name) = reader.text(key) {
            let found = catalog::model_named(name).map(|entry| entry.id);
            return reader.model(key, name, found);
        }
    }
    let key = keys.last().map_or("model", String::as_str);
    reader.model(key, "", None);
}

/// GPUs of all machines.
fn gpus(reader: &mut KeyReader) {
    let count = |reader: &mut KeyReader, key: &str| match reader.value(key) {
        Some(Document::Int(count)) => u32::try_from(*count).ok().filter(|count| *count > 0),
        _ => None,
    };
    let nodes = count(reader, "trainer.nnodes").unwrap_or(1);
    let each = count(reader, "trainer.n_gpus_per_node").unwrap_or(8);
    let all = each.saturating_mul(nodes);
    reader.set("hardware.gpus", &all.to_string());
    if nodes > 1 {
        reader.set("hardware.nodes", &nodes.to_string());
    }
}

/// The policy's parallel strategy: FSDP 1 by default, FSDP 2 in fine-tuning.
fn strategy(reader: &mut KeyReader, of_actor: &str, of_model: &str, fine_tunes: bool) {
    let strategy_name = reader.text(of_actor).or_else(|| reader.text(of_model));
    let one = reader.imported.scenario.hardware.gpus < 2;
    let strategy = match strategy_name.unwrap_or(if fine_tunes { "fsdp2" } else { "fsdp" }) {
        "fsdp" => "fsdp1",
        "fsdp2" => "fsdp2",
        "megatron" => return megatron(reader),
        _ => {
            reader.mark_unused(of_actor);
            return reader.mark_unused(of_model);
        }
    };
    if !one {
        reader.set("parallel.strategy", strategy);
    }
}

/// Megatron-Core's own division.
fn megatron(reader: &mut KeyReader) {
    reader.trainer("megatron");
    for (key, field) in [
        ("tensor_model_parallel_size", "parallel.tp"),
        ("pipeline_model_parallel_size", "parallel.pp"),
        ("context_parallel_size", "parallel.cp"),
        ("expert_model_parallel_size", "parallel.ep"),
    ] {
        reader.copy(&format!("actor_rollout_ref.actor.megatron.{key}"), field);
    }
}

fn adapters(reader: &mut KeyReader, rank: &str, targets: &str) {
    match reader.value(rank) {
        Some(Document::Int(found)) if *found > 0 => {}
        _ => {
            reader.value(targets);
            return;
        }
    }
    reader.lora();
    reader.copy(rank, "training.lora.rank");
    match reader.text(targets) {
        None if reader.peek(targets).is_some() => reader.targets(targets, "training.lora.targets"),
        None | Some("all-linear") => every_linear(reader, targets),
        Some(_) => reader.targets(targets, "training.lora.targets"),
    }
}

/// The batch of one policy update: prompts and completions of so many samples, or rows of so many tokens.
fn updates(reader: &mut KeyReader, of_actor: &impl Fn(&str) -> String) {
    let tokens = |reader: &mut KeyReader, key: &str| match reader.value(key) {
        Some(Document::Int(count)) => u64::try_from(*count).unwrap_or(0),
        _ => 512,
    };
    let prompt = tokens(reader, "data.max_prompt_length");
    let completion = tokens(reader, "data.max_response_length");
    let dynamic = reader.switch(&of_actor("use_dynamic_bsz")) == Some(true);
    if dynamic {
        reader.set("data.micro_batch", "1");
        // The default of ppo_max_token_len_per_gpu (actor/actor.yaml).
        reader.set("data.sequence", "16384");
        reader.copy(&of_actor("ppo_max_token_len_per_gpu"), "data.sequence");
        // Samples fill a row without padding between them.
        reader.set("data.padding_mask", "off");
    } else {
        reader.set(
            "data.sequence",
            &prompt.saturating_add(completion).to_string(),
        );
        reader.copy(&of_actor("ppo_micro_batch_size"), "data.micro_batch");
        reader.copy(
            &of_actor("ppo_micro_batch_size_per_gpu"),
            "data.micro_batch",
        );
    }
    reader.copy(&of_actor("ulysses_sequence_parallel_size"), "parallel.cp");
    rollouts(reader);
}

/// vLLM on the training cards, and the passes over what it sampled (verl/workers/fsdp_workers.py).
fn rollouts(reader: &mut KeyReader) {
    const ROLLOUT: &str = "actor_rollout_ref.rollout.";
    const ACTOR: &str = "actor_rollout_ref.actor.";
    let of_rollout = |key: &str| format!("{ROLLOUT}{key}");
    let of_actor = |key: &str| format!("{ACTOR}{key}");
    if reader.text(&of_actor("strategy")) == Some("megatron") {
        let note = "the prediction is for the policy's update: rollouts, reference and critic under Megatron-Core are not modelled";
        return reader.imported.notes.push(note.into());
    }
    reader.trainer("verl");
    match reader.text(&of_rollout("name")) {
        Some("vllm" | "sglang") | None => {}
        Some(_) => reader.mark_unused(&of_rollout("name")),
    }
    reader.copy(&of_rollout("gpu_memory_utilization"), "task.vllm_share");
    reader.copy(&of_actor("ppo_epochs"), "task.iterations");
    reader.copy(&of_rollout("tensor_model_parallel_size"), "task.vllm_tp");
    if reader.switch(&of_rollout("free_cache_engine")) == Some(false) {
        reader.set("task.vllm_sleep", "off");
    }
    for key in [
        "log_prob_micro_batch_size_per_gpu",
        "log_prob_micro_batch_size",
    ] {
        reader.copy(&of_rollout(key), "task.scored_rows");
    }
    let [parameters, optimizer] = ["param_offload", "optimizer_offload"]
        .map(|key| reader.switch(&of_actor(&format!("fsdp_config.{key}"))) == Some(true));
    let waits = match (parameters, optimizer) {
        (false, false) => "none",
        (true, false) => "parameters",
        (false, true) => "optimizer",
        (true, true) => "both",
    };
    reader.set("task.sampling_offload", waits);
    let compared = [of_actor("use_kl_loss"), "algorithm.use_kl_in_reward".into()]
        .iter()
        .any(|key| reader.switch(key) == Some(true));
    let adapters = reader.imported.scenario.training.lora.is_some();
    reader.set(
        "task.reference",
        match (compared, adapters) {
            (false, _) => "none",
            (true, true) => "adapters-off",
            (true, false) => "copy",
        },
    );
    // `CPUOffload(offload_params=True)` of every reference, whatever its own switch says.
    reader.set("task.reference_type", "same");
    if reader.switch("actor_rollout_ref.model.use_fused_kernels") == Some(true) {
        reader.set("task.head", "fused");
    }
}

const WITHOUT_EFFECT: &[&str] = &[
    "algorithm",
    "custom_reward_function",
    "data",
    "defaults",
    "reward",
    "reward_model.enable",
    "reward_model.reward_manager",
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
    "actor_rollout_ref.actor.fsdp_config.grad_offload",
    "actor_rollout_ref.actor.fsdp_config.fsdp_size",
    "actor_rollout_ref.model.lora_alpha",
    "actor_rollout_ref.model.trust_remote_code",
    "actor_rollout_ref.model.use_remove_padding",
    "actor_rollout_ref.model.use_shm",
    "actor_rollout_ref.ref",
    "actor_rollout_ref.rollout.data_parallel_size",
    "actor_rollout_ref.rollout.max_num_batched_tokens",
    "actor_rollout_ref.rollout.max_num_seqs",
    "actor_rollout_ref.rollout.enforce_eager",
    "actor_rollout_ref.rollout.load_format",
    "actor_rollout_ref.rollout.layered_summon",
    "actor_rollout_ref.rollout.temperature",
    "actor_rollout_ref.rollout.top_p",
    "actor_rollout_ref.rollout.mode",
    "actor_rollout_ref.rollout.n",
    "actor_rollout_ref.rollout.val_kwargs",
    "model.lora_alpha",
    "model.trust_remote_code",
];

#[cfg(test)]
mod tests {
    use crate::import::{Input, files};
    use headroom_scenario::{resolve::resolve, settings};
    use headroom_scripts::{Alone, File};

    fn script(text: &str) -> Input {
        let file = File {
            name: "run.sh".into(),
            text: text.into(),
        };
        files(&[file], &Alone, None)
    }

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let imported = script(text);
        assert_eq!(imported.problems, vec![]);
        let scenario = resolve(&imported.draft).scenario;
        for (key, value) in expected {
            let setting = settings::named(key).unwrap();
            assert_eq!(setting.get(&scenario), *value, "{key}");
        }
    }

    #[test]
    fn supervised_fine_tuning_is_read_too() {
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
        assert!(!script(text).asks.is_empty());
    }
}
