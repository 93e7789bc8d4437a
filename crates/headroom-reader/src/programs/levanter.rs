//! Levanter: the YAML of `train_lm.py`, `lora_lm.py` and `sft.py`. It runs on JAX; sizes and sharding are read as those of FSDP.
//!
//! Defaults are those of `src/levanter/trainer.py` and `src/levanter/models/*.py`.

use headroom_base::document::Document;

use super::common;
use super::tokenizers::vocabulary;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::{self, Keys};
use crate::program::{Program, Source};
use crate::shape::{Blocks, Shape};
use crate::words::{Compute, DataParallel, Offload, Strategy, Task, Weights};

pub const PROGRAM: Program = Program {
    id: "levanter",
    name: "Levanter",
    read,
};

/// A model's `type`, its blocks, and its defaults: layers, width, heads, key heads, feed-forward, length.
const MODELS: &[(&str, Blocks, [u64; 6])] = &[
    ("gpt2", Blocks::Gpt2, [12, 768, 12, 12, 0, 512]),
    ("llama", Blocks::Llama, [32, 4096, 32, 32, 11008, 2048]),
    ("mistral", Blocks::Llama, [32, 4096, 32, 8, 14336, 8192]),
    ("mixtral", Blocks::Mixtral, [32, 4096, 32, 8, 14336, 8192]),
    ("olmo2", Blocks::Olmo2, [32, 4096, 32, 32, 11008, 4096]),
    ("qwen", Blocks::Qwen2, [32, 4096, 32, 32, 11008, 2048]),
    ("qwen3", Blocks::Qwen3, [32, 4096, 32, 32, 11008, 2048]),
    ("gemma", Blocks::Own("Gemma"), [18, 2048, 8, 1, 16384, 8192]),
    ("mpt", Blocks::Mpt, [12, 768, 12, 12, 0, 2048]),
    (
        "backpack",
        Blocks::Own("Backpack"),
        [12, 768, 12, 12, 0, 512],
    ),
    ("gpt2_hyena", Blocks::Own("Hyena"), [12, 768, 0, 0, 0, 1024]),
    ("whisper", Blocks::Own("Whisper"), [4, 384, 6, 6, 1536, 448]),
];

/// Keys of its trainer that others do not have.
const OWN: &[&str] = &[
    "trainer.mp",
    "trainer.train_batch_size",
    "trainer.model_axis_size",
    "trainer.per_device_parallelism",
    "trainer.tensor_parallel_axes",
    "trainer.fsdp_axis",
];

fn read(source: &Source) -> Option<Facts> {
    let keys = source.document()?;
    let marks = OWN.iter().filter(|key| keys.has(key)).count();
    let own = marks >= 1 && keys.has("trainer.num_train_steps")
        || marks >= 2
        || (marks >= 1 && keys.has("model.type"));
    let kind = keys.text("model.type");
    let sized = keys.has("model.hidden_dim") && keys.has("model.num_layers");
    let sized = sized
        && MODELS
            .iter()
            .any(|(name, ..)| kind.value().is_some_and(|kind| kind == name));
    let trains =
        keys.has("trainer.num_train_steps") || keys.has("num_train_steps") || keys.has("epoch");
    let shaped = sized && keys.has("trainer");
    if !(own || shaped) {
        return None;
    }
    let served = [
        "prompts",
        "checkpoint_path",
        "eval_harness",
        "save_tokenizer",
    ];
    if !trains && served.iter().any(|key| keys.has(key)) {
        return Some(Facts::refuse(
            "it trains nothing: it evaluates, samples or exports",
        ));
    }
    Some(of(keys))
}

