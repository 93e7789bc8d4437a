//! LLaMA-Factory: its YAML, the saved form of its board, and the flags of `llamafactory-cli train`.
//!
//! Defaults are those of `src/llamafactory/hparams/*.py` and of transformers' `TrainingArguments`.

use headroom_base::document::Document;

use super::hf::{adapters, precision};
use super::launched;
use crate::documents;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Form, Program, Source, is_kind};
use crate::words::{
    Adapter, Attention, Checkpointing, Compute, DataParallel, Offload, Task, Trained, Weights,
};
use headroom_scripts::Beside;

pub const PROGRAM: Program = Program {
    id: "llamafactory",
    name: "LLaMA-Factory",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    match &source.form {
        Form::Document(keys) if keys.has("top.model_name") => Some(of_board(keys)),
        Form::Document(keys) => recognises(keys).then(|| {
            let mut facts = of_keys(keys, source.beside);
            on_every_gpu(&mut facts);
            facts
        }),
        Form::Command { launch, flags } => {
            let program = launch.program.text.as_str();
            let own = program.contains("llamafactory") || program.contains("llama-factory");
            let file = launch
                .arguments
                .iter()
                .find(|word| is_kind(&word.text, &["yaml"]));
            let text = file.and_then(|file| source.beside.text(&file.text));
            let keys = text.as_deref().and_then(documents::read);
            let keys = match &keys {
                Some(keys) if own || recognises(keys) => keys,
                // `src/train_bash.py --stage sft …`
                None if flags.has("stage") && flags.has("finetuning_type") => flags,
                None if own && file.is_some() => {
                    let mut facts = Facts::of("llamafactory");
                    launched::counts(launch, &mut facts);
                    return Some(facts);
                }
                _ => return None,
            };
            let mut facts = of_keys(keys, source.beside);
            launched::apply(launch, keys, source.beside, &mut facts);
            Some(facts)
        }
        Form::Python { .. } => None,
    }
}

fn recognises(keys: &Keys) -> bool {
    const OWN: &[&str] = &[
        "finetuning_type",
        "cutoff_len",
        "template",
        "lora_target",
        "do_train",
        "quantization_bit",
        "dataset_dir",
        "export_dir",
        "infer_backend",
    ];
    let own = OWN.iter().filter(|key| keys.has(key)).count();
    (keys.has("model_name_or_path") && own >= 2)
        || (keys.has("stage") && keys.has("finetuning_type"))
}

/// Switches that change memory and that no setting expresses.
const NOT_MODELLED: &[(&str, &str)] = &[
    ("use_galore", "GaLore's projected gradients"),
    ("use_apollo", "APOLLO's projected states"),
    ("use_badam", "BAdam trains a block at a time"),
    ("use_llama_pro", "LLaMA Pro's added blocks"),
    ("use_mca", "Megatron's layers"),
    ("use_unsloth", "Unsloth's kernels keep less for backward"),
    ("shift_attn", "shifted sparse attention"),
    ("mixture_of_depths", "mixture of depths"),
    ("resize_vocab", "a larger vocabulary"),
];

