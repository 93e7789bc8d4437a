//! OLMo: the YAML of `scripts/train.py`.
//!
//! Defaults are those of `olmo/config.py`.

use super::common;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Program, Source};
use crate::shape::{Blocks, Shape};
use crate::words::{
    Attention, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Weights,
};

pub const PROGRAM: Program = Program {
    id: "olmo",
    name: "OLMo",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    let keys = source.document()?;
    let own = keys.has("model.d_model")
        && keys.has("model.n_layers")
        && [
            "device_train_microbatch_size",
            "global_train_batch_size",
            "fsdp",
            "run_name",
            "save_interval_unsharded",
        ]
        .iter()
        .any(|key| keys.has(key))
        && !keys.has("model.name");
    own.then(|| of(keys))
}

fn of(keys: &Keys) -> Facts {
    let mut facts = Facts::of("olmo");
    network(keys, &mut facts);
    facts.task = Fact::follows(Task::Pretraining, "OLMo's train.py");
    facts.sequence = keys
        .whole("model.max_sequence_length")
        .or_default(1024, "OLMo's max_sequence_length");
    facts.micro_batch = keys
        .whole("device_train_microbatch_size")
        .or_default(16, "OLMo's device_train_microbatch_size");
    facts.batch_of_all = keys
        .whole("global_train_batch_size")
        .or_default(512, "OLMo's global_train_batch_size");
    spread(keys, &mut facts);
    let precision = keys
        .text("precision")
        .or_default("fp32".into(), "OLMo's precision");
    facts.compute = precision.and_then(|name| {
        Some(match name.as_str() {
            "amp_bf16" => Compute::Bf16Autocast,
            "amp_fp16" => Compute::Fp16Autocast,
            "fp32" => Compute::Fp32,
            _ => return None,
        })
    });
    facts.weights = Fact::default_of(Weights::Fp32, "OLMo keeps fp32 weights under autocast");
    common::trains_all(&mut facts);
    facts.optimizer = keys
        .text("optimizer.name")
        .or_default("lionw".into(), "OLMo's optimizer");
    facts.checkpointing = match keys.text("activation_checkpointing") {
        Fact::Unsaid => Fact::default_of(Checkpointing::Off, "OLMo's activation_checkpointing"),
        said => said.and_then(|name| {
            Some(match name.as_str() {
                "whole_layer" => Checkpointing::On,
                "fine_grained" => Checkpointing::Selective,
                name if name.contains("_in_") => Checkpointing::Selective,
                _ => return None,
            })
        }),
    };
    facts.attention = keys
        .switch("model.flash_attention")
        .or_default(false, "OLMo's flash_attention")
        .map(|flash| {
            if flash {
                Attention::Flash
            } else {
                Attention::Sdpa
            }
        });
    facts.packing = Fact::follows(true, "OLMo's data are rows of tokens");
    facts.offload = Fact::default_of(Offload::None, "OLMo");
    facts.evaluation = Fact::follows(keys.has("evaluators"), "evaluators");
    facts
}

fn network(keys: &Keys, facts: &mut Facts) {
    let whole = |name: &str| keys.whole(&format!("model.{name}")).value().copied();
    let (Some(hidden), Some(layers)) = (whole("d_model"), whole("n_layers")) else {
        return;
    };
    let heads = whole("n_heads").unwrap_or(12);
    let text = |name: &str| keys.text(&format!("model.{name}")).value().cloned();
    let on = |name: &str| keys.switch(&format!("model.{name}")).value() == Some(&true);
    let gated = text("activation_type").is_none_or(|name| name == "swiglu");
    let wide = whole("mlp_hidden_size")
        .unwrap_or_else(|| hidden.saturating_mul(whole("mlp_ratio").unwrap_or(4)));
    let norm = text("layer_norm_type").unwrap_or_else(|| "default".into());
    let affine = keys.switch("model.layer_norm_with_affine").value() != Some(&false);
    let blocks = if on("norm_after") && norm == "rms" {
        Blocks::Olmo2
    } else if norm != "rms" && !affine && on("rope") {
        Blocks::Olmo
    } else if norm == "rms" && gated && on("rope") && !on("attention_layer_norm") {
        Blocks::Llama
    } else {
        Blocks::Own("OLMo")
    };
    let vocabulary = whole("vocab_size").unwrap_or(50_257);
    let shape = Shape {
        blocks,
        layers,
        hidden,
        heads,
        kv: Some(
            whole("n_kv_heads").unwrap_or(if on("multi_query_attention") {
                1
            } else {
                heads
            }),
        ),
        ffn: Some(if gated { wide / 2 } else { wide }),
        vocabulary: Some(whole("embedding_size").unwrap_or(vocabulary)),
        tied: Some(keys.switch("model.weight_tying").value() != Some(&false)),
        positions: whole("max_sequence_length"),
        experts: None,
    };
    common::shaped(facts, shape, "model");
}

fn spread(keys: &Keys, facts: &mut Facts) {
    let said = keys.text("distributed_strategy");
    let data = match said.value().map(String::as_str) {
        Some("ddp") => DataParallel::Ddp,
        Some("single") => DataParallel::None,
        _ => match keys
            .text("fsdp.sharding_strategy")
            .value()
            .map(|name| name.to_ascii_uppercase())
            .as_deref()
        {
            Some("NO_SHARD") => DataParallel::Ddp,
            Some("HYBRID_SHARD" | "_HYBRID_SHARD_ZERO2") => DataParallel::Hsdp,
            Some("SHARD_GRAD_OP") => DataParallel::Zero2,
            _ => DataParallel::Fsdp1,
        },
    };
    facts.strategy = if said.is_known() || keys.has("fsdp") {
        Fact::read(Strategy::from(data), "distributed_strategy and fsdp")
    } else {
        Fact::default_of(Strategy::from(data), "OLMo's distributed_strategy")
    };
    let whole = keys.peek("fsdp").is_some() && !keys.has("fsdp.wrapping_strategy");
    if whole && data == DataParallel::Fsdp1 {
        let effect = "fsdp.wrapping_strategy: null gathers all weights at once";
        facts.not_modelled.push(effect.into());
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    const RUN: &str = "
run_name: small
model: {d_model: 2048, n_heads: 16, n_layers: 16, mlp_ratio: 8, weight_tying: true, rope: true, layer_norm_type: default, layer_norm_with_affine: false, vocab_size: 50280, embedding_size: 50304, max_sequence_length: 2048}
optimizer: {name: adamw}
global_train_batch_size: 64
device_train_microbatch_size: 4
precision: amp_bf16
activation_checkpointing: one_in_two
fsdp: {sharding_strategy: SHARD_GRAD_OP, wrapping_strategy: by_block}
";

    #[test]
    fn sizes_decide_the_network_and_the_launcher_its_gpus() {
        check(
            "run.yaml",
            RUN,
            &[
                ("outcome", "question"),
                ("asks", "gpus"),
                ("catalogue", "olmo-1b"),
                ("strategy", "zero2"),
                ("compute", "bf16 autocast"),
                ("checkpointing", "selective"),
            ],
        );
        let copies = RUN.replace(
            "run_name: small",
            "run_name: small\ndistributed_strategy: ddp",
        );
        check(
            "run.yaml",
            &copies,
            &[("outcome", "estimate"), ("strategy", "ddp")],
        );
    }
}
