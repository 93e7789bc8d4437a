//! `TrainingArguments` and TRL's configurations: keys that all of their users share.
//!
//! Defaults are those of transformers' `training_args.py` and TRL's `*_config.py`; where they differ by version, the versions are
//! named.

use crate::fact::Fact;
use crate::facts::{Ask, Facts};
use crate::keys::Keys;
use crate::words::{Checkpointing, Compute, Task};

use super::precision;

/// Sizes, optimizer, checkpointing, evaluation: what does not depend on the trainer.
pub fn apply(keys: &Keys, facts: &mut Facts) {
    use std::mem::take;
    facts.micro_batch = take(&mut facts.micro_batch)
        .or(keys.whole("per_device_train_batch_size"))
        .or(keys.whole("per_gpu_train_batch_size"));
    facts.accumulation =
        take(&mut facts.accumulation).or(keys.whole("gradient_accumulation_steps"));
    facts.optimizer = take(&mut facts.optimizer).or(keys.text("optim").map(|name| plain(&name)));
    if keys.switch("adafactor").value() == Some(&true) {
        facts.optimizer = Fact::read("adafactor".into(), "adafactor");
    }
    let checkpointing = keys
        .switch("gradient_checkpointing")
        .or(keys.switch("use_gradient_checkpointing"));
    facts.checkpointing = take(&mut facts.checkpointing).or(checkpointing.map(|on| {
        if on {
            Checkpointing::On
        } else {
            Checkpointing::Off
        }
    }));
    precision::amp(keys, facts);
    facts.attention = take(&mut facts.attention).or(precision::attention(keys));
    let liger = keys
        .switch("use_liger_kernel")
        .or(keys.switch("use_liger"))
        .or(keys.switch("use_liger_loss"));
    facts.liger = take(&mut facts.liger).or(liger);
    facts.packing = take(&mut facts.packing)
        .or(keys.switch("packing"))
        .or(keys.switch("group_texts"));
    facts.compile = take(&mut facts.compile).or(keys.switch("torch_compile"));
    let when = ["eval_strategy", "evaluation_strategy"]
        .iter()
        .find_map(|key| keys.text(key).value().cloned());
    let evaluates = when.map_or_else(
        || keys.switch("do_eval").value() == Some(&true),
        |when| !matches!(when.as_str(), "no" | "False" | "false"),
    );
    facts.evaluation = take(&mut facts.evaluation).or(Fact::follows(evaluates, "eval_strategy"));
}

/// `OptimizerNames.ADAMW_TORCH` and `"adamw_torch"` are the same.
fn plain(name: &str) -> String {
    name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase()
}

/// The defaults of `TrainingArguments` for what is still open.
pub fn defaults(facts: &mut Facts) {
    use std::mem::take;
    facts.micro_batch =
        take(&mut facts.micro_batch).or_default(8, "transformers' per_device_train_batch_size");
    facts.accumulation =
        take(&mut facts.accumulation).or_default(1, "transformers' gradient_accumulation_steps");
    facts.optimizer =
        take(&mut facts.optimizer).or_default("adamw_torch".into(), "transformers' optim");
    facts.checkpointing = take(&mut facts.checkpointing)
        .or_default(Checkpointing::Off, "transformers' gradient_checkpointing");
    facts.liger = take(&mut facts.liger).or_default(false, "transformers' use_liger_kernel");
}

/// Defaults of a version of TRL: since 0.22 its own configurations checkpoint, and since 0.19 they compute in bf16.
pub fn of_trl(version: (u32, u32), own_config: bool, facts: &mut Facts) {
    use std::mem::take;
    let sampled = matches!(facts.task.value(), Some(Task::Grpo | Task::Rloo));
    if own_config {
        if version >= (0, 22) {
            facts.checkpointing = take(&mut facts.checkpointing)
                .or_default(Checkpointing::On, "TRL's gradient_checkpointing");
        }
        if version >= (0, 19) {
            facts.compute =
                take(&mut facts.compute).or_default(Compute::Bf16Autocast, "TRL's bf16");
        }
    }
    if sampled {
        facts.samples = take(&mut facts.samples).or_default(8, "TRL's num_generations");
        let prompt = take(&mut facts.prompt);
        let prompt = if version < (0, 24) {
            prompt.or_default(512, "TRL's max_prompt_length")
        } else {
            prompt
        };
        let completion = take(&mut facts.completion).or_default(256, "TRL's max_completion_length");
        if let (Some(prompt), Some(completion)) = (prompt.value(), completion.value()) {
            let sum = prompt.saturating_add(*completion);
            facts.sequence = take(&mut facts.sequence).or_follows(sum, "prompt and completion");
        } else if facts.sequence.is_unsaid() {
            facts.ask(
                Ask::Sequence,
                "prompts are not cut: their longest one decides",
            );
        }
        facts.prompt = prompt;
        facts.completion = completion;
    } else {
        facts.sequence = take(&mut facts.sequence).or_default(1024, "TRL's max_length");
    }
}

/// The length of what one forward sees.
pub fn sequence(keys: &Keys, facts: &mut Facts) {
    const LENGTHS: &[&str] = &[
        "max_length",
        "max_seq_length",
        "max_seq_len",
        "model_max_length",
        "cutoff_len",
        "block_size",
        "seq_length",
        "max_source_length",
        "sequence_len",
        "max_context_length",
        "context_length",
        "max_len",
    ];
    let sampled = matches!(
        facts.task.value(),
        Some(Task::Grpo | Task::Rloo | Task::Ppo)
    );
    if sampled {
        let prompt = keys
            .whole("max_prompt_length")
            .or(keys.whole("max_prompt_token_length"));
        let completion = keys
            .whole("max_completion_length")
            .or(keys.whole("response_length"))
            .or(keys.whole("max_new_tokens"));
        let sum = match (prompt.value(), completion.value()) {
            (Some(prompt), Some(completion)) => Some(prompt.saturating_add(*completion)),
            _ => None,
        };
        facts.prompt = prompt;
        facts.completion = completion;
        if let Some(sum) = sum {
            facts.sequence = Fact::follows(sum, "prompt and completion");
        }
        return;
    }
    let length = LENGTHS.iter().fold(Fact::Unsaid, |fact: Fact<u64>, key| {
        fact.or(keys.whole(key))
    });
    facts.sequence = std::mem::take(&mut facts.sequence).or(length);
}