fn of_keys(keys: &Keys, beside: &dyn Beside) -> Facts {
    let on = |key: &str| keys.switch(key).value() == Some(&true);
    if on("use_kt") {
        return Facts::refuse(
            "KTransformers keeps the experts' weights, gradients and states in host memory",
        );
    }
    if !on("do_train") && !keys.has("per_device_train_batch_size") && !keys.has("num_train_epochs")
    {
        return Facts::refuse("it evaluates, exports or serves: `do_train` is not set");
    }
    let mut facts = Facts::of("llamafactory");
    facts.model = keys.text("model_name_or_path");
    facts.task = task(keys);
    facts.micro_batch = keys
        .whole("per_device_train_batch_size")
        .or_default(8, "transformers' per_device_train_batch_size");
    facts.accumulation = keys
        .whole("gradient_accumulation_steps")
        .or_default(1, "transformers' gradient_accumulation_steps");
    facts.sequence = keys
        .whole("cutoff_len")
        .or_default(2048, "LLaMA-Factory's cutoff_len");
    facts.optimizer = keys
        .text("optim")
        .or_default("adamw_torch".into(), "transformers' optim");
    let off = keys.switch("disable_gradient_checkpointing");
    facts.checkpointing = match off {
        Fact::Known { value: true, .. } => off.map(|_| Checkpointing::Off),
        _ => Fact::default_of(
            Checkpointing::On,
            "LLaMA-Factory's disable_gradient_checkpointing",
        ),
    };
    facts.attention = precision::attention(keys);
    facts.attention = match keys.text("flash_attn").value().map(String::as_str) {
        Some("fa2" | "fa3") => Fact::read(Attention::Flash, "flash_attn"),
        Some("disabled") => Fact::read(Attention::Eager, "flash_attn"),
        _ => std::mem::take(&mut facts.attention)
            .or_default(Attention::Sdpa, "LLaMA-Factory's flash_attn"),
    };
    facts.liger = keys
        .switch("enable_liger_kernel")
        .or_default(false, "LLaMA-Factory's enable_liger_kernel");
    let packing = keys.switch("packing").or(keys.switch("neat_packing"));
    let pretraining = facts.task.value() == Some(&Task::Pretraining);
    facts.packing = packing.or_default(pretraining, "LLaMA-Factory's packing");
    let share = keys.number("val_size").value().copied().unwrap_or(0.0);
    facts.evaluation = Fact::follows(
        share > 0.0 || keys.has("eval_dataset"),
        "val_size and eval_dataset",
    );
    precision::amp(keys, &mut facts);
    method(keys, &mut facts);
    launched::deepspeed(keys, beside, &mut facts);
    launched::fsdp(keys, &mut facts);
    weights(keys, &mut facts);
    for (key, effect) in NOT_MODELLED {
        if on(key) {
            facts.not_modelled.push(format!("{key}: {effect}"));
        }
    }
    facts
}

/// A file names no launcher; every visible GPU is used.
fn on_every_gpu(facts: &mut Facts) {
    if facts.refused.is_none() {
        facts.strategy = std::mem::take(&mut facts.strategy).or_default(
            DataParallel::Ddp.into(),
            "llamafactory-cli: a copy on every visible GPU",
        );
        facts.offload =
            std::mem::take(&mut facts.offload).or_default(Offload::None, "LLaMA-Factory");
    }
}

fn task(keys: &Keys) -> Fact<Task> {
    let preference = keys.text("pref_loss");
    keys.text("stage")
        .and_then(|stage| {
            Some(match stage.as_str() {
                "sft" => Task::Sft,
                "pt" => Task::Pretraining,
                "rm" => Task::Reward,
                "ppo" => Task::Ppo,
                "kto" => Task::Kto,
                "dpo" => match preference.value().map(String::as_str) {
                    Some("orpo") => Task::Orpo,
                    Some("simpo") => Task::Simpo,
                    _ => Task::Dpo,
                },
                _ => return None,
            })
        })
        .or_default(Task::Sft, "LLaMA-Factory's stage")
}

fn method(keys: &Keys, facts: &mut Facts) {
    match keys
        .text("finetuning_type")
        .value()
        .map_or("lora", String::as_str)
    {
        "full" => {
            facts.adapter = Fact::read(None, "finetuning_type");
            facts.trained = Fact::follows(Trained::All, "finetuning_type full");
        }
        "freeze" => {
            facts.adapter = Fact::read(None, "finetuning_type");
            let layers = keys
                .whole("freeze_trainable_layers")
                .value()
                .copied()
                .unwrap_or(2);
            facts.trained = Fact::read(
                Trained::Part(format!("the last {layers} layers")),
                "finetuning_type freeze",
            );
        }
        kind => {
            let bits = keys.whole("quantization_bit");
            facts.weights = match bits.value() {
                Some(4) => Fact::default_of(Weights::Nf4, "LLaMA-Factory's quantization_type"),
                Some(8) => Fact::read(Weights::Int8, "quantization_bit"),
                _ => Fact::Unsaid,
            };
            adapters::lora(keys, facts, &["lora_rank"], 8, "LLaMA-Factory's lora_rank");
            if kind == "oft" {
                facts.adapter = Fact::read(Some(Adapter::Oft), "finetuning_type");
            } else if keys.switch("use_dora").value() == Some(&true) {
                facts.adapter = Fact::read(Some(Adapter::Dora), "use_dora");
            }
            let targets = keys.list("lora_target");
            facts.targets = match targets.value() {
                Some(all) if all.iter().any(|name| name == "all") => {
                    Fact::read(vec!["all-linear".into()], "lora_target")
                }
                Some(all) if !all.is_empty() => targets,
                _ => Fact::default_of(vec!["all-linear".into()], "LLaMA-Factory's lora_target"),
            };
            let more = keys.list("additional_target");
            facts.trained = match more.value() {
                Some(modules) if !modules.is_empty() => {
                    Fact::read(Trained::AdaptersAnd(modules.clone()), "additional_target")
                }
                _ => Fact::follows(Trained::Adapters, "finetuning_type"),
            };
        }
    }
}

