//! nanotron: its YAML.
//!
//! Defaults are those of `src/nanotron/config/config.py`, `parallelism_config.py` and `models_config.py`.

use super::common;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Program, Source};
use crate::shape::{Blocks, Paths, Shape};
use crate::words::{Attention, Compute, DataParallel, Offload, Strategy, Task, Weights};

pub const PROGRAM: Program = Program {
    id: "nanotron",
    name: "nanotron",
    read,
};

const SIZES: Paths = Paths {
    layers: "model.model_config.num_hidden_layers",
    hidden: "model.model_config.hidden_size",
    heads: "model.model_config.num_attention_heads",
    kv: "model.model_config.num_key_value_heads",
    ffn: "model.model_config.intermediate_size",
    vocabulary: "model.model_config.vocab_size",
    positions: "model.model_config.max_position_embeddings",
};

fn read(source: &Source) -> Option<Facts> {
    let keys = source.document()?;
    let own = keys.has("parallelism") && keys.has("tokens") && keys.has("model.model_config");
    own.then(|| of(keys))
}

fn of(keys: &Keys) -> Facts {
    let mut facts = Facts::of("nanotron");
    model(keys, &mut facts);
    facts.task = Fact::follows(Task::Pretraining, "nanotron pretrains");
    facts.micro_batch = keys.whole("tokens.micro_batch_size");
    facts.accumulation = keys
        .whole("tokens.batch_accumulation_per_replica")
        .or_default(1, "nanotron");
    facts.sequence = keys.whole("tokens.sequence_length");
    spread(keys, &mut facts);
    facts.weights = keys.text("model.dtype").and_then(|name| {
        Some(match name.as_str() {
            "bfloat16" => Weights::Bf16,
            "float16" => Weights::Fp16,
            "float32" => Weights::Fp32,
            _ => return None,
        })
    });
    facts.weights =
        std::mem::take(&mut facts.weights).or_default(Weights::Bf16, "nanotron's model.dtype");
    facts.compute = facts.weights.clone().map(|weights| match weights {
        Weights::Fp32 => Compute::Fp32,
        Weights::Fp16 => Compute::Fp16,
        _ => Compute::Bf16,
    });
    common::trains_all(&mut facts);
    facts.optimizer = keys
        .text("optimizer.optimizer_factory.name")
        .map(|name| name.to_ascii_lowercase())
        .or_default("adamw".into(), "nanotron's optimizer_factory");
    facts.checkpointing = common::checkpointing(
        keys.switch("parallelism.recompute_layer")
            .or_default(false, "nanotron's recompute_layer"),
    );
    facts.attention = keys
        .text("model.model_config._attn_implementation")
        .and_then(|name| {
            Some(match name.as_str() {
                "sdpa" => Attention::Sdpa,
                "eager" => Attention::Eager,
                "flex_attention" => Attention::Flex,
                _ if name.contains("flash") || name.contains("ring") => Attention::Flash,
                _ => return None,
            })
        })
        .or_default(Attention::Flash, "nanotron's _attn_implementation");
    facts.packing = Fact::follows(true, "nanotron's data are rows of tokens");
    facts.offload = Fact::default_of(Offload::None, "nanotron");
    facts.evaluation = Fact::follows(
        keys.number("tokens.val_check_interval")
            .value()
            .is_some_and(|every| *every > 0.0),
        "tokens.val_check_interval",
    );
    if keys.switch("optimizer.accumulate_grad_in_fp32").value() == Some(&true) {
        let note = "optimizer.accumulate_grad_in_fp32: gradients are kept in fp32, with an fp32 copy of the weights";
        facts.notes.push(note.into());
    }
    for key in [
        "checkpoints",
        "data_stages",
        "general",
        "logging",
        "tokenizer",
        "lighteval",
        "profiler",
        "model",
        "optimizer",
        "tokens",
        "parallelism",
        "s3_upload",
        "metrics_logging",
        "data",
        "experiment_logger",
        "kill_switch_path",
    ] {
        keys.ignore(key);
    }
    facts.unread.extend(keys.unused());
    facts
}

