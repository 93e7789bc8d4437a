//! torchtune: its YAML, and `tune run RECIPE --config NAME key=value`.
//!
//! Keys are those of `recipes/configs`; what a recipe does is in `recipes/*.py`.

use headroom_scripts::shell::Count;

use super::common;
use crate::documents;
use crate::fact::Fact;
use crate::facts::{Ask, Facts};
use crate::keys::Keys;
use crate::program::{Form, Program, Source};
use crate::words::{
    Adapter, Attention, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Weights,
};

pub const PROGRAM: Program = Program {
    id: "torchtune",
    name: "torchtune",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    match &source.form {
        Form::Document(keys) => {
            let model = keys.text("model._component_");
            let ours = model.value().is_some_and(|it| it.starts_with("torchtune."));
            let trains = keys.has("optimizer._component_") || keys.has("loss._component_");
            let other = ["tasks", "prompt", "max_new_tokens", "quantizer"];
            if ours && !trains && other.iter().any(|key| keys.has(key)) {
                return Some(Facts::refuse(
                    "it evaluates, generates or quantizes: it has neither an optimizer nor a loss",
                ));
            }
            let own = keys.has("model._component_") && keys.has("batch_size");
            (own && trains).then(|| {
                // Shipped files are named by their recipe: `8B_lora_single_device.yaml`.
                let one = source.name.contains("single_device")
                    || commented(source.text, "single_device");
                of(keys, one.then_some(1), source.text)
            })
        }
        Form::Command { launch, flags } => {
            let mut words = launch.arguments.iter().map(|word| word.text.as_str());
            if !launch.program.text.ends_with("tune") || words.next() != Some("run") {
                return None;
            }
            let recipe = words
                .find(|word| word.ends_with("distributed") || word.ends_with("single_device"))?;
            let path = flags.text("config");
            let path = path.value().map_or("", String::as_str);
            let read = source
                .beside
                .text(path)
                .as_deref()
                .and_then(documents::read);
            let known = read.is_some();
            let mut keys = read.unwrap_or_default();
            keys.overlay(flags);
            let count = match (&launch.gpus, recipe.ends_with("single_device")) {
                (_, true) => Some(1),
                (Count::Known(count), false) => Some(*count),
                (Count::Unknown(_), false) => None,
            };
            let mut facts = of(&keys, count, recipe);
            if !known {
                facts.ask(
                    Ask::BaseConfig,
                    format!("`{path}` decides the run, and is not here"),
                );
            }
            Some(facts)
        }
        Form::Python { .. } => None,
    }
}

/// Whether comments show how it is started with such a recipe.
fn commented(text: &str, recipe: &str) -> bool {
    let starts = |line: &&str| line.trim_start().starts_with('#') && line.contains("tune run");
    text.lines()
        .filter(starts)
        .any(|line| line.contains(recipe))
}

