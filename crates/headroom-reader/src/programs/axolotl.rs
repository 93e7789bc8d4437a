//! Axolotl: its YAML, alone or behind `axolotl train` and `accelerate launch -m axolotl.cli.train`.
//!
//! Defaults are those of `src/axolotl/utils/schemas/config.py` and `utils/schemas/training.py`.

use headroom_base::document::Document;

use super::hf::{adapters, precision};
use super::launched;
use crate::documents;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::parts::DeepSpeed;
use crate::program::{Form, Program, Source, is_kind};
use crate::words::{Attention, Checkpointing, DataParallel, Offload, Strategy, Task, Trained};
use headroom_scripts::Beside;

pub const PROGRAM: Program = Program {
    id: "axolotl",
    name: "Axolotl",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    match &source.form {
        Form::Document(keys) => recognises(keys).then(|| of_document(keys, source.beside)),
        Form::Command { launch, .. } => {
            let program = launch.program.text.as_str();
            if !program.contains("axolotl") && !program.ends_with("finetune.py") {
                return None;
            }
            let file = launch
                .arguments
                .iter()
                .find(|word| is_kind(&word.text, &["yaml", "yml"]))?;
            let keys = source
                .beside
                .text(&file.text)
                .and_then(|text| documents::read(&text));
            let mut facts = match keys {
                Some(keys) if recognises(&keys) => of_document(&keys, source.beside),
                _ if program.contains("axolotl") => Facts::of("axolotl"),
                _ => return None,
            };
            launched::counts(launch, &mut facts);
            Some(facts)
        }
        Form::Python { .. } => None,
    }
}

fn recognises(keys: &Keys) -> bool {
    const OWN: &[&str] = &[
        "micro_batch_size",
        "sequence_len",
        "datasets",
        "sample_packing",
        "lora_target_linear",
        "val_set_size",
        "dataset_prepared_path",
        "adapter",
        "pretraining_dataset",
    ];
    keys.has("base_model") && OWN.iter().any(|key| keys.has(key))
}

/// Keys that change memory and that no setting expresses.
const NOT_MODELLED: &[(&str, &str)] = &[
    ("relora_steps", "ReLoRA merges its adapters and starts anew"),
    ("lisa_n_layers", "LISA trains some layers at a time"),
    ("galore", "GaLore's projected gradients"),
    ("flash_attn_fuse_mlp", "a fused MLP keeps less for backward"),
    ("flash_attn_fuse_qkv", "fused projections"),
    (
        "unsloth_lora_mlp",
        "Unsloth's kernels keep less for backward",
    ),
    (
        "lora_mlp_kernel",
        "Axolotl's kernels keep less for backward",
    ),
    (
        "lora_qkv_kernel",
        "Axolotl's kernels keep less for backward",
    ),
    ("lora_o_kernel", "Axolotl's kernels keep less for backward"),
    ("llmcompressor", "LLMCompressor's sparsity masks"),
];

