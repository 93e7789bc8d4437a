//! Megatron-Bridge: YAML that overrides a recipe (`model`, `train`, `ddp`, `optimizer`, `checkpoint`).
//!
//! Keys are those of `megatron.bridge.training.config.ConfigContainer`.

use super::common;
use crate::fact::Fact;
use crate::facts::{Ask, Facts};
use crate::keys::Keys;
use crate::program::{Program, Source};
use crate::words::{Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Weights};

pub const PROGRAM: Program = Program {
    id: "megatron-bridge",
    name: "Megatron-Bridge",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    let keys = source.document()?;
    let batch = keys.has("train.micro_batch_size") || keys.has("train.global_batch_size");
    let sections = [
        "ddp",
        "dist",
        "checkpoint",
        "rng",
        "scheduler",
        "mixed_precision",
        "comm_overlap",
    ];
    let marks = sections.iter().filter(|key| keys.has(key)).count();
    let parallel = keys.has("model.tensor_model_parallel_size")
        || keys.has("model.pipeline_model_parallel_size");
    (batch && (marks >= 2 || parallel)).then(|| of(keys))
}

fn of(keys: &Keys) -> Facts {
    let mut facts = Facts::of("megatron-bridge");
    facts.model = keys
        .text("checkpoint.pretrained_checkpoint")
        .or(keys.text("model.hf_model_id"));
    facts.task = if keys.has("checkpoint.pretrained_checkpoint") || keys.has("peft") {
        Fact::follows(Task::Sft, "checkpoint.pretrained_checkpoint")
    } else {
        Fact::follows(Task::Pretraining, "its recipe")
    };
    facts.micro_batch = keys.whole("train.micro_batch_size");
    facts.batch_of_all = keys.whole("train.global_batch_size");
    facts.sequence = keys
        .whole("dataset.sequence_length")
        .or(keys.whole("dataset.seq_length"))
        .or(keys.whole("model.seq_length"));
    let size = |name: &str| {
        let said = keys.whole(&format!("model.{name}_model_parallel_size"));
        said.value().copied().unwrap_or(1).max(1)
    };
    let cp = keys
        .whole("model.context_parallel_size")
        .value()
        .copied()
        .unwrap_or(1)
        .max(1);
    let divided = keys.switch("ddp.use_distributed_optimizer").value() != Some(&false);
    let strategy = Strategy {
        data: if divided {
            DataParallel::Zero1
        } else {
            DataParallel::Ddp
        },
        tp: size("tensor"),
        pp: size("pipeline"),
        cp,
        ep: size("expert"),
    };
    facts.strategy = Fact::follows(strategy, "model's parallel sizes");
    let precision = keys
        .text("mixed_precision")
        .value()
        .cloned()
        .unwrap_or_default();
    facts.weights = Fact::default_of(Weights::Bf16, "Megatron-Bridge's mixed_precision");
    facts.compute = if precision.contains("fp8") {
        Fact::read(Compute::Bf16Fp8, "mixed_precision")
    } else {
        Fact::default_of(Compute::Bf16, "Megatron-Bridge's mixed_precision")
    };
    facts.checkpointing =
        keys.text("model.recompute_granularity")
            .and_then(|name| match name.as_str() {
                "full" => Some(Checkpointing::On),
                "selective" => Some(Checkpointing::Selective),
                _ => None,
            });
    facts.optimizer = keys
        .text("optimizer.optimizer")
        .or_default("adam".into(), "Megatron-Bridge");
    facts.offload = if keys.switch("optimizer.optimizer_cpu_offload").value() == Some(&true) {
        Fact::read(Offload::Optimizer, "optimizer.optimizer_cpu_offload")
    } else {
        Fact::default_of(Offload::None, "Megatron-Bridge")
    };
    let rank = keys.whole("peft.dim");
    if rank.is_known() || keys.has("peft") {
        common::trains_lora(
            &mut facts,
            rank.or_default(32, "Megatron-Bridge's dim"),
            "peft",
        );
    } else {
        common::trains_all(&mut facts);
    }
    facts.ask(
        Ask::BaseConfig,
        "the recipe that it overrides decides the rest",
    );
    facts
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    #[test]
    fn the_recipe_below_is_asked_for() {
        let run = "
model: {tensor_model_parallel_size: 2, seq_length: 8192, recompute_granularity: full}
train: {micro_batch_size: 1, global_batch_size: 128}
ddp: {use_distributed_optimizer: true}
checkpoint: {save: out}
";
        check(
            "override.yaml",
            run,
            &[
                ("outcome", "question"),
                ("strategy", "zero1+tp2"),
                ("micro_batch", "1"),
                ("sequence", "8192"),
                ("checkpointing", "true"),
            ],
        );
    }
}
