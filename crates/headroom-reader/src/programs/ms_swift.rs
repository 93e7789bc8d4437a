//! ms-swift: `swift sft|pt|rlhf`, `megatron sft`, and its YAML.
//!
//! Defaults are those of `swift/arguments/` (sft_args.py, base_args) and `docs/source_en/Instruction/Command-line-parameters.md`.

use super::hf::{adapters, arguments, precision};
use super::launched;
use crate::documents;
use crate::fact::Fact;
use crate::facts::{Ask, Facts};
use crate::keys::Keys;
use crate::program::{Form, Program, Source, is_kind};
use crate::words::{
    Adapter, Attention, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Trained,
    Weights,
};
use headroom_scripts::Beside;
use headroom_scripts::shell::Launch;

pub const PROGRAM: Program = Program {
    id: "ms-swift",
    name: "ms-swift",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    match &source.form {
        Form::Document(keys) => {
            let own = keys.has("tuner_type") || keys.has("train_type");
            (own && keys.has("model")).then(|| {
                let mut facts = of_keys(keys, "", source.beside);
                finish(keys, &mut facts);
                facts
            })
        }
        Form::Command { launch, flags } => {
            let command = command(launch)?;
            let file = launch
                .arguments
                .iter()
                .find(|word| is_kind(&word.text, &["yaml", "json"]));
            let named = file.filter(|_| !flags.has("model"));
            let document = named
                .and_then(|file| source.beside.text(&file.text))
                .and_then(|text| documents::read(&text));
            let keys = document.as_ref().unwrap_or(flags);
            let mut facts = of_keys(keys, &command, source.beside);
            if command.starts_with("megatron") {
                launched::counts(launch, &mut facts);
                megatron(keys, &mut facts);
            } else {
                launched::apply(launch, keys, source.beside, &mut facts);
            }
            finish(keys, &mut facts);
            Some(facts)
        }
        Form::Python { .. } => None,
    }
}

/// `sft`, `rlhf`, `pt` or `megatron sft`; `None` for other programs and for what does not train.
fn command(launch: &Launch) -> Option<String> {
    const TRAINS: &[&str] = &["sft", "pt", "rlhf"];
    let program = launch.program.text.as_str();
    let first = launch
        .arguments
        .first()
        .map_or("", |word| word.text.as_str());
    if program == "swift" || program == "megatron" {
        let command = TRAINS.iter().find(|command| **command == first)?;
        let of = if program == "megatron" {
            "megatron "
        } else {
            ""
        };
        return Some(format!("{of}{command}"));
    }
    let own = program.contains("swift/cli/") || program.starts_with("swift.cli");
    let file = program.trim_end_matches(".py").rsplit(['/', '.']).next()?;
    (own && TRAINS.contains(&file)).then(|| file.to_string())
}

/// Keys that change memory and that no setting expresses.
const NOT_MODELLED: &[(&str, &str)] = &[
    ("use_galore", "GaLore's projected gradients"),
    ("lisa_activated_layers", "LISA trains some layers at a time"),
    ("use_ray", "roles are spread by Ray"),
    (
        "sequence_parallel_size",
        "sequences are divided over GPUs by Ulysses",
    ),
];

