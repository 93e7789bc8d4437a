//! GPT-NeoX: its YAML (one or several that are merged), alone or behind `deepy.py train.py`.
//!
//! Defaults are those of `megatron/neox_arguments/neox_args.py`; keys are written with `_` or `-`.

use headroom_base::document::Document;

use super::common;
use super::tokenizers::{padded, vocabulary};
use crate::documents;
use crate::fact::Fact;
use crate::facts::{Ask, Facts};
use crate::keys::Keys;
use crate::parts::DeepSpeed;
use crate::program::{Form, Program, Source};
use crate::shape::{Blocks, Shape};
use crate::words::{Attention, Compute, DataParallel, Offload, Task, Weights};

pub const PROGRAM: Program = Program {
    id: "gpt-neox",
    name: "GPT-NeoX",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    match &source.form {
        Form::Document(keys) => {
            let keys = with_underscores(keys);
            recognises(&keys).then(|| of(&keys))
        }
        Form::Command { launch, .. } => {
            let words = || launch.arguments.iter().map(|word| word.text.as_str());
            if !launch.program.text.ends_with("deepy.py")
                && !launch.program.text.ends_with("train.py")
            {
                return None;
            }
            let files = words().filter(|word| common::is_yaml(word));
            let mut all = Keys::default();
            let mut prefix = "";
            for word in words() {
                if matches!(word, "-d" | "--conf_dir") {
                    prefix = words()
                        .skip_while(|other| *other != word)
                        .nth(1)
                        .unwrap_or("");
                }
            }
            for file in files {
                let text = source
                    .beside
                    .text(file)
                    .or_else(|| source.beside.text(&format!("{prefix}/{file}")));
                let Some(keys) = text.as_deref().and_then(documents::read) else {
                    continue;
                };
                let keys = with_underscores(&keys);
                all.overlay(&keys);
            }
            recognises(&all).then(|| of(&all))
        }
        Form::Python { .. } => None,
    }
}

fn with_underscores(keys: &Keys) -> Keys {
    match keys.tree() {
        Document::Map(entries) => {
            let entry = |entry: &headroom_base::document::Entry| {
                (entry.key.replace('-', "_"), entry.value.clone())
            };
            Keys::new(entries.iter().map(entry).collect())
        }
        _ => Keys::default(),
    }
}

fn recognises(keys: &Keys) -> bool {
    const OWN: &[&str] = &[
        "pipe_parallel_size",
        "model_parallel_size",
        "pos_emb",
        "no_weight_tying",
        "gpt_j_residual",
        "attention_config",
        "output_layer_parallelism",
    ];
    keys.has("num_layers")
        && keys.has("hidden_size")
        && OWN.iter().filter(|key| keys.has(key)).count() >= 2
}

