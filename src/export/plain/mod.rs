//! Plain PyTorch: a short `train.py` that does what was computed, its YAML, and the `torchrun` command.

use super::common::{causal, file, hub_name, launch};
use super::header::header;
use super::{Files, Target, yaml};
use crate::document::Document;
use crate::estimate::Estimate;
use crate::scenario::{Checkpointing, Optimizer, Problem, Scenario};

pub(super) const TARGET: Target = Target {
    id: "plain",
    title: "Plain PyTorch (torchrun)",
    versions: "torch 2.4 to 2.15, transformers 4.57 to 5.23, peft where adapters are used",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let problems = problems(scenario);
    if !problems.is_empty() {
        return Err(problems);
    }
    let header = header(&TARGET, scenario, estimate);
    let config = yaml::write(&config(scenario, estimate));
    let gpus = scenario.hardware.gpus.to_string();
    let words = [
        "torchrun",
        "--standalone",
        "--nproc-per-node",
        &gpus,
        "train.py",
        "train.yaml",
    ];
    Ok(vec![
        file("train.yaml", format!("{header}{config}")),
        file("train.py", include_str!("train.py").into()),
        launch(&header, scenario, &words),
    ])
}

/// What `train.py` cannot do.
fn problems(scenario: &Scenario) -> Vec<Problem> {
    let optimizer = scenario.training.optimizer;
    let mut problems: Vec<Problem> = causal(scenario).into_iter().collect();
    if !is_in_torch(optimizer) {
        let expected = "an optimizer that is part of torch or transformers, for this target";
        problems.push(Problem::new("training.optimizer", optimizer.id(), expected));
    }
    if scenario.training.channels_last {
        let expected = "off for this target, which trains text models";
        problems.push(Problem::new("training.channels_last", "on", expected));
    }
    problems
}

fn is_in_torch(optimizer: Optimizer) -> bool {
    matches!(
        optimizer,
        Optimizer::AdamW
            | Optimizer::AdamWFused
            | Optimizer::AdamWLoop
            | Optimizer::Sgd
            | Optimizer::SgdMomentum
            | Optimizer::Adafactor
            | Optimizer::AdafactorHf
            | Optimizer::Adagrad
            | Optimizer::RmsProp
    )
}

fn config(scenario: &Scenario, estimate: &Estimate) -> Document {
    let Scenario {
        hardware,
        model,
        data,
        training,
        ..
    } = scenario;
    let dims = |(key, size): (&String, &u64)| (key.clone(), Document::from(*size));
    let document = Document::new()
        .with_note(
            "model",
            hub_name(scenario),
            "a Hugging Face name or a folder",
        )
        .with("dims", model.dims.iter().map(dims).collect::<Document>())
        .with_note(
            "train_file",
            Document::Null,
            "JSON lines with a \"text\"; null: random tokens",
        )
        .with("world_size", hardware.gpus)
        .with("micro_batch_size", data.micro_batch)
        .with("gradient_accumulation_steps", training.accumulation)
        .with("max_seq_len", data.sequence)
        .with("padding_mask", data.padding_mask)
        .with("precision", training.precision.id())
        .with("optimizer", training.optimizer.id())
        .with("attention", training.attention.id())
        .with(
            "gradient_checkpointing",
            training.checkpointing != Checkpointing::None,
        )
        .with("clip_grad_norm", training.clip.then_some(1.0))
        .with("dropout", training.dropout)
        .with("ema", training.ema)
        .with("set_to_none", training.zero_to_none)
        .with("keep_outputs", training.keep_outputs)
        .with("use_cache", training.use_cache)
        .with("freeze", training.freeze.clone())
        .with("train_only", training.train_only.clone());
    let lora = training.lora.as_ref().map(|lora| {
        Document::new()
            .with("rank", lora.rank)
            .with("targets", lora.targets.clone())
            .with("exclude", lora.exclude.clone())
            .with("dropout", lora.dropout)
            .with("fp32_adapters", lora.fp32_adapters)
    });
    document
        .with("lora", lora)
        .with("learning_rate", 2e-5)
        .with("max_steps", 10_u64)
        .with_note("predicted_allocated", estimate.allocated.expected, "bytes")
}