fn of_keys(keys: &Keys, command: &str, beside: &dyn Beside) -> Facts {
    let megatron = command.starts_with("megatron");
    let mut facts = Facts::of("ms-swift");
    facts.model = keys
        .text("model")
        .or(keys.text("load"))
        .or(keys.text("hf_model"));
    facts.task = task(keys, command);
    facts.micro_batch = if megatron {
        keys.whole("micro_batch_size")
            .or_default(1, "Megatron-SWIFT's micro_batch_size")
    } else {
        keys.whole("per_device_train_batch_size")
            .or_default(1, "ms-swift's per_device_train_batch_size")
    };
    facts.accumulation = keys.whole("gradient_accumulation_steps");
    facts.samples = keys.whole("num_generations");
    arguments::apply(keys, &mut facts);
    arguments::sequence(keys, &mut facts);
    if facts.task.value() == Some(&Task::Grpo) {
        facts.samples =
            std::mem::take(&mut facts.samples).or_default(8, "ms-swift's num_generations");
        // `max_length` cuts the prompt, `max_completion_length` is 512 by default.
        let prompt = keys.whole("max_length");
        let completion = keys
            .whole("max_completion_length")
            .or_default(512, "ms-swift's max_completion_length");
        if let (Some(prompt), Some(completion)) = (prompt.value(), completion.value()) {
            facts.sequence =
                Fact::follows(prompt.saturating_add(*completion), "prompt and completion");
        }
        facts.prompt = prompt;
        facts.completion = completion;
    }
    facts.optimizer = std::mem::take(&mut facts.optimizer)
        .or_default("adamw_torch_fused".into(), "ms-swift's optim");
    facts.checkpointing = keys
        .switch("gradient_checkpointing")
        .map(|on| {
            if on {
                Checkpointing::On
            } else {
                Checkpointing::Off
            }
        })
        .or_default(Checkpointing::On, "ms-swift's gradient_checkpointing");
    if megatron {
        // Megatron-Core recomputes attention only, unless it is told otherwise.
        facts.checkpointing = match keys
            .text("recompute_granularity")
            .value()
            .map(String::as_str)
        {
            Some("full") => Fact::read(Checkpointing::On, "recompute_granularity"),
            Some("none") => Fact::read(Checkpointing::Off, "recompute_granularity"),
            _ => Fact::default_of(
                Checkpointing::Selective,
                "Megatron-SWIFT's recompute_granularity",
            ),
        };
    }
    facts.attention =
        std::mem::take(&mut facts.attention).or_default(Attention::Sdpa, "ms-swift's attn_impl");
    facts.packing = std::mem::take(&mut facts.packing).or_default(false, "ms-swift's packing");
    facts.liger = std::mem::take(&mut facts.liger).or_default(false, "ms-swift's use_liger_kernel");
    method(keys, &mut facts);
    // `--deepspeed zero2` is one of its own files.
    let engine = keys.text("deepspeed");
    let name = engine.value().filter(|name| !name.contains('.'));
    if let Some(name) = name
        && let Some(stage) = crate::comments::zero(name)
    {
        facts.strategy = Fact::read(Strategy::from(stage), "deepspeed");
        let offload = if name.contains("offload") {
            Offload::Both
        } else {
            Offload::None
        };
        facts.offload = Fact::read(offload, "deepspeed");
    }
    launched::deepspeed(keys, beside, &mut facts);
    launched::fsdp(keys, &mut facts);
    for (key, effect) in NOT_MODELLED {
        let is_on = keys.switch(key).value() != Some(&false) && keys.has(key);
        if is_on && keys.whole(key).value() != Some(&1) {
            facts.not_modelled.push(format!("{key}: {effect}"));
        }
    }
    facts
}

fn task(keys: &Keys, command: &str) -> Fact<Task> {
    let kind = keys.text("rlhf_type");
    if command.ends_with("pt") {
        return Fact::read(Task::Pretraining, "swift pt");
    }
    let task = kind.and_then(|kind| {
        Some(match kind.as_str() {
            "dpo" => Task::Dpo,
            "kto" => Task::Kto,
            "orpo" => Task::Orpo,
            "cpo" => Task::Cpo,
            "simpo" => Task::Simpo,
            "rm" => Task::Reward,
            "ppo" => Task::Ppo,
            "grpo" => Task::Grpo,
            "gkd" => Task::Distillation,
            _ => return None,
        })
    });
    let by_type = keys.text("task_type").and_then(|kind| {
        Some(match kind.as_str() {
            "seq_cls" => Task::Classification,
            "embedding" => Task::Contrastive,
            "reranker" | "generative_reranker" => Task::Reranking,
            "causal_lm" => Task::Sft,
            _ => return None,
        })
    });
    task.or(by_type).or_follows(Task::Sft, "swift sft")
}