fn of_document(keys: &Keys, beside: &dyn Beside) -> Facts {
    let mut facts = Facts::of("axolotl");
    facts.model = keys.text("base_model");
    facts.micro_batch = keys
        .whole("micro_batch_size")
        .or_default(1, "Axolotl's micro_batch_size");
    facts.accumulation = keys
        .whole("gradient_accumulation_steps")
        .or_default(1, "Axolotl's gradient_accumulation_steps");
    facts.sequence = keys
        .whole("sequence_len")
        .or_default(512, "Axolotl's sequence_len");
    facts.task = task(keys);
    if keys.has("trl") || facts.task.value() == Some(&Task::Grpo) {
        facts.samples = keys.whole("trl.num_generations");
    }
    method(keys, &mut facts);
    facts.optimizer = keys
        .text("optimizer")
        .or_default("adamw_torch_fused".into(), "Axolotl's optimizer");
    facts.checkpointing = checkpointing(keys);
    facts.attention = attention(keys);
    facts.packing = keys.switch("sample_packing").or_default(false, "Axolotl");
    facts.liger = Fact::follows(liger(keys), "plugins");
    // `cut_cross_entropy` is on where its plugin is (integrations/cut_cross_entropy/args.py).
    let has_plugin = has_plugin(keys, "CutCrossEntropyPlugin");
    let is_on = keys.switch("cut_cross_entropy").value() != Some(&false);
    facts.cut_cross_entropy = Fact::follows(has_plugin && is_on, "plugins");
    facts.evaluation = Fact::follows(evaluates(keys), "val_set_size and test_datasets");
    facts.compile = match keys.text("torch_compile") {
        Fact::Unsaid => Fact::Unsaid,
        _ => keys.switch("torch_compile"),
    };
    spread(keys, beside, &mut facts);
    precision::settle(&mut facts, "Axolotl");
    for (key, effect) in NOT_MODELLED {
        let off = matches!(
            keys.peek(key),
            None | Some(Document::Null | Document::Bool(false))
        );
        if !off {
            keys.ignore(key);
            facts.not_modelled.push(format!("{key}: {effect}"));
        }
    }
    facts
}

fn task(keys: &Keys) -> Fact<Task> {
    let rl = keys.text("rl").and_then(|name| {
        Some(match name.as_str() {
            "dpo" | "ipo" => Task::Dpo,
            "kto" | "kto_pair" => Task::Kto,
            "orpo" => Task::Orpo,
            "simpo" => Task::Simpo,
            "grpo" | "gdpo" => Task::Grpo,
            _ => return None,
        })
    });
    let on = |key: &str| keys.switch(key).value() == Some(&true);
    if on("reward_model") || on("process_reward_model") {
        return Fact::read(Task::Reward, "reward_model");
    }
    let pretraining = keys
        .peek("pretraining_dataset")
        .is_some_and(|value| *value != Document::Null);
    rl.or(if pretraining {
        Fact::read(Task::Pretraining, "pretraining_dataset")
    } else {
        Fact::follows(Task::Sft, "no `rl`")
    })
}

/// Adapters, the type of the base, and what is trained.
fn method(keys: &Keys, facts: &mut Facts) {
    let adapter = keys.text("adapter");
    let quantised = precision::quantised(keys);
    let has = adapter
        .value()
        .is_some_and(|name| !matches!(name.as_str(), "none" | "false"));
    precision::amp(keys, facts);
    if has {
        let four_bits = adapter.value().is_some_and(|name| name == "qlora");
        let quantised = if four_bits && keys.switch("load_in_4bit").value() != Some(&false) {
            Fact::read(crate::words::Weights::Nf4, "adapter: qlora")
        } else {
            quantised
        };
        facts.weights = quantised;
        adapters::lora(keys, facts, &["lora_r"], 8, "Axolotl's lora_r");
        if keys.switch("peft_use_dora").value() == Some(&true) {
            facts.adapter = Fact::read(Some(crate::words::Adapter::Dora), "peft_use_dora");
        }
        let saved = keys.list("lora_modules_to_save");
        facts.trained = match saved.value() {
            Some(modules) if !modules.is_empty() => Fact::read(
                Trained::AdaptersAnd(modules.clone()),
                "lora_modules_to_save",
            ),
            _ => Fact::follows(Trained::Adapters, "adapter"),
        };
        if keys.switch("lora_target_linear").value() == Some(&true) {
            facts.targets = Fact::read(vec!["all-linear".into()], "lora_target_linear");
        }
    } else {
        facts.adapter = Fact::follows(None, "no `adapter`");
        let part = keys.list("unfrozen_parameters");
        facts.trained = match part.value() {
            Some(patterns) if !patterns.is_empty() => {
                Fact::read(Trained::Part(patterns.join(", ")), "unfrozen_parameters")
            }
            _ => Fact::follows(Trained::All, "no `adapter`"),
        };
    }
}