fn of(keys: &Keys) -> Facts {
    let mut facts = Facts::of("levanter");
    model(keys, &mut facts);
    let tuned =
        keys.has("dataset_type") || keys.has("supervised_data") || keys.has("peft_save_path");
    facts.task = if tuned {
        Fact::follows(Task::Sft, "its data")
    } else {
        Fact::follows(Task::Pretraining, "train_lm")
    };
    precision(keys, &mut facts);
    batch(keys, &mut facts);
    let tp = keys
        .whole("trainer.model_axis_size")
        .value()
        .copied()
        .unwrap_or(1);
    let strategy = Strategy {
        tp: tp.max(1),
        ..Strategy::from(DataParallel::Fsdp)
    };
    facts.strategy = Fact::default_of(strategy, "Levanter's fsdp_axis: embed");
    facts.offload = Fact::default_of(Offload::None, "Levanter");
    if keys.has("lora") || keys.has("peft_save_path") {
        let rank = keys.whole("lora.r").or_default(8, "Levanter's lora.r");
        common::trains_lora(&mut facts, rank, "lora");
        facts.targets = Fact::default_of(vec!["all-linear".into()], "Levanter's LoRA");
    } else {
        common::trains_all(&mut facts);
    }
    facts.optimizer = keys
        .text("optimizer.type")
        .or_default("adam".into(), "Levanter's optimizer");
    facts.checkpointing = common::checkpointing(
        keys.switch("model.gradient_checkpointing")
            .or_default(true, "Levanter's gradient_checkpointing"),
    );
    facts.packing = Fact::default_of(true, "Levanter");
    facts.evaluation = Fact::follows(
        keys.has("data.validation_urls") || keys.has("data.configs"),
        "data",
    );
    if keys.has("trainer.optimizer_offload") {
        facts.not_modelled.push("trainer.optimizer_offload".into());
    }
    facts
        .notes
        .push("Levanter runs on JAX: sizes are those of the same sharding in PyTorch".into());
    facts
}

fn model(keys: &Keys, facts: &mut Facts) {
    let named = ["initialize_from_hf", "model_name_or_path"]
        .iter()
        .find_map(|key| {
            let name = keys.text(key).value().cloned()?;
            (name != "true" && name != "false").then(|| Fact::read(name, *key))
        });
    let kind = keys.text("model.type");
    let kind = kind.value().map_or("", String::as_str);
    let defaults = MODELS.iter().find(|(name, ..)| *name == kind);
    let length = [
        "max_seq_len",
        "max_train_length",
        "train_seq_len",
        "model.seq_len",
    ];
    facts.sequence = length.iter().fold(Fact::Unsaid, |said: Fact<u64>, key| {
        said.or(keys.whole(key))
    });
    if let Some((_, blocks, sizes)) = defaults {
        let [layers, hidden, heads, kv, ffn, positions] = *sizes;
        let size = |key: &str, default: u64| {
            keys.whole(&format!("model.{key}"))
                .value()
                .copied()
                .unwrap_or(default)
        };
        let hidden = size("hidden_dim", hidden);
        let heads = size("num_heads", heads);
        facts.sequence =
            std::mem::take(&mut facts.sequence).or_default(positions, "Levanter's seq_len");
        let tokenizer = keys
            .text("data.tokenizer")
            .or(keys.text("tokenizer"))
            .or_default("gpt2".into(), "Levanter's tokenizer");
        let ffn = if ffn == 0 {
            hidden.saturating_mul(size("mlp_scale", 4))
        } else {
            size("intermediate_dim", ffn)
        };
        let shape = Shape {
            blocks: *blocks,
            layers: size("num_layers", layers),
            hidden,
            heads,
            kv: (*blocks != Blocks::Gpt2).then(|| {
                size(
                    "num_kv_heads",
                    if *blocks == Blocks::Llama { heads } else { kv },
                )
            }),
            ffn: Some(ffn),
            vocabulary: tokenizer.value().and_then(|name| vocabulary(name)),
            tied: (*blocks != Blocks::Gpt2)
                .then(|| keys.switch("model.tie_word_embeddings").value() == Some(&true)),
            positions: Some(size("seq_len", positions)),
            experts: None,
        };
        common::shaped(facts, shape, "model");
    }
    if let Some(named) = named {
        facts.model = named;
    }
}

