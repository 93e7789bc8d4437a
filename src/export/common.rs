//! What several targets share: names that the Hugging Face libraries use, and the launch script.

use super::{File, shell};
use crate::catalog;
use crate::document::Document;
use crate::scenario::{Checkpointing, Optimizer, Precision, Problem, Scenario, settings};

/// A text file.
pub(super) fn file(name: &'static str, contents: String) -> File {
    File {
        name,
        contents,
        executable: false,
    }
}

/// `launch.sh`: the allocator's settings and one command, to which the script's own arguments are added.
pub(super) fn launch(header: &str, scenario: &Scenario, words: &[&str]) -> File {
    let mut contents = shell::opening(header);
    if scenario.runtime.expandable_segments {
        contents.push_str(&shell::allocator("expandable_segments:True"));
    }
    contents.push_str(&format!("exec {} \"$@\"\n", shell::command(words)));
    File {
        name: "launch.sh",
        contents,
        executable: true,
    }
}

/// The model's name on the hub, where the catalogue knows it.
pub(super) fn hub_name(scenario: &Scenario) -> &str {
    match catalog::model(&scenario.model.id) {
        Some(model) if !model.hf_id.is_empty() => model.hf_id,
        _ => &scenario.model.id,
    }
}

/// A problem for each of these fields whose value the target has no word for: it always does what the default says.
pub(super) fn fixed(scenario: &Scenario, paths: &[&str]) -> Vec<Problem> {
    let defaults = Scenario::default();
    let differs = |path: &&str| {
        let setting = settings::find(path)?;
        let value = setting.get(scenario);
        let fixed = setting.get(&defaults);
        let asked = setting.applies(scenario) && value != fixed;
        let shown = if fixed.is_empty() { "nothing" } else { &fixed };
        let expected = format!("{shown}, which is all that this target can do");
        asked.then(|| Problem::new(*path, value, expected))
    };
    paths.iter().filter_map(differs).collect()
}

/// A problem where the model is none that these scripts and tools train: one that continues text.
pub(super) fn causal(scenario: &Scenario) -> Option<Problem> {
    let model = catalog::model(&scenario.model.id)?;
    let expected = "a language model that continues text, for this target";
    let other = model.category != catalog::Category::Decoders;
    other.then(|| Problem::new("model.id", model.id, expected))
}

/// What a `Trainer` of transformers always does in one way.
pub(super) const TRAINER_FIXED: &[&str] = &[
    "model.dims",
    "training.freeze",
    "training.train_only",
    "training.dropout",
    "training.ema",
    "training.checkpoint_every",
    "training.loss",
    "training.kernels",
    "training.optimizer_in_backward",
    "training.quantization",
    "training.zero_to_none",
    "training.keep_outputs",
    "training.use_cache",
    "training.channels_last",
    "training.lora.exclude",
    "training.lora.fp32_adapters",
];

/// A problem where the precision is not one of these.
pub(super) fn precision_among(scenario: &Scenario, known: &[Precision]) -> Option<Problem> {
    let precision = scenario.training.precision;
    if known.contains(&precision) {
        return None;
    }
    let ids: Vec<&str> = known.iter().map(|it| it.id()).collect();
    let expected = format!("{} for this target", ids.join(" or "));
    Some(Problem::new("training.precision", precision.id(), expected))
}

/// The `optim` of transformers that runs exactly this optimizer.
pub(super) fn optim(optimizer: Optimizer) -> Result<&'static str, Problem> {
    match optimizer {
        Optimizer::AdamW => Ok("adamw_torch"),
        Optimizer::AdamWFused => Ok("adamw_torch_fused"),
        Optimizer::Sgd => Ok("sgd"),
        Optimizer::AdafactorHf => Ok("adafactor"),
        Optimizer::Adagrad => Ok("adagrad"),
        Optimizer::RmsProp => Ok("rmsprop"),
        other => {
            let expected =
                "adamw, adamw-fused, sgd, adafactor-hf, adagrad or rmsprop for this target";
            Err(Problem::new("training.optimizer", other.id(), expected))
        }
    }
}

/// The format that weights are loaded in.
pub(super) fn weights(precision: Precision) -> &'static str {
    match precision {
        Precision::Fp32 | Precision::AmpBf16 | Precision::AmpFp16 => "float32",
        Precision::Bf16 | Precision::AmpBf16OnBf16 => "bfloat16",
        Precision::Fp16 => "float16",
        Precision::Fp64 => "float64",
    }
}

/// Keys of `TrainingArguments` that memory depends on, legal from transformers 4.57 to 5.23, and those a run needs.
pub(super) fn training_arguments(scenario: &Scenario, optim: &str) -> Document {
    let training = &scenario.training;
    let precision = training.precision;
    let checkpointing = training.checkpointing != Checkpointing::None;
    let mut document = Document::new()
        .with("per_device_train_batch_size", scenario.data.micro_batch)
        .with("gradient_accumulation_steps", training.accumulation)
        .with("gradient_checkpointing", checkpointing);
    if checkpointing {
        let reentrant = Document::new().with("use_reentrant", false);
        document = document.with("gradient_checkpointing_kwargs", reentrant);
    }
    let bf16 = matches!(precision, Precision::AmpBf16 | Precision::AmpBf16OnBf16);
    document
        .with_note("bf16", bf16, "autocast")
        .with("fp16", precision == Precision::AmpFp16)
        .with("optim", optim)
        .with_note(
            "max_grad_norm",
            if training.clip { 1.0 } else { 0.0 },
            "0: no clipping",
        )
        .with_note(
            "learning_rate",
            2e-5,
            "yours to choose, as are the lines below",
        )
        .with("max_steps", 100_u64)
        .with("logging_steps", 10_u64)
        .with("save_strategy", "no")
        .with("report_to", "none")
        .with("output_dir", "out")
}