fn checkpointing(keys: &Keys) -> Fact<Checkpointing> {
    match keys
        .text("gradient_checkpointing")
        .value()
        .map(String::as_str)
    {
        Some("offload" | "offload_disk" | "unsloth") => {
            Fact::read(Checkpointing::On, "gradient_checkpointing")
        }
        _ => keys
            .switch("gradient_checkpointing")
            .map(|on| {
                if on {
                    Checkpointing::On
                } else {
                    Checkpointing::Off
                }
            })
            .or_default(Checkpointing::Off, "Axolotl's gradient_checkpointing"),
    }
}

fn attention(keys: &Keys) -> Fact<Attention> {
    let switches = [
        ("flash_attention", Attention::Flash),
        ("xformers_attention", Attention::Xformers),
        ("sdp_attention", Attention::Sdpa),
        ("flex_attention", Attention::Flex),
        ("eager_attention", Attention::Eager),
    ];
    let on = switches
        .iter()
        .find(|(key, _)| keys.switch(key).value() == Some(&true));
    match on {
        Some((key, kind)) => Fact::read(*kind, *key),
        None => precision::attention(keys).or_default(Attention::Sdpa, "transformers"),
    }
}

fn has_plugin(keys: &Keys, class: &str) -> bool {
    let plugins = keys.list("plugins");
    let all = plugins.value();
    all.is_some_and(|all| all.iter().any(|name| name.contains(class)))
}

fn liger(keys: &Keys) -> bool {
    has_plugin(keys, "LigerPlugin")
        && keys
            .below("")
            .iter()
            .any(|key| key.starts_with("liger_") && keys.switch(key).value() == Some(&true))
}

fn evaluates(keys: &Keys) -> bool {
    let share = keys.number("val_set_size").value().copied().unwrap_or(0.0);
    share > 0.0
        || matches!(keys.peek("test_datasets"), Some(Document::List(all)) if !all.is_empty())
}

/// Several GPUs. What starts Axolotl uses every visible one.
fn spread(keys: &Keys, beside: &dyn Beside, facts: &mut Facts) {
    if let Some(path) = keys.text("deepspeed").value() {
        DeepSpeed::at(path, beside).apply(facts);
    }
    launched::fsdp(keys, facts);
    if facts.strategy.is_unsaid() && keys.has("fsdp_config") {
        let version = keys
            .whole("fsdp_version")
            .or(keys.whole("fsdp_config.fsdp_version"))
            .or(keys.whole("fsdp_config.version"));
        let strategy = if version.value() == Some(&2) {
            DataParallel::Fsdp2
        } else {
            DataParallel::Fsdp1
        };
        facts.strategy = Fact::read(Strategy::from(strategy), "fsdp_config");
        let on_host = [
            "fsdp_config.offload_params",
            "fsdp_config.fsdp_offload_params",
        ]
        .iter()
        .any(|key| keys.switch(key).value() == Some(&true));
        if on_host {
            facts.offload = Fact::read(Offload::Both, "fsdp_config");
        }
    }
    for key in ["sequence_parallel_degree", "context_parallel_size"] {
        if let Some(cp) = keys.whole(key).value().filter(|size| **size > 1) {
            let data = facts
                .strategy
                .value()
                .map_or(DataParallel::Ddp, |known| known.data);
            let strategy = Strategy {
                cp: *cp,
                ..Strategy::from(data)
            };
            facts.strategy = Fact::read(strategy, key);
        }
    }
    if let Some(tp) = keys
        .whole("tensor_parallel_size")
        .value()
        .filter(|size| **size > 1)
    {
        let data = facts
            .strategy
            .value()
            .map_or(DataParallel::None, |known| known.data);
        facts.strategy = Fact::read(
            Strategy {
                tp: *tp,
                ..Strategy::from(data)
            },
            "tensor_parallel_size",
        );
    }
    facts.strategy = std::mem::take(&mut facts.strategy).or_default(
        DataParallel::Ddp.into(),
        "Axolotl: a copy on every visible GPU",
    );
    facts.offload = std::mem::take(&mut facts.offload).or_default(Offload::None, "Axolotl");
}