fn model(keys: &Keys, facts: &mut Facts) {
    let is = |name: &str| keys.switch(&format!("model.model_config.{name}")).value() == Some(&true);
    let biased = keys.switch("model.model_config.attention_bias").value() == Some(&true);
    let experts = keys.whole("model.model_config.moe_config.num_experts");
    let blocks = if experts.is_known() {
        Blocks::Own("Qwen2 of experts")
    } else if is("is_qwen2_config") && biased {
        Blocks::Qwen2
    } else if is("is_llama_config") || is("is_qwen2_config") {
        Blocks::Llama
    } else if is("is_starcoder2_config") {
        Blocks::Own("StarCoder2")
    } else if is("is_mamba_config") {
        Blocks::Own("Mamba")
    } else {
        Blocks::Own("nanotron")
    };
    let own_experts = experts.value().copied();
    if let Some(mut shape) = Shape::of(blocks, keys, &SIZES) {
        let tied = keys.switch("model.model_config.tie_word_embeddings");
        shape.tied = Some(tied.value().copied().unwrap_or(false));
        shape.experts = own_experts;
        common::shaped(facts, shape, "model.model_config");
    } else if let (Some(hidden), Some(layers)) = (
        keys.whole("model.model_config.d_model").value(),
        keys.whole("model.model_config.num_hidden_layers").value(),
    ) {
        facts.model = Fact::read(
            format!("Mamba {layers} layers × {hidden}"),
            "model.model_config",
        );
    }
}

fn spread(keys: &Keys, facts: &mut Facts) {
    let size = |name: &str| {
        let said = keys.whole(&format!("parallelism.{name}"));
        said.value().copied().unwrap_or(1).max(1)
    };
    let (dp, tp, pp) = (size("dp"), size("tp"), size("pp"));
    let (cp, ep) = (size("context_parallel_size"), size("expert_parallel_size"));
    let gpus = [dp, tp, pp, cp]
        .iter()
        .fold(1u64, |all, size| all.saturating_mul(*size));
    facts.gpus = Fact::follows(gpus, "parallelism: dp × tp × pp × context_parallel_size");
    let data = match keys.whole("optimizer.zero_stage").value() {
        _ if dp == 1 && cp == 1 => DataParallel::None,
        Some(0) | None => DataParallel::Ddp,
        Some(_) => DataParallel::Zero1,
    };
    let strategy = Strategy {
        data,
        tp,
        pp,
        cp,
        ep,
    };
    facts.strategy = Fact::read(strategy, "parallelism and optimizer.zero_stage");
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    const RUN: &str = "
model:
  dtype: bfloat16
  model_config: {is_llama_config: true, hidden_size: 2048, intermediate_size: 8192, num_attention_heads: 32, num_hidden_layers: 16, num_key_value_heads: 8, tie_word_embeddings: true, vocab_size: 128256, max_position_embeddings: 4096}
optimizer: {zero_stage: 1, accumulate_grad_in_fp32: true, optimizer_factory: {name: adamW}}
parallelism: {dp: 4, tp: 2, pp: 1, recompute_layer: true}
tokens: {micro_batch_size: 2, batch_accumulation_per_replica: 3, sequence_length: 4096}
";

    #[test]
    fn gpus_are_the_product_of_parallel_sizes() {
        check(
            "config.yaml",
            RUN,
            &[
                ("outcome", "estimate"),
                ("catalogue", "llama-3.2-1b"),
                ("gpus", "8"),
                ("strategy", "zero1+tp2"),
                ("accumulation", "3"),
                ("checkpointing", "true"),
                ("weights", "bf16"),
            ],
        );
        let alone = RUN.replace("dp: 4", "dp: 1");
        check("config.yaml", &alone, &[("gpus", "2"), ("strategy", "tp2")]);
    }
}
