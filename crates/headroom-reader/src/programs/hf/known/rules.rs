//! What the code of scripts that many people start decides besides their flags.

use crate::fact::Fact;
use crate::facts::{Ask, Facts};
use crate::keys::Keys;
use crate::programs::hf::{adapters, arguments, precision};
use crate::words::{
    Adapter, Attention, Checkpointing, Compute, DataParallel, Task, Trained, Weights,
};

pub(super) fn on(flags: &Keys, key: &str) -> bool {
    flags.switch(key).value() == Some(&true)
}

/// `from_pretrained` without a type, in a version of transformers that then takes fp32.
pub(super) fn fp32_weights(_: &Keys, facts: &mut Facts) {
    if facts.weights.is_unsaid() {
        facts.weights = Fact::default_of(Weights::Fp32, "from_pretrained without a dtype");
    }
}

pub(super) fn full(facts: &mut Facts, why: &str) {
    facts.adapter = Fact::follows(None, why);
    facts.trained = Fact::follows(Trained::All, why);
}

pub(super) fn qlora(flags: &Keys, facts: &mut Facts) {
    let sum = |a: &str, b: &str| {
        Some(
            flags
                .whole(a)
                .value()?
                .saturating_add(*flags.whole(b).value()?),
        )
    };
    if let Some(length) = sum("source_max_len", "target_max_len") {
        facts.sequence = Fact::follows(length, "source_max_len and target_max_len");
    }
    if on(flags, "full_finetune") {
        full(facts, "full_finetune");
        return;
    }
    facts.weights = match flags.whole("bits").value() {
        Some(4)
            if flags
                .text("quant_type")
                .value()
                .is_some_and(|kind| kind == "fp4") =>
        {
            Fact::read(Weights::Fp4, "quant_type")
        }
        Some(4) => Fact::read(Weights::Nf4, "bits"),
        Some(8) => Fact::read(Weights::Int8, "bits"),
        _ => match facts.compute.value() {
            Some(Compute::Bf16Autocast) => Fact::follows(Weights::Bf16, "bf16"),
            _ => Fact::follows(Weights::Fp32, "neither bits nor bf16"),
        },
    };
    adapters::lora(flags, facts, &["lora_r"], 64, "QLoRA's lora_r");
    facts.targets = Fact::default_of(vec!["all-linear".into()], "QLoRA's find_all_linear_names");
    facts.trained = Fact::follows(Trained::Adapters, "its LoRA");
}

pub(super) fn fastchat_lora(flags: &Keys, facts: &mut Facts) {
    if on(flags, "q_lora") {
        facts.weights = Fact::read(Weights::Nf4, "q_lora");
    }
    adapters::lora(flags, facts, &["lora_r"], 8, "FastChat's lora_r");
    facts.trained = Fact::follows(Trained::Adapters, "train_lora.py");
}

pub(super) fn qwen(flags: &Keys, facts: &mut Facts) {
    let model = facts
        .model
        .value()
        .cloned()
        .unwrap_or_default()
        .to_lowercase();
    if on(flags, "use_lora") {
        facts.weights = if on(flags, "q_lora") {
            Fact::read(Weights::GptqInt4, "q_lora")
        } else {
            std::mem::take(&mut facts.weights)
        };
        adapters::lora(flags, facts, &["lora_r"], 64, "finetune.py's lora_r");
        facts.trained = if on(flags, "q_lora") || model.contains("chat") {
            Fact::follows(Trained::Adapters, "use_lora")
        } else {
            let modules = vec!["wte".into(), "lm_head".into()];
            Fact::default_of(
                Trained::AdaptersAnd(modules),
                "finetune.py: a base model's embeddings and head are trained",
            )
        };
    } else {
        full(facts, "no use_lora");
    }
    // The model's own code loads in the type of mixed precision (`modeling_qwen.py`).
    precision::settle(facts, "Qwen's own code");
}

pub(super) fn llava(flags: &Keys, facts: &mut Facts) {
    let frozen = "(vision tower frozen)";
    if flags.text("version").is_known() && flags.text("vision_tower").is_unsaid() {
        full(facts, "no vision_tower");
    } else if on(flags, "lora_enable") {
        facts.weights = match flags.whole("bits").value() {
            Some(4) => Fact::read(Weights::Nf4, "bits"),
            Some(8) => Fact::read(Weights::Int8, "bits"),
            _ => std::mem::take(&mut facts.weights),
        };
        adapters::lora(flags, facts, &["lora_r"], 64, "LLaVA's lora_r");
        facts.trained = Fact::default_of(
            Trained::AdaptersAnd(vec!["mm_projector".into()]),
            "LLaVA's lora_enable",
        );
    } else {
        facts.adapter = Fact::follows(None, "no lora_enable");
        facts.trained = if on(flags, "tune_mm_mlp_adapter") {
            Fact::read(Trained::Part("mm_projector".into()), "tune_mm_mlp_adapter")
        } else {
            Fact::default_of(
                Trained::Part(format!("language model + mm_projector {frozen}")),
                "LLaVA's train.py",
            )
        };
    }
    // `torch_dtype=(torch.bfloat16 if training_args.bf16 else None)`.
    let bf16 = matches!(
        facts.compute.value(),
        Some(Compute::Bf16 | Compute::Bf16Autocast)
    );
    facts.weights = std::mem::take(&mut facts.weights).or_default(
        if bf16 { Weights::Bf16 } else { Weights::Fp32 },
        "LLaVA's from_pretrained",
    );
    if facts.compute.is_unsaid() {
        facts.compute = Fact::default_of(Compute::Fp32, "neither bf16 nor fp16");
    }
}