fn of(keys: &Keys, gpus: Option<u64>, text: &str) -> Facts {
    let mut facts = Facts::of("torchtune");
    let component = |key: &str| {
        let said = keys.text(&format!("{key}._component_"));
        let name = said.value().cloned().unwrap_or_default();
        name.rsplit('.').next().unwrap_or_default().to_string()
    };
    let model = component("model");
    facts.model = model_of(keys, &model);
    let loss = component("loss");
    facts.task = if loss.contains("DPO") || loss.contains("RSO") {
        Fact::read(Task::Dpo, "loss")
    } else if loss.contains("GRPO") {
        Fact::read(Task::Grpo, "loss")
    } else if loss.contains("PPO") {
        Fact::read(Task::Ppo, "loss")
    } else if keys.has("teacher_model") {
        Fact::read(Task::Distillation, "teacher_model")
    } else {
        Fact::follows(Task::Sft, "its recipe")
    };
    facts.micro_batch = keys.whole("batch_size");
    facts.accumulation = keys
        .whole("gradient_accumulation_steps")
        .or_default(1, "torchtune's gradient_accumulation_steps");
    facts.sequence = keys
        .whole("tokenizer.max_seq_len")
        .or(keys.whole("dataset.max_seq_len"));
    if facts.sequence.is_unsaid() {
        let why = "tokenizer.max_seq_len is null: the longest sample decides";
        facts.sequence = Fact::Unknown(why.into());
    }
    spread(keys, gpus, text, &mut facts);
    let dtype = keys
        .text("dtype")
        .or_default("bf16".into(), "torchtune's dtype");
    facts.weights = dtype.clone().and_then(|name| match name.as_str() {
        "bf16" => Some(Weights::Bf16),
        "fp32" => Some(Weights::Fp32),
        "fp16" => Some(Weights::Fp16),
        _ => None,
    });
    facts.compute = dtype.and_then(|name| match name.as_str() {
        "bf16" => Some(Compute::Bf16),
        "fp32" => Some(Compute::Fp32),
        "fp16" => Some(Compute::Fp16),
        _ => None,
    });
    method(keys, &model, &mut facts);
    facts.optimizer =
        Fact::read(component("optimizer"), "optimizer").map(|name| match name.as_str() {
            "AdamW" => "adamw_torch".into(),
            "PagedAdamW8bit" => "paged_adamw_8bit".into(),
            "PagedAdamW" => "paged_adamw_32bit".into(),
            "AdamW8bit" => "adamw_bnb_8bit".into(),
            other => other.to_ascii_lowercase(),
        });
    facts.checkpointing = common::checkpointing(
        keys.switch("enable_activation_checkpointing")
            .or_default(false, "torchtune's enable_activation_checkpointing"),
    );
    if keys.has("ac_mode")
        && keys
            .text("ac_mode")
            .value()
            .is_some_and(|mode| mode == "selective")
    {
        facts.checkpointing = Fact::read(Checkpointing::Selective, "ac_mode");
    }
    facts.attention = Fact::default_of(Attention::Sdpa, "torchtune");
    facts.packing = keys
        .switch("dataset.packed")
        .or_default(false, "torchtune's packed");
    facts.compile = keys
        .switch("compile")
        .or_default(false, "torchtune's compile");
    if keys.has("quantizer") {
        let effect = "quantizer: weights are quantised and back at each use";
        facts.not_modelled.push(effect.into());
    }
    for (key, effect) in [
        (
            "enable_activation_offloading",
            "kept activations are in host memory",
        ),
        (
            "optimizer_in_bwd",
            "each gradient is freed once its weight is updated",
        ),
    ] {
        if keys.switch(key).value() == Some(&true) {
            facts.not_modelled.push(format!("{key}: {effect}"));
        }
    }
    facts
}

/// The folder of the checkpoint has the model's name; else its builder, such as `lora_llama3_1_8b`.
fn model_of(keys: &Keys, builder: &str) -> Fact<String> {
    let folder = keys.text("checkpointer.checkpoint_dir");
    let named = folder.value().map(|folder| folder.trim_end_matches('/'));
    let named = named.and_then(|folder| {
        folder
            .strip_suffix("/original")
            .unwrap_or(folder)
            .rsplit('/')
            .next()
    });
    match named.filter(|name| crate::names::named(name).catalogue.is_some()) {
        Some(name) => Fact::read(name.into(), "checkpointer.checkpoint_dir"),
        None => {
            let plain = builder
                .trim_start_matches("qlora_")
                .trim_start_matches("lora_")
                .trim_start_matches("dora_");
            let plain = plain.replace("_instruct", "").replace("_base", "");
            let named = written(&plain).find(|name| crate::names::named(name).catalogue.is_some());
            let name = named.or_else(|| written(&plain).next());
            Fact::read(name.unwrap_or(plain), "model")
        }
    }
}

/// The names that a builder may stand for: `llama3_1_8b` is `llama3.1-8b`, and `qwen2_5_0_5b` is `qwen2.5-0.5b`.
fn written(builder: &str) -> impl Iterator<Item = String> {
    let parts: Vec<&str> = builder.split('_').collect();
    [1, 2].into_iter().filter_map(move |of_size| {
        let (family, size) = parts.split_at_checked(parts.len().checked_sub(of_size)?)?;
        Some(format!("{}-{}", family.join("."), size.join(".")))
    })
}

