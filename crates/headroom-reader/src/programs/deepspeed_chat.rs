//! DeepSpeed-Chat: `main.py` of its three steps.
//!
//! Defaults are those of `training/step*/main.py` and `dschat/utils/ds_utils.py` in DeepSpeedExamples.

use headroom_scripts::shell::{Count, Launch};

use super::common;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::parts::stage_of;
use crate::program::{Form, Program, Source};
use crate::words::{
    Adapter, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Trained, Weights,
};

pub const PROGRAM: Program = Program {
    id: "deepspeed-chat",
    name: "DeepSpeed-Chat",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    let Form::Command { launch, flags } = &source.form else {
        return None;
    };
    if !launch.program.text.ends_with("main.py") {
        return None;
    }
    if flags.has("actor_model_name_or_path") && flags.has("critic_model_name_or_path") {
        return Some(reinforced(flags, launch));
    }
    let own =
        flags.has("data_split") || flags.has("sft_only_data_path") || flags.has("lora_module_name");
    (own && flags.has("model_name_or_path")).then(|| tuned(flags, launch, source))
}

fn tuned(flags: &Keys, launch: &Launch, source: &Source) -> Facts {
    let mut facts = Facts::of("torch");
    facts.model = flags.text("model_name_or_path");
    // The steps have the same flags; what differs is the folder that the script is in.
    let place = format!("{} {}", source.name, launch.program.text);
    facts.task = if place.contains("dpo") || flags.has("beta") {
        Fact::follows(Task::Dpo, "step 2 by DPO")
    } else if place.contains("reward") || flags.has("num_padding_at_beginning") {
        Fact::follows(Task::Reward, "step 2")
    } else {
        Fact::follows(Task::Sft, "step 1")
    };
    facts.micro_batch = flags
        .whole("per_device_train_batch_size")
        .or_default(16, "DeepSpeed-Chat's per_device_train_batch_size");
    facts.sequence = flags
        .whole("max_seq_len")
        .or_default(512, "DeepSpeed-Chat's max_seq_len");
    facts.checkpointing = checkpointing(flags, "gradient_checkpointing");
    shared(flags, launch, "zero_stage", "lora_dim", &mut facts);
    facts.evaluation = Fact::default_of(true, "DeepSpeed-Chat");
    facts
}

fn reinforced(flags: &Keys, launch: &Launch) -> Facts {
    let mut facts = Facts::of("torch");
    facts.model = flags.text("actor_model_name_or_path");
    facts.task = Fact::follows(Task::Ppo, "step 3");
    facts.micro_batch = flags
        .whole("per_device_training_batch_size")
        .or_default(16, "DeepSpeed-Chat's per_device_training_batch_size");
    let part = |name: &str| flags.whole(name).or_default(256, "DeepSpeed-Chat");
    facts.sequence = match (part("max_prompt_seq_len"), part("max_answer_seq_len")) {
        (Fact::Known { value: prompt, .. }, Fact::Known { value: answer, .. }) => Fact::read(
            prompt.saturating_add(answer),
            "max_prompt_seq_len and max_answer_seq_len",
        ),
        (Fact::Unknown(why), _) | (_, Fact::Unknown(why)) => Fact::Unknown(why),
        _ => Fact::Unsaid,
    };
    facts.checkpointing = checkpointing(flags, "actor_gradient_checkpointing");
    shared(
        flags,
        launch,
        "actor_zero_stage",
        "actor_lora_dim",
        &mut facts,
    );
    facts.vllm = Fact::default_of(None, "DeepSpeed-Chat generates with the model itself");
    for (key, effect) in [
        (
            "enable_hybrid_engine",
            "the actor is gathered, and a cache of keys and values is kept while it generates",
        ),
        ("enable_ema", "an average of the actor's weights"),
        (
            "offload_reference_model",
            "the reference's weights are in host memory",
        ),
    ] {
        if flags.switch(key).value() == Some(&true) {
            facts.not_modelled.push(format!("--{key}: {effect}"));
        }
    }
    facts
}

fn checkpointing(flags: &Keys, key: &str) -> Fact<Checkpointing> {
    common::checkpointing(flags.switch(key).or_default(false, "DeepSpeed-Chat"))
}