pub(super) fn internvl(flags: &Keys, facts: &mut Facts) {
    let frozen = |key: &str| on(flags, key);
    // A tile's side.
    let side = flags
        .whole("force_image_size")
        .or_default(448, "InternVL's force_image_size");
    facts.height = side.clone();
    facts.width = side;
    let checkpointing = flags.switch("grad_checkpoint");
    facts.checkpointing = checkpointing.map(|on| {
        if on {
            Checkpointing::On
        } else {
            Checkpointing::Off
        }
    });
    facts.attention =
        std::mem::take(&mut facts.attention).or_default(Attention::Flash, "InternVL's own code");
    let rank = flags.whole("use_llm_lora");
    if rank.value().is_some_and(|rank| *rank > 0) {
        facts.weights = std::mem::take(&mut facts.weights).or(precision::quantised(flags));
        adapters::lora(flags, facts, &["use_llm_lora"], 0, "use_llm_lora");
        facts.trained = if frozen("freeze_mlp") {
            Fact::follows(Trained::Adapters, "use_llm_lora, freeze_mlp")
        } else {
            Fact::follows(
                Trained::AdaptersAnd(vec!["projector".into()]),
                "use_llm_lora",
            )
        };
    } else {
        facts.adapter = Fact::follows(None, "no use_llm_lora");
        let parts = [
            ("vision tower", frozen("freeze_backbone")),
            ("language model", frozen("freeze_llm")),
            ("projector", frozen("freeze_mlp")),
        ];
        facts.trained = Fact::follows(
            parts_trained(&parts),
            "freeze_backbone, freeze_llm, freeze_mlp",
        );
    }
    facts.weights =
        std::mem::take(&mut facts.weights).or_default(Weights::Bf16, "InternVL's from_pretrained");
}

/// What of a vision-language model is trained, in words; the tower is named first only where it is.
pub(super) fn parts_trained(parts: &[(&str, bool)]) -> Trained {
    let open: Vec<&str> = parts
        .iter()
        .filter(|(_, frozen)| !frozen)
        .map(|(name, _)| *name)
        .collect();
    let frozen: Vec<&str> = parts
        .iter()
        .filter(|(_, frozen)| *frozen)
        .map(|(name, _)| *name)
        .collect();
    if frozen.is_empty() {
        Trained::All
    } else {
        Trained::Part(format!(
            "{} ({} frozen)",
            open.join(" + "),
            frozen.join(" and ")
        ))
    }
}

pub(super) fn qwen_vl_series(flags: &Keys, facts: &mut Facts) {
    let parts = [
        ("vision tower", on(flags, "freeze_vision_tower")),
        ("merger", on(flags, "freeze_merger")),
        ("language model", on(flags, "freeze_llm")),
    ];
    facts.weights = match flags.whole("bits").value() {
        Some(4) => Fact::read(Weights::Nf4, "bits"),
        Some(8) => Fact::read(Weights::Int8, "bits"),
        _ => std::mem::take(&mut facts.weights),
    };
    if on(flags, "lora_enable") {
        adapters::lora(flags, facts, &["lora_rank"], 128, "its lora_rank");
        facts.trained = Fact::follows(Trained::Adapters, "lora_enable");
    } else {
        facts.adapter = Fact::follows(None, "no lora_enable");
        facts.trained = Fact::follows(
            parts_trained(&parts),
            "freeze_llm, freeze_vision_tower, freeze_merger",
        );
    }
    if flags.has("num_generations") || flags.has("reward_funcs") {
        facts.task = Fact::follows(Task::Grpo, "num_generations");
        facts.samples = flags.whole("num_generations");
        arguments::sequence(flags, facts);
    }
    precision::settle(facts, "its from_pretrained");
}

pub(super) fn peft_sft(flags: &Keys, facts: &mut Facts) {
    facts.weights = precision::quantised(flags).or(precision::loaded(flags));
    if let Some(model) = facts.model.value() {
        facts.weights = match crate::names::named(model).weights {
            Some(weights) => Fact::follows(weights, "the checkpoint's name"),
            None => std::mem::take(&mut facts.weights),
        };
    }
    if on(flags, "use_peft_lora") {
        adapters::lora(flags, facts, &["lora_r"], 64, "its lora_r");
        facts.trained = Fact::follows(Trained::Adapters, "use_peft_lora");
    } else {
        full(facts, "no use_peft_lora");
    }
    if on(flags, "use_unsloth") {
        facts.trainer = Fact::read("unsloth", "use_unsloth");
    }
    let sharded_by_engine = facts
        .strategy
        .value()
        .is_some_and(|strategy| strategy.data >= DataParallel::Zero0);
    if !sharded_by_engine && facts.strategy.is_known() {
        fp32_weights(flags, facts);
    }
}

