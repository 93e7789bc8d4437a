//! `grpo_fast.py`, `grpo.py` and their predecessors: learners under DeepSpeed, vLLM on GPUs of its own.

use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::parts::stage_of;
use crate::programs::common;
use crate::words::{Attention, Compute, DataParallel, Offload, Strategy, Task, Weights};

pub fn read(keys: &Keys, file: &str) -> Facts {
    let mut facts = Facts::of("open-instruct");
    facts.model = keys.text("model_name_or_path");
    facts.task = if file.starts_with("ppo") {
        Fact::follows(Task::Ppo, "its script")
    } else {
        Fact::follows(Task::Grpo, "its script")
    };
    facts.micro_batch = keys
        .whole("per_device_train_batch_size")
        .or_default(1, "open-instruct's per_device_train_batch_size");
    let packs = matches!(file, "grpo_fast" | "grpo" | "ppo_fast");
    facts.sequence = if packs {
        keys.whole("pack_length")
            .or_default(512, "open-instruct's pack_length")
    } else {
        whole_length(keys)
    };
    facts.packing = Fact::default_of(packs, "open-instruct");
    facts.samples = keys
        .whole("num_samples_per_prompt_rollout")
        .or(keys.whole("number_samples_per_prompt"))
        .or_default(4, "open-instruct's num_samples_per_prompt_rollout");
    gpus(keys, &mut facts);
    let stage = keys
        .whole("deepspeed_stage")
        .or_default(0, "open-instruct's deepspeed_stage");
    let cp = keys
        .whole("sequence_parallel_size")
        .value()
        .copied()
        .unwrap_or(1)
        .max(1);
    facts.strategy = if file == "grpo" {
        let strategy = Strategy {
            cp,
            ..Strategy::from(DataParallel::Fsdp2)
        };
        Fact::default_of(strategy, "OLMo-core")
    } else {
        stage.and_then(|stage| {
            Some(Strategy {
                cp,
                ..Strategy::from(stage_of(*stage)?)
            })
        })
    };
    let on = |key: &str| keys.switch(key).value() == Some(&true);
    facts.offload = match (
        on("deepspeed_offload_optimizer"),
        on("deepspeed_offload_param"),
    ) {
        (true, true) => Fact::read(Offload::Both, "deepspeed_offload_param"),
        (true, false) => Fact::read(Offload::Optimizer, "deepspeed_offload_optimizer"),
        (false, true) => Fact::read(Offload::Parameters, "deepspeed_offload_param"),
        (false, false) => Fact::default_of(Offload::None, "open-instruct"),
    };
    facts.weights = Fact::default_of(Weights::Bf16, "open-instruct's DeepSpeed engine");
    facts.compute = Fact::default_of(Compute::Bf16, "open-instruct's DeepSpeed engine");
    common::trains_all(&mut facts);
    facts.optimizer = Fact::default_of("adamw".into(), "open-instruct");
    facts.checkpointing = common::checkpointing(
        keys.switch("gradient_checkpointing")
            .or_default(false, "open-instruct's gradient_checkpointing"),
    );
    facts.attention = Fact::default_of(Attention::Flash, "open-instruct");
    facts.vllm = keys
        .number("vllm_gpu_memory_utilization")
        .or_default(0.9, "open-instruct's vllm_gpu_memory_utilization")
        .map(Some);
    facts
}

fn whole_length(keys: &Keys) -> Fact<u64> {
    let prompt = keys
        .whole("max_prompt_token_length")
        .or_default(256, "open-instruct");
    let answer = keys
        .whole("response_length")
        .or_default(53, "open-instruct");
    match (prompt, answer) {
        (Fact::Known { value: prompt, .. }, Fact::Known { value: answer, .. }) => {
            let why = "max_prompt_token_length and response_length";
            Fact::read(prompt.saturating_add(answer), why)
        }
        (Fact::Unknown(why), _) | (_, Fact::Unknown(why)) => Fact::Unknown(why),
        _ => Fact::Unsaid,
    }
}

fn gpus(keys: &Keys, facts: &mut Facts) {
    let learners = keys
        .list("num_learners_per_node")
        .or(keys.list("actor_num_gpus_per_node"))
        .value()
        .map_or(1, |each| {
            each.iter()
                .filter_map(|count| count.parse::<u64>().ok())
                .sum()
        });
    let size = |key: &str| keys.whole(key).value().copied().unwrap_or(1);
    let generating = size("vllm_num_engines").saturating_mul(size("vllm_tensor_parallel_size"));
    facts.gpus = if keys.switch("single_gpu_mode").value() == Some(&true) {
        Fact::read(1, "single_gpu_mode")
    } else {
        facts.trained_on = Fact::follows(learners, "the learners' GPUs");
        Fact::follows(
            learners.saturating_add(generating),
            "learners and vLLM engines",
        )
    };
}
