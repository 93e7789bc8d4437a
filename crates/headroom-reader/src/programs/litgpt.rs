//! LitGPT: the YAML of `litgpt finetune_full`, `finetune_lora`, `finetune_adapter` and `pretrain`, and their flags.
//!
//! Defaults are those of `litgpt/finetune/*.py`, `litgpt/pretrain.py` and `litgpt/args.py`.

use super::common;
use crate::fact::Fact;
use crate::facts::{Ask, Facts};
use crate::keys::Keys;
use crate::program::{Form, Program, Source};
use crate::shape::{Blocks, Paths, Shape};
use crate::words::{
    Adapter, Attention, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Trained,
    Weights,
};

pub const PROGRAM: Program = Program {
    id: "litgpt",
    name: "LitGPT",
    read,
};

/// LitGPT's subcommands, each with its own defaults.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Recipe {
    Full,
    Lora,
    Adapter,
    Pretrain,
}

fn read(source: &Source) -> Option<Facts> {
    match &source.form {
        Form::Document(keys) => recognises(keys).then(|| of(keys, recipe_of(keys))),
        Form::Command { launch, flags } => {
            let program = launch.program.text.as_str();
            let words = || launch.arguments.iter().map(|word| word.text.as_str());
            if !program.ends_with("litgpt") && !program.contains("litgpt.") {
                return None;
            }
            let named = words().chain([program]).find_map(recipe)?;
            let config = flags
                .text("config")
                .value()
                .and_then(|path| source.beside.text(path))
                .and_then(|text| crate::documents::read(&text));
            let mut keys = config.unwrap_or_default();
            keys.overlay(flags);
            // `litgpt finetune_lora CHECKPOINT --data …`
            let place = words().nth(1).filter(|word| !word.starts_with('-'));
            if let Some(place) = place.filter(|_| !keys.has("checkpoint_dir")) {
                let key = match named {
                    Recipe::Pretrain => "model_name",
                    _ => "checkpoint_dir",
                };
                keys.set(key, place.into());
            }
            Some(of(&keys, named))
        }
        Form::Python { .. } => None,
    }
}

fn recognises(keys: &Keys) -> bool {
    let tuned = keys.has("checkpoint_dir") && keys.peek("train").is_some();
    let pretrained = keys.has("model_name") && keys.has("train.global_batch_size");
    (tuned && (keys.has("train.micro_batch_size") || keys.peek("lora_r").is_some())) || pretrained
}

fn recipe_of(keys: &Keys) -> Recipe {
    if keys.below("").iter().any(|key| key.starts_with("lora_")) {
        Recipe::Lora
    } else if keys.has("checkpoint_dir") {
        Recipe::Full
    } else {
        Recipe::Pretrain
    }
}

fn recipe(word: &str) -> Option<Recipe> {
    match word {
        "finetune_full" => Some(Recipe::Full),
        "finetune" | "finetune_lora" => Some(Recipe::Lora),
        "finetune_adapter" | "finetune_adapter_v2" => Some(Recipe::Adapter),
        "pretrain" => Some(Recipe::Pretrain),
        _ => None,
    }
}