fn spread(keys: &Keys, gpus: Option<u64>, text: &str, facts: &mut Facts) {
    let tp = keys
        .whole("tensor_parallel_dim")
        .value()
        .copied()
        .unwrap_or(1)
        .max(1);
    let cp = keys
        .whole("context_parallel_dim")
        .value()
        .copied()
        .unwrap_or(1)
        .max(1);
    let written = text
        .lines()
        .filter(|line| line.trim_start().starts_with('#'))
        .find_map(|line| line.split_once("nproc_per_node"))
        .and_then(|(_, rest)| {
            rest.split_whitespace()
                .next()?
                .trim_start_matches('=')
                .parse()
                .ok()
        });
    facts.gpus = match (gpus, written) {
        (Some(count), _) => Fact::read(count, "its recipe and launcher"),
        (None, Some(count)) => Fact::read(count, "its command in a comment"),
        (None, None) => Fact::Unsaid,
    };
    let data = match facts.gpus.value() {
        Some(1) => DataParallel::None,
        _ => DataParallel::Fsdp2,
    };
    facts.strategy = Fact::follows(
        Strategy {
            tp,
            cp,
            ..Strategy::from(data)
        },
        "its recipe",
    );
    facts.offload = if keys.switch("fsdp_cpu_offload").value() == Some(&true) {
        Fact::read(Offload::Both, "fsdp_cpu_offload")
    } else {
        Fact::default_of(Offload::None, "torchtune")
    };
}

fn method(keys: &Keys, builder: &str, facts: &mut Facts) {
    let four_bits =
        builder.starts_with("qlora") || keys.switch("model.quantize_base").value() == Some(&true);
    if four_bits {
        facts.weights = Fact::read(Weights::Nf4, "model");
    }
    if !keys.has("model.lora_rank") {
        common::trains_all(facts);
        return;
    }
    common::trains_lora(facts, keys.whole("model.lora_rank"), "model.lora_rank");
    if keys.switch("model.use_dora").value() == Some(&true) {
        facts.adapter = Fact::read(Some(Adapter::Dora), "model.use_dora");
    }
    let mut targets = keys
        .list("model.lora_attn_modules")
        .value()
        .cloned()
        .unwrap_or_default();
    if keys.switch("model.apply_lora_to_mlp").value() == Some(&true) {
        targets.extend(["gate_proj".into(), "up_proj".into(), "down_proj".into()]);
    }
    if keys.switch("model.apply_lora_to_output").value() == Some(&true) {
        targets.push("lm_head".into());
    }
    for name in &mut targets {
        if name == "output_proj" {
            *name = "o_proj".into();
        }
    }
    facts.targets = Fact::read(targets, "model.lora_attn_modules");
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    #[test]
    fn what_evaluates_or_generates_trains_nothing() {
        let run = "
model: {_component_: torchtune.models.llama2.llama2_7b}
dtype: bf16
batch_size: 8
max_new_tokens: 300
";
        check("generation.yaml", run, &[("outcome", "refuse")]);
    }

    #[test]
    fn recipes_decide_gpus_and_builders_the_model() {
        let run = "
# tune run --nproc_per_node 2 lora_finetune_distributed --config own
tokenizer: {max_seq_len: 2048}
model: {_component_: torchtune.models.llama3_1.lora_llama3_1_8b, lora_rank: 8, lora_attn_modules: [q_proj, output_proj]}
optimizer: {_component_: torch.optim.AdamW}
loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}
batch_size: 2
gradient_accumulation_steps: 8
dtype: bf16
enable_activation_checkpointing: true
";
        check(
            "own.yaml",
            run,
            &[
                ("outcome", "estimate"),
                ("catalogue", "llama-3.1-8b"),
                ("gpus", "2"),
                ("strategy", "fsdp2"),
                ("adapter", "lora"),
                ("targets", "q_proj o_proj"),
                ("weights", "bf16"),
                ("checkpointing", "true"),
            ],
        );
        let one = run
            .replace("lora_finetune_distributed", "lora_finetune_single_device")
            .replace("lora_llama3", "qlora_llama3");
        check(
            "own.yaml",
            &one,
            &[
                ("gpus", "1"),
                ("strategy", "none"),
                ("adapter", "qlora"),
                ("weights", "nf4"),
            ],
        );
    }
}