fn of(keys: &Keys) -> Facts {
    let mut facts = Facts::of("gpt-neox");
    let size = |name: &str| keys.whole(name).value().copied().unwrap_or(1).max(1);
    let (pp, tp) = (size("pipe_parallel_size"), size("model_parallel_size"));
    let (cp, ep) = (
        size("context_parallel_size"),
        size("moe_expert_parallel_size"),
    );
    network(keys, tp, &mut facts);
    facts.task = match keys.text("train_impl").value().map(String::as_str) {
        Some("dpo") => Fact::read(Task::Dpo, "train_impl"),
        Some("kto") => Fact::read(Task::Kto, "train_impl"),
        Some("rm") => Fact::read(Task::Reward, "train_impl"),
        Some("reinforce") => Fact::read(Task::Rloo, "train_impl"),
        _ => Fact::follows(Task::Pretraining, "GPT-NeoX pretrains"),
    };
    facts.sequence = keys.whole("seq_length");
    gpus(keys, &mut facts);
    let deepspeed = DeepSpeed::of(keys, "");
    facts.strategy = deepspeed.stage.clone().map(|data| {
        let mut strategy = crate::words::Strategy::from(data);
        (strategy.tp, strategy.pp, strategy.cp, strategy.ep) = (tp, pp, cp, ep);
        let ranks = facts
            .gpus
            .value()
            .map(|gpus| gpus / tp.saturating_mul(pp).max(1));
        if ranks == Some(1) {
            strategy.data = DataParallel::None;
        }
        strategy
    });
    facts.offload = deepspeed.offload.or_default(Offload::None, "GPT-NeoX");
    facts.micro_batch = keys.whole("train_micro_batch_size_per_gpu");
    facts.accumulation = keys
        .whole("gradient_accumulation_steps")
        .or_default(1, "GPT-NeoX's gradient_accumulation_steps");
    precision(keys, &mut facts);
    common::trains_all(&mut facts);
    facts.optimizer = keys
        .text("optimizer.type")
        .map(|name| name.to_ascii_lowercase())
        .or_default("adam".into(), "GPT-NeoX's optimizer");
    facts.checkpointing = common::checkpointing(
        keys.switch("checkpoint_activations")
            .or_default(false, "GPT-NeoX's checkpoint_activations"),
    );
    facts.attention = attention(keys);
    facts.packing = Fact::default_of(true, "GPT-NeoX");
    let evaluates = keys.whole("eval_iters").value() != Some(&0);
    facts.evaluation = Fact::follows(evaluates, "eval_interval and eval_iters");
    for (key, effect) in [
        (
            "zero_optimization.allgather_bucket_size",
            "buckets of this many elements",
        ),
        (
            "zero_optimization.reduce_bucket_size",
            "buckets of this many elements",
        ),
    ] {
        if keys
            .whole(key)
            .value()
            .is_some_and(|size| *size > 500_000_000)
        {
            facts.not_modelled.push(format!("{key}: {effect}"));
        }
    }
    if keys.switch("partition_activations").value() == Some(&true) && tp > 1 {
        let effect = "partition_activations: checkpoints are divided over the model-parallel GPUs";
        facts.not_modelled.push(effect.into());
    }
    facts
}

fn network(keys: &Keys, tp: u64, facts: &mut Facts) {
    let whole = |name: &str| keys.whole(name).value().copied();
    let (Some(layers), Some(hidden)) = (whole("num_layers"), whole("hidden_size")) else {
        return;
    };
    let text = |name: &str| keys.text(name).value().cloned().unwrap_or_default();
    let kinds = keys
        .peek("attention_config")
        .map(|kinds| format!("{kinds:?}"))
        .unwrap_or_default();
    let gated = matches!(
        text("activation").as_str(),
        "swiglu" | "geglu" | "reglu" | "glu"
    );
    let blocks = if kinds.contains("mamba") {
        Blocks::Mamba
    } else if kinds.contains("rwkv") {
        Blocks::Own("RWKV")
    } else if text("norm") == "rmsnorm" && gated {
        Blocks::Llama
    } else if text("pos_emb") == "rotary" {
        Blocks::GptNeox
    } else {
        Blocks::Own("GPT-NeoX")
    };
    let tokenizer = text("vocab_file");
    let multiple = whole("make_vocab_size_divisible_by").unwrap_or(128);
    let tokens = vocabulary(&tokenizer).or_else(|| whole("padded_vocab_size"));
    let vocabulary = tokens.map(|size| padded(size, multiple.saturating_mul(tp)));
    if vocabulary.is_none() {
        let why = if tokenizer.is_empty() {
            "the tokenizer decides the size of the embedding, and no vocab_file is named".into()
        } else {
            format!("the tokens of `{tokenizer}` are not known")
        };
        facts.ask(Ask::Vocabulary, why);
    }
    let wide = whole("intermediate_size").unwrap_or(hidden.saturating_mul(4));
    let ffn = if gated {
        // `ParallelMLP` takes two thirds, rounded up to twice `mlp_multiple_of`, for the two halves together.
        let twice = whole("mlp_multiple_of")
            .unwrap_or(1)
            .max(1)
            .saturating_mul(2);
        padded(wide.saturating_mul(2) / 3, twice) / 2
    } else {
        wide
    };
    let shape = Shape {
        blocks,
        layers,
        hidden,
        heads: if blocks == Blocks::Mamba {
            0
        } else {
            whole("num_attention_heads").unwrap_or(0)
        },
        kv: whole("num_kv_heads"),
        ffn: (blocks != Blocks::Mamba).then_some(ffn),
        vocabulary,
        tied: Some(keys.switch("no_weight_tying").value() != Some(&true)),
        positions: whole("max_position_embeddings"),
        experts: whole("moe_num_experts")
            .or_else(|| whole("num_experts"))
            .filter(|count| *count > 1),
    };
    common::shaped(facts, shape, "num_layers, hidden_size, …");
}