fn of(keys: &Keys, recipe: Recipe) -> Facts {
    let mut facts = Facts::of("litgpt");
    let (global, micro) = match recipe {
        Recipe::Full | Recipe::Lora | Recipe::Adapter => (16, 1),
        Recipe::Pretrain => (512, 4),
    };
    model(keys, recipe, &mut facts);
    facts.task = match recipe {
        Recipe::Pretrain => Fact::follows(Task::Pretraining, "litgpt pretrain"),
        _ => Fact::follows(Task::Sft, "litgpt finetune"),
    };
    facts.micro_batch = keys
        .whole("train.micro_batch_size")
        .or_default(micro, "LitGPT's train.micro_batch_size");
    facts.sequence = keys.whole("train.max_seq_length");
    if facts.sequence.is_unsaid() {
        facts.sequence = match facts.shape.and_then(|shape| shape.positions) {
            Some(positions) => Fact::follows(positions, "the model's block_size"),
            None => Fact::Unknown("train.max_seq_length is off: the longest sample decides".into()),
        };
    }
    precision(keys, &mut facts);
    spread(keys, recipe, &mut facts);
    let global = keys
        .whole("train.global_batch_size")
        .or_default(global, "LitGPT's train.global_batch_size");
    let by = facts.gpus.value().zip(facts.micro_batch.value());
    let by = by.map(|(gpus, micro)| gpus.saturating_mul(*micro));
    facts.accumulation = common::divided(&global, by, "train.global_batch_size");
    method(keys, recipe, &mut facts);
    let optimizer = keys
        .text("optimizer.class_path")
        .or(keys.text("optimizer"))
        .or_default("AdamW".into(), "LitGPT's optimizer");
    let four_bits = facts.weights.value() == Some(&Weights::Nf4);
    facts.optimizer = optimizer.map(|name| match name.rsplit('.').next().unwrap_or(&name) {
        // With bitsandbytes' weights LitGPT takes its paged optimizer.
        "AdamW" if four_bits => "paged_adamw_32bit".into(),
        "AdamW" => "adamw_torch".into(),
        other => other.to_ascii_lowercase(),
    });
    facts.attention = Fact::default_of(Attention::Sdpa, "LitGPT");
    facts.liger = Fact::default_of(false, "LitGPT");
    facts.packing = Fact::default_of(recipe == Recipe::Pretrain, "LitGPT");
    facts.offload = Fact::default_of(Offload::None, "LitGPT");
    facts.evaluation = Fact::default_of(true, "LitGPT");
    for key in [
        "out_dir",
        "logger_name",
        "seed",
        "data",
        "eval",
        "log",
        "resume",
        "train",
        "optimizer",
        "tokenizer_dir",
    ] {
        keys.ignore(key);
    }
    facts.unread.extend(keys.unused());
    facts
}

fn model(keys: &Keys, recipe: Recipe, facts: &mut Facts) {
    const PATHS: Paths = Paths {
        layers: "model_config.n_layer",
        hidden: "model_config.n_embd",
        heads: "model_config.n_head",
        kv: "model_config.n_query_groups",
        ffn: "model_config.intermediate_size",
        vocabulary: "model_config.padded_vocab_size",
        positions: "model_config.block_size",
    };
    if recipe != Recipe::Pretrain {
        // `litgpt download owner/name` puts a model into `checkpoints/owner/name`.
        facts.model = keys.text("checkpoint_dir").map(|folder| {
            let name = folder.strip_prefix("checkpoints/").unwrap_or(&folder);
            name.trim_end_matches('/').to_string()
        });
        return;
    }
    let gated = keys
        .text("model_config.mlp_class_name")
        .value()
        .map(String::as_str)
        == Some("LLaMAMLP");
    let blocks = if gated {
        Blocks::Llama
    } else {
        Blocks::Own("LitGPT")
    };
    if let Some(mut shape) = Shape::of(blocks, keys, &PATHS) {
        // Head and embedding are apart unless `tie_embeddings` says otherwise.
        shape.tied = Some(keys.switch("train.tie_embeddings").value() == Some(&true));
        common::shaped(facts, shape, "model_config");
    } else {
        facts.model = keys.text("model_name");
    }
    keys.ignore("model_config");
    keys.ignore("model_name");
}

fn precision(keys: &Keys, facts: &mut Facts) {
    let precision = keys.text("precision").or_default(
        "bf16-mixed".into(),
        "LitGPT's precision where the GPU has bf16",
    );
    facts.compute = precision.clone().and_then(|name| {
        Some(match name.as_str() {
            "bf16-true" => Compute::Bf16,
            "bf16-mixed" => Compute::Bf16Autocast,
            "16-true" => Compute::Fp16,
            "16-mixed" => Compute::Fp16Autocast,
            "32-true" | "32" => Compute::Fp32,
            _ => return None,
        })
    });
    let quantised = keys.text("quantize").and_then(|name| {
        Some(match name.trim_start_matches("bnb.") {
            "nf4" | "nf4-dq" => Weights::Nf4,
            "fp4" | "fp4-dq" => Weights::Fp4,
            "int8-training" | "int8" => Weights::Int8,
            _ => return None,
        })
    });
    let plain = precision.and_then(|name| {
        Some(match name.as_str() {
            "bf16-true" => Weights::Bf16,
            "16-true" => Weights::Fp16,
            _ => Weights::Fp32,
        })
    });
    facts.weights = quantised.or(plain);
}