/// `p=f32,c=bfloat16`, `compute=bfloat16,params=float32,output=bfloat16`, or one type for all.
fn precision(keys: &Keys, facts: &mut Facts) {
    let policy = keys
        .text("trainer.mp")
        .or_default("f32".into(), "Levanter's mp");
    let of = |names: &[&str], policy: &str| {
        let parts: Vec<(&str, &str)> = policy
            .split(',')
            .filter_map(|part| part.split_once('='))
            .map(|(name, kind)| (name.trim(), kind.trim()))
            .collect();
        if parts.is_empty() {
            return policy.trim().to_string();
        }
        let found = parts.iter().find(|(name, _)| names.contains(name));
        found.map_or_else(|| "f32".to_string(), |(_, kind)| (*kind).to_string())
    };
    let half = |kind: &str| matches!(kind, "bfloat16" | "bf16");
    let whole = |kind: &str| matches!(kind, "float32" | "f32" | "full");
    facts.weights = policy
        .clone()
        .and_then(|policy| match of(&["p", "params"], policy) {
            kind if half(&kind) => Some(Weights::Bf16),
            kind if whole(&kind) => Some(Weights::Fp32),
            _ => None,
        });
    let fp8 = keys.switch("trainer.quantization.fp8").value() == Some(&true);
    facts.compute = policy.and_then(|policy| match of(&["c", "compute"], policy) {
        _ if fp8 => Some(Compute::Bf16Fp8),
        kind if half(&kind) => Some(Compute::Bf16),
        kind if whole(&kind) => Some(Compute::Fp32),
        _ => None,
    });
}

fn batch(keys: &Keys, facts: &mut Facts) {
    let global = match keys.get("trainer.train_batch_size") {
        // A schedule: its largest batch decides the peak.
        Some(Document::List(steps)) => {
            let largest = steps
                .iter()
                .filter_map(|step| step.get("value").and_then(keys::whole))
                .max();
            largest.map_or(Fact::Unsaid, |size| {
                Fact::read(size, "trainer.train_batch_size")
            })
        }
        Some(Document::Int(-1)) => Fact::Unsaid,
        _ => keys
            .whole("trainer.train_batch_size")
            .or_default(512, "Levanter's train_batch_size"),
    };
    let each = match keys.peek("trainer.per_device_parallelism") {
        Some(Document::Int(-1)) | None => Fact::Unsaid,
        Some(_) => keys.whole("trainer.per_device_parallelism"),
    };
    if each.is_known() {
        facts.micro_batch = each;
        if global.is_unsaid() {
            facts.accumulation = Fact::follows(1, "trainer.train_batch_size: -1");
        }
    } else {
        facts.accumulation = Fact::default_of(1, "Levanter's per_device_parallelism: -1");
    }
    facts.batch_of_all = global;
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    const RUN: &str = "
data: !include data/openwebtext.yaml
model: {type: gpt2, hidden_dim: 1024, num_heads: 16, num_layers: 24, seq_len: 1024}
trainer:
  mp: p=f32,c=bfloat16
  num_train_steps: 100
  train_batch_size: [{start: 0, value: 64}, {start: 10, value: 256}]
# run on 8 A100 GPUs
";

    #[test]
    fn the_largest_batch_of_a_schedule_is_divided_over_devices() {
        check(
            "gpt2.yaml",
            RUN,
            &[
                ("outcome", "estimate"),
                ("catalogue", "gpt2-medium"),
                ("gpus", "8"),
                ("micro_batch", "32"),
                ("strategy", "fsdp"),
                ("weights", "fp32"),
                ("compute", "bf16"),
            ],
        );
        let open = RUN.replace("# run on 8 A100 GPUs", "");
        check(
            "gpt2.yaml",
            &open,
            &[("outcome", "question"), ("asks", "gpus")],
        );
    }
}