fn shared(flags: &Keys, launch: &Launch, stage: &str, rank: &str, facts: &mut Facts) {
    facts.accumulation = flags
        .whole("gradient_accumulation_steps")
        .or_default(1, "DeepSpeed-Chat's gradient_accumulation_steps");
    let stage = flags
        .whole(stage)
        .or_default(0, "DeepSpeed-Chat's zero_stage");
    facts.strategy = stage.and_then(|stage| stage_of(*stage).map(Strategy::from));
    facts.gpus = match &launch.gpus {
        Count::Known(count) => Fact::read(*count, "the launcher"),
        Count::Unknown(why) => Fact::Unknown(why.clone()),
    };
    facts.nodes = launch
        .nodes
        .map_or(Fact::Unsaid, |nodes| Fact::read(nodes, "the launcher"));
    let on_host = flags.switch("offload").value() == Some(&true);
    let whole = facts
        .strategy
        .value()
        .is_some_and(|strategy| strategy.data == DataParallel::Zero3);
    facts.offload = match (on_host, whole) {
        (true, true) => Fact::read(Offload::Both, "offload"),
        (true, false) => Fact::read(Offload::Optimizer, "offload"),
        (false, _) => Fact::default_of(Offload::None, "DeepSpeed-Chat"),
    };
    let dtype = flags
        .text("dtype")
        .or_default("fp16".into(), "DeepSpeed-Chat's dtype");
    facts.weights = dtype.clone().and_then(|name| match name.as_str() {
        "fp16" => Some(Weights::Fp16),
        "bf16" => Some(Weights::Bf16),
        _ => None,
    });
    facts.compute = dtype.and_then(|name| match name.as_str() {
        "fp16" => Some(Compute::Fp16),
        "bf16" => Some(Compute::Bf16),
        _ => None,
    });
    let rank = flags.whole(rank);
    if rank.value().is_some_and(|rank| *rank > 0) || matches!(rank, Fact::Unknown(_)) {
        let alone = flags.switch("only_optimize_lora").value() == Some(&true);
        facts.adapter = Fact::read(Some(Adapter::Lora), "lora_dim");
        facts.rank = rank;
        facts.targets = Fact::default_of(
            vec!["all-linear".into()],
            "DeepSpeed-Chat's lora_module_name",
        );
        facts.trained = if alone {
            Fact::read(Trained::Adapters, "only_optimize_lora")
        } else {
            // Only the layers that have adapters are frozen.
            let rest = ["embeddings".into(), "norms".into(), "biases".into()];
            Fact::follows(
                Trained::AdaptersAnd(rest.into()),
                "there is no only_optimize_lora",
            )
        };
    } else {
        common::trains_all(facts);
    }
    facts.optimizer = if on_host {
        Fact::follows("DeepSpeedCPUAdam".into(), "offload")
    } else {
        Fact::default_of("FusedAdam".into(), "DeepSpeed-Chat")
    };
    facts.liger = Fact::default_of(false, "DeepSpeed-Chat");
    facts.packing = Fact::default_of(false, "DeepSpeed-Chat");
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    #[test]
    fn a_stage_that_may_be_given_has_its_default() {
        let run = "
ZERO_STAGE=$2
if [ \"$ZERO_STAGE\" == \"\" ]; then
    ZERO_STAGE=3
fi
deepspeed main.py --data_split 2,4,4 --model_name_or_path facebook/opt-1.3b --per_device_train_batch_size 4 --max_seq_len 512 \\
  --zero_stage $ZERO_STAGE --offload --lora_dim 64 --deepspeed
";
        check(
            "step1/run.sh",
            run,
            &[
                ("outcome", "question"),
                ("asks", "gpus"),
                ("strategy", "zero3"),
                ("offload", "both"),
                ("rank", "64"),
                ("trained", "adapters + embeddings + norms + biases"),
                ("compute", "fp16"),
            ],
        );
        let on_one = run.replace("deepspeed main.py", "deepspeed --num_gpus 2 main.py");
        check(
            "step2_reward/run.sh",
            &on_one,
            &[("outcome", "estimate"), ("gpus", "2"), ("task", "reward")],
        );
    }
}