/// It loads in the type of mixed precision, and casts what is trained in full to fp32 unless a sharding engine does otherwise
/// (`model/adapter.py`, `init_adapter`).
fn weights(keys: &Keys, facts: &mut Facts) {
    if keys.switch("pure_bf16").value() == Some(&true) {
        facts.compute = Fact::read(Compute::Bf16, "pure_bf16");
        facts.weights =
            std::mem::take(&mut facts.weights).or(Fact::read(Weights::Bf16, "pure_bf16"));
        return;
    }
    let sharded = facts
        .strategy
        .value()
        .is_some_and(|strategy| strategy.shards());
    let full = facts.adapter.value() == Some(&None);
    if full && !sharded {
        facts.weights = std::mem::take(&mut facts.weights).or_default(
            Weights::Fp32,
            "LLaMA-Factory: trained weights are cast to fp32",
        );
    }
    precision::settle(facts, "LLaMA-Factory");
}

/// The form in which its board saves a run.
fn of_board(keys: &Keys) -> Facts {
    const SAME: &[(&str, &str)] = &[
        ("top.model_name", "model_name_or_path"),
        ("top.finetuning_type", "finetuning_type"),
        ("train.batch_size", "per_device_train_batch_size"),
        (
            "train.gradient_accumulation_steps",
            "gradient_accumulation_steps",
        ),
        ("train.cutoff_len", "cutoff_len"),
        ("train.optim", "optim"),
        ("train.lora_rank", "lora_rank"),
        ("train.packing", "packing"),
        ("train.neat_packing", "neat_packing"),
        ("train.val_size", "val_size"),
        ("train.use_dora", "use_dora"),
        ("train.use_galore", "use_galore"),
        ("train.use_badam", "use_badam"),
        ("train.use_llama_pro", "use_llama_pro"),
        ("train.shift_attn", "shift_attn"),
        ("train.resize_vocab", "resize_vocab"),
        ("train.freeze_trainable_layers", "freeze_trainable_layers"),
    ];
    let mut flat = Keys::default();
    let copy = |flat: &mut Keys, from: &str, to: &str| {
        if let Some(value) = keys.get(from) {
            flat.set(to, value.clone());
        }
    };
    for (from, to) in SAME {
        copy(&mut flat, from, to);
    }
    for (from, to) in [
        ("train.lora_target", "lora_target"),
        ("train.additional_target", "additional_target"),
    ] {
        if matches!(keys.peek(from), Some(Document::Text(text)) if !text.is_empty()) {
            copy(&mut flat, from, to);
        }
    }
    flat.set("do_train", true.into());
    let text = |path: &str| keys.text(path).value().cloned().unwrap_or_default();
    match text("train.compute_type").as_str() {
        "fp16" => flat.set("fp16", true.into()),
        "pure_bf16" => flat.set("pure_bf16", true.into()),
        "fp32" => {}
        _ => flat.set("bf16", true.into()),
    }
    if let Some(bits) = keys.whole("top.quantization_bit").value() {
        flat.set("quantization_bit", (*bits).into());
    }
    match text("top.booster").as_str() {
        "flashattn2" => flat.set("flash_attn", "fa2".into()),
        "unsloth" => flat.set("use_unsloth", true.into()),
        "liger_kernel" => flat.set("enable_liger_kernel", true.into()),
        _ => {}
    }
    let stage = match text("train.training_stage").as_str() {
        "Reward Modeling" => "rm",
        "PPO" => "ppo",
        "DPO" => "dpo",
        "KTO" => "kto",
        "Pre-Training" => "pt",
        _ => "sft",
    };
    flat.set("stage", stage.into());
    let mut facts = of_keys(&flat, &headroom_scripts::Alone);
    if let Some(stage) = keys
        .whole("train.ds_stage")
        .value()
        .and_then(|stage| crate::parts::stage_of(*stage))
    {
        facts.strategy = Fact::read(stage.into(), "train.ds_stage");
        if keys.switch("train.ds_offload").value() == Some(&true) {
            facts.offload = Fact::read(Offload::Both, "train.ds_offload");
        }
    }
    on_every_gpu(&mut facts);
    facts
}