fn gpus(keys: &Keys, facts: &mut Facts) {
    let nodes = keys.whole("num_nodes");
    facts.nodes = match &nodes {
        Fact::Known { .. } => nodes,
        _ => Fact::Unsaid,
    };
    let of_all = keys.whole("global_num_gpus");
    let of_node = keys.whole("num_gpus");
    let nodes = facts.nodes.value().copied().unwrap_or(1);
    facts.gpus = of_all.or(of_node.map(|gpus| gpus.saturating_mul(nodes)));
}

fn precision(keys: &Keys, facts: &mut Facts) {
    let on = |part: &str| keys.switch(&format!("{part}.enabled")).value() == Some(&true);
    let named = keys.text("precision").value().cloned().unwrap_or_default();
    let (compute, weights, key) = if on("fp16") {
        (Compute::Fp16, Weights::Fp16, "fp16.enabled")
    } else if on("bf16") {
        (Compute::Bf16, Weights::Bf16, "bf16.enabled")
    } else {
        match named.as_str() {
            "bfloat16" => (Compute::Bf16, Weights::Bf16, "precision"),
            "fp16" => (Compute::Fp16, Weights::Fp16, "precision"),
            _ => {
                facts.compute = Fact::default_of(Compute::Fp32, "GPT-NeoX's precision");
                facts.weights = Fact::default_of(Weights::Fp32, "GPT-NeoX's precision");
                return;
            }
        }
    };
    facts.compute = Fact::read(compute, key);
    facts.weights = Fact::read(weights, key);
}

fn attention(keys: &Keys) -> Fact<Attention> {
    let kinds = keys
        .get("attention_config")
        .map(|kinds| format!("{kinds:?}"));
    match kinds {
        None => Fact::default_of(Attention::Eager, "GPT-NeoX's attention_config"),
        Some(kinds) if kinds.contains("flash") => Fact::read(Attention::Flash, "attention_config"),
        Some(kinds) if kinds.contains("global") => Fact::read(Attention::Eager, "attention_config"),
        Some(_) => Fact::Unsaid,
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    const RUN: &str = "
# tuned for 16 GPUs
{
  \"pipe-parallel-size\": 1,
  \"model-parallel-size\": 2, # per layer
  \"num_layers\": 32, \"hidden_size\": 4096, \"num_attention_heads\": 32,
  \"intermediate_size\": 32768, \"mlp_multiple_of\": 256,
  \"activation\": \"swiglu\", \"norm\": \"rmsnorm\", \"pos_emb\": \"rotary\", \"no_weight_tying\": true,
  \"seq_length\": 2048, \"make_vocab_size_divisible_by\": 1,
  \"vocab_file\": \"data/20B_tokenizer.json\",
  \"attention_config\": [[[\"flash\"], 32]],
  \"train_micro_batch_size_per_gpu\": 4,
  \"zero_optimization\": {\"stage\": 1},
  \"bf16\": {\"enabled\": True},
  \"optimizer\": {\"type\": \"Adam\"},
}
";

    #[test]
    fn gated_layers_have_a_third_of_their_size() {
        check(
            "7B.yml",
            RUN,
            &[
                ("outcome", "estimate"),
                (
                    "model",
                    "Llama 32 layers × 4096, 32 heads, vocabulary 50278",
                ),
                ("gpus", "16"),
                ("strategy", "zero1+tp2"),
                ("compute", "bf16"),
                ("attention", "flash"),
                ("accumulation", "1"),
                ("checkpointing", "false"),
            ],
        );
        let without = RUN.replace("\"vocab_file\": \"data/20B_tokenizer.json\",", "");
        check(
            "7B.yml",
            &without,
            &[("outcome", "question"), ("asks", "vocabulary")],
        );
    }
}