fn method(keys: &Keys, facts: &mut Facts) {
    let kind = keys.text("tuner_type").or(keys.text("train_type"));
    let name = kind.value().map_or("lora", String::as_str).to_string();
    let bits = keys.whole("quant_bits").or(keys.whole("quantization_bit"));
    let method = keys.text("quant_method");
    facts.weights = match (bits.value(), method.value().map(String::as_str)) {
        (Some(4), None | Some("bnb")) => Fact::read(Weights::Nf4, "quant_bits"),
        (Some(8), None | Some("bnb")) => Fact::read(Weights::Int8, "quant_bits"),
        _ => precision::loaded(keys),
    };
    // `bnb_4bit_use_double_quant` is on by default (quant_args.py).
    facts.double_quantised = keys
        .switch("bnb_4bit_use_double_quant")
        .or_default(true, "ms-swift's bnb_4bit_use_double_quant");
    match name.as_str() {
        "full" => {
            facts.adapter = Fact::read(None, "tuner_type");
            facts.trained = Fact::follows(Trained::All, "tuner_type full");
        }
        _ => {
            adapters::lora(keys, facts, &["lora_rank"], 8, "ms-swift's lora_rank");
            let other = match name.as_str() {
                "adalora" => Some(Adapter::Adalora),
                "ia3" => Some(Adapter::Ia3),
                "vera" => Some(Adapter::Vera),
                "boft" => Some(Adapter::Boft),
                _ if keys.switch("use_dora").value() == Some(&true) => Some(Adapter::Dora),
                _ => None,
            };
            if other.is_some() {
                facts.adapter = Fact::read(other, "tuner_type");
            }
            facts.targets = std::mem::take(&mut facts.targets)
                .or_default(vec!["all-linear".into()], "ms-swift's target_modules");
            let saved = keys.list("modules_to_save");
            facts.trained = match saved.value() {
                Some(modules) if !modules.is_empty() => {
                    Fact::read(Trained::AdaptersAnd(modules.clone()), "modules_to_save")
                }
                _ => Fact::follows(Trained::Adapters, "tuner_type"),
            };
        }
    }
}

/// Megatron-Core's division, its distributed optimizer by default.
fn megatron(keys: &Keys, facts: &mut Facts) {
    let size = |key: &str| keys.whole(key).value().copied().unwrap_or(1);
    let strategy = Strategy {
        data: DataParallel::Zero1,
        tp: size("tensor_model_parallel_size"),
        pp: size("pipeline_model_parallel_size"),
        cp: size("context_parallel_size"),
        ep: size("expert_model_parallel_size"),
    };
    facts.strategy = Fact::read(strategy, "Megatron-SWIFT's parallel sizes");
    facts.compute = Fact::default_of(Compute::Bf16, "Megatron-SWIFT");
    if let (Some(global), Some(gpus), Some(micro)) = (
        keys.whole("global_batch_size").value(),
        facts.gpus.value(),
        facts.micro_batch.value(),
    ) {
        let model = strategy
            .tp
            .saturating_mul(strategy.pp)
            .saturating_mul(strategy.cp)
            .max(1);
        let replicas = (gpus / model).max(1);
        let steps = global / replicas.saturating_mul(*micro).max(1);
        facts.accumulation = Fact::follows(steps.max(1), "global_batch_size");
    }
}

/// What depends on the number of processes, and types.
fn finish(keys: &Keys, facts: &mut Facts) {
    use std::mem::take;
    if facts.accumulation.is_unsaid() {
        // The effective batch is 16 by default.
        let processes = facts.gpus.value().copied().unwrap_or(1).max(1);
        let micro = facts.micro_batch.value().copied().unwrap_or(1).max(1);
        let steps = 16_u64.div_ceil(processes.saturating_mul(micro));
        facts.accumulation = Fact::follows(steps, "ms-swift: an effective batch of 16");
    }
    // The type of the checkpoint, which is bf16 for the models of today, and mixed precision of the same.
    let loaded = facts.weights.value().copied();
    let compute = match loaded {
        Some(Weights::Fp16) => Compute::Fp16Autocast,
        Some(Weights::Fp32) => Compute::Fp32,
        _ => Compute::Bf16Autocast,
    };
    facts.compute = take(&mut facts.compute).or_follows(compute, "the type that it loads in");
    facts.weights = take(&mut facts.weights).or_follows(Weights::Bf16, "the checkpoint's own type");
    if facts.sequence.is_unsaid() && !matches!(facts.task.value(), Some(Task::Grpo | Task::Ppo)) {
        facts.ask(
            Ask::Sequence,
            "without max_length samples are as long as they are",
        );
    }
    precision::settle(facts, "ms-swift");
    let _ = keys;
}