fn spread(keys: &Keys, recipe: Recipe, facts: &mut Facts) {
    let devices = keys.text("devices");
    let every = matches!(devices.value().map(String::as_str), Some("auto" | "-1"));
    facts.nodes = keys.whole("num_nodes").or_default(1, "LitGPT's num_nodes");
    let devices = match recipe {
        _ if every => Fact::Unknown("devices: auto takes every GPU".into()),
        Recipe::Pretrain => keys
            .whole("devices")
            .or(Fact::Unknown("LitGPT takes every GPU".into())),
        _ => keys.whole("devices").or_default(1, "LitGPT's devices"),
    };
    let nodes = facts.nodes.value().copied().unwrap_or(1);
    facts.gpus = devices.map(|devices| devices.saturating_mul(nodes));
    let one = facts.gpus.value() == Some(&1);
    // `full.py`, `adapter.py`: FSDP with every block checkpointed; `lora.py`: `fully_shard` without; `pretrain.py`: hybrid.
    let (strategy, checkpointed) = match recipe {
        _ if one => (DataParallel::None, false),
        Recipe::Full | Recipe::Adapter => (DataParallel::Fsdp1, true),
        Recipe::Lora => (DataParallel::Fsdp2, false),
        Recipe::Pretrain if nodes > 1 => (DataParallel::Hsdp, false),
        Recipe::Pretrain => (DataParallel::Fsdp1, false),
    };
    facts.strategy = Fact::default_of(Strategy::from(strategy), "LitGPT for this number of GPUs");
    let checkpointing = if checkpointed {
        Checkpointing::On
    } else {
        Checkpointing::Off
    };
    facts.checkpointing = Fact::default_of(checkpointing, "LitGPT for this number of GPUs");
}

/// LoRA's switches and the layers that they are for, with LitGPT's default.
const TARGETS: &[(&str, bool)] = &[
    ("query", true),
    ("key", false),
    ("value", true),
    ("projection", false),
    ("mlp", false),
    ("head", false),
];

fn method(keys: &Keys, recipe: Recipe, facts: &mut Facts) {
    match recipe {
        Recipe::Full | Recipe::Pretrain => common::trains_all(facts),
        Recipe::Lora => {
            let rank = keys.whole("lora_r").or_default(8, "LitGPT's lora_r");
            common::trains_lora(facts, rank, "lora_r");
            let on = |(name, default): &&(&str, bool)| {
                let said = keys.switch(&format!("lora_{name}"));
                said.value().copied().unwrap_or(*default)
            };
            let targets = TARGETS.iter().filter(on).map(|(name, _)| (*name).into());
            facts.targets = Fact::read(targets.collect(), "lora_*");
            keys.ignore("lora_alpha");
            keys.ignore("lora_dropout");
        }
        Recipe::Adapter => {
            facts.adapter = Fact::follows(Some(Adapter::Prefix), "litgpt finetune_adapter");
            facts.trained = Fact::follows(Trained::Adapters, "litgpt finetune_adapter");
            facts.ask(Ask::Adapter, "LLaMA-Adapter's prompts are not modelled");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    const LORA: &str = "
checkpoint_dir: checkpoints/meta-llama/Llama-3.2-1B
precision: bf16-true
quantize: bnb.nf4
devices: 1
lora_r: 16
lora_value: true
lora_key: true
train: {micro_batch_size: 2, global_batch_size: 16, max_seq_length: 512}
";

    #[test]
    fn recipes_have_their_own_defaults() {
        check(
            "lora.yaml",
            LORA,
            &[
                ("outcome", "estimate"),
                ("weights", "nf4"),
                ("adapter", "qlora"),
                ("compute", "bf16"),
                ("rank", "16"),
                ("targets", "query key value"),
                ("accumulation", "8"),
                ("strategy", "none"),
                ("optimizer", "paged_adamw_32bit"),
            ],
        );
        let full = "
checkpoint_dir: checkpoints/google/gemma-2b
devices: 2
train: {micro_batch_size: 4, global_batch_size: 32}
";
        check(
            "full.yaml",
            full,
            &[
                ("outcome", "question"),
                ("asks", "sequence"),
                ("strategy", "fsdp1"),
                ("checkpointing", "true"),
                ("compute", "bf16 autocast"),
                ("weights", "fp32"),
            ],
        );
        let command = "litgpt pretrain tiny-llama-1.1b --train.max_seq_length 1024 --devices 4";
        check(
            "run.sh",
            command,
            &[
                ("task", "pretraining"),
                ("gpus", "4"),
                ("micro_batch", "4"),
                ("accumulation", "32"),
            ],
        );
    }
}