pub(super) fn less(flags: &Keys, facts: &mut Facts) {
    if flags.switch("lora").value() != Some(&false) && flags.has("lora") {
        adapters::lora(flags, facts, &["lora_r"], 8, "LESS's lora_r");
        facts.trained = Fact::follows(Trained::Adapters, "lora");
    } else {
        full(facts, "no lora");
    }
    facts.weights = std::mem::take(&mut facts.weights).or(precision::loaded(flags));
    fp32_weights(flags, facts);
}

pub(super) fn lmflow_reward(flags: &Keys, facts: &mut Facts) {
    adapters::lora(flags, facts, &["lora_r"], 16, "reward_modeling.py");
    facts.rank = Fact::default_of(16, "reward_modeling.py");
    facts.trained = Fact::default_of(
        Trained::AdaptersAnd(vec!["score head".into()]),
        "reward_modeling.py",
    );
    let with_head = Trained::Part("adapters + score head".into());
    facts.trained = Fact::default_of(with_head, "reward_modeling.py");
    precision::settle(facts, "reward_modeling.py");
}

pub(super) fn lmflow(flags: &Keys, facts: &mut Facts) {
    facts.weights = precision::loaded(flags);
    if on(flags, "use_qlora") {
        facts.weights = Fact::read(Weights::Nf4, "use_qlora");
    }
    if on(flags, "use_lora") || on(flags, "use_qlora") {
        adapters::lora(flags, facts, &["lora_r"], 8, "LMFlow's lora_r");
        facts.trained = Fact::follows(Trained::Adapters, "use_lora");
    } else {
        full(facts, "no use_lora");
    }
    if on(flags, "use_lisa") {
        facts
            .not_modelled
            .push("use_lisa: LISA trains some layers at a time".into());
    }
    precision::settle(facts, "LMFlow");
}

pub(super) fn longwriter(flags: &Keys, facts: &mut Facts) {
    full(facts, "its code");
    if facts.sequence.is_unsaid()
        && flags
            .text("batch_method")
            .value()
            .is_some_and(|method| method == "pack")
    {
        facts.ask(Ask::Sequence, "the packs are prepared by another script");
    }
    precision::settle(facts, "its from_pretrained");
}

pub(super) fn fsdp_qlora(flags: &Keys, facts: &mut Facts) {
    facts.micro_batch = flags.whole("batch_size");
    facts.sequence = flags.whole("context_length");
    facts.optimizer = flags.text("optimizer");
    let checkpointing = flags.switch("use_gradient_checkpointing");
    facts.checkpointing = checkpointing.map(|on| {
        if on {
            Checkpointing::On
        } else {
            Checkpointing::Off
        }
    });
    let kind = flags.text("train_type");
    let name = kind.value().map_or("qlora", String::as_str).to_string();
    let four_bits = name.contains("qlora") || name.contains("hqq") || name.contains("qdora");
    facts.weights = if four_bits {
        Fact::read(Weights::Nf4, "train_type")
    } else {
        Fact::default_of(Weights::Bf16, "its dtype")
    };
    if name == "full" {
        full(facts, "train_type full");
    } else {
        adapters::lora(flags, facts, &["lora_rank"], 64, "its lora_rank");
        if name.contains("dora") {
            facts.adapter = Fact::read(Some(Adapter::Dora), "train_type");
        }
        facts.trained = Fact::follows(Trained::Adapters, "train_type");
    }
    facts.compute = match flags.text("precision").value().map(String::as_str) {
        Some("bf16_autocast" | "bf16_buffers_autocast") => {
            Fact::read(Compute::Bf16Autocast, "precision")
        }
        Some("fp16_autocast") => Fact::read(Compute::Fp16Autocast, "precision"),
        Some("fp32") => Fact::read(Compute::Fp32, "precision"),
        Some("mp_bf16_autocast") => Fact::read(Compute::Bf16Autocast, "precision"),
        _ => Fact::default_of(Compute::Bf16, "its precision"),
    };
    let strategy = match flags.text("sharding_strategy").value().map(String::as_str) {
        Some("ddp") => DataParallel::Ddp,
        Some("hybrid_full_shard" | "hybrid_shard_grad_op") => DataParallel::Hsdp,
        _ => DataParallel::Fsdp1,
    };
    facts.strategy = Fact::default_of(strategy.into(), "its sharding_strategy");
    let offload = flags.switch("use_cpu_offload");
    facts.offload = offload.map(|on| {
        if on {
            crate::words::Offload::Both
        } else {
            crate::words::Offload::None
        }
    });
    if on(flags, "use_activation_cpu_offload") {
        facts
            .not_modelled
            .push("use_activation_cpu_offload: checkpointed activations go to the host".into());
    }
}
