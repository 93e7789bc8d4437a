//! Plain PyTorch: a short `train.py` that does what was computed, its YAML, and the `torchrun` command.

use super::common::{file, hub_name, launch_torchrun, machines, processes};
use super::header::header;
use super::{Files, Target, refuse};
use crate::document::Document;
use crate::document::yaml;
use crate::estimate::Estimate;
use crate::scenario::{Checkpointing, Optimizer, Parallelism, Problem, Quantization, Scenario};

pub(super) const TARGET: Target = Target {
    id: "plain",
    title: "Plain PyTorch (torchrun)",
    versions: "torch 2.4 to 2.15, transformers 4.57 to 5.23, peft where adapters are used",
    differs: "",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let header = header(&TARGET, scenario, estimate);
    let mut files = job(scenario, estimate, &header)?;
    let machines = machines(scenario).map_err(|problem| vec![problem])?;
    let words = ["train.py", "train.yaml"].map(String::from);
    files.push(launch_torchrun(&header, scenario, &machines, &words));
    Ok(files)
}

/// `train.yaml` and `train.py`, for any launcher that starts a process for each GPU.
pub(super) fn job(scenario: &Scenario, estimate: &Estimate, header: &str) -> Files {
    let problems = problems(scenario);
    if !problems.is_empty() {
        return Err(problems);
    }
    let config = yaml::write(&config(scenario, estimate));
    Ok(vec![
        file("train.yaml", format!("{header}{config}")),
        file("train.py", include_str!("train.py").into()),
    ])
}

/// What `train.py` always does in one way.
const FIXED: &[&str] = &[
    "training.checkpoint_every",
    "training.loss",
    "training.kernels",
    "training.optimizer_in_backward",
    "training.channels_last",
    "training.fp8",
    "parallel.tp",
    "parallel.pp",
    "parallel.cp",
    "parallel.ep",
];

/// What `train.py` cannot do.
fn problems(scenario: &Scenario) -> Vec<Problem> {
    let optimizer = scenario.training.optimizer;
    let mut problems = refuse::fixed(scenario, FIXED);
    problems.extend(refuse::task(scenario));
    problems.extend(refuse::layout(scenario, &[Parallelism::Ddp]).err());
    problems.extend(refuse::causal(scenario));
    problems.extend(refuse::plain_checkpointing(scenario));
    problems.extend(refuse::quantized(scenario));
    if !is_offered(optimizer) {
        let expected = "an optimizer of torch, transformers or bitsandbytes, for this target";
        problems.push(Problem::new("training.optimizer", optimizer.id(), expected));
    }
    if !scenario.model.dims.is_empty() && scenario.training.quantization != Quantization::None {
        let expected =
            "none where model.dims change the model: weights are quantised as they are loaded";
        let id = scenario.training.quantization.id();
        problems.push(Problem::new("training.quantization", id, expected));
    }
    problems
}

fn is_offered(optimizer: Optimizer) -> bool {
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
            | Optimizer::AdamW8bit
            | Optimizer::PagedAdamW
            | Optimizer::PagedAdamW8bit
    )
}

fn config(scenario: &Scenario, estimate: &Estimate) -> Document {
    let Scenario {
        model,
        data,
        training,
        parallel,
        runtime,
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
        .with("world_size", processes(scenario))
        .with("micro_batch_size", data.micro_batch)
        .with("gradient_accumulation_steps", training.accumulation)
        .with("max_seq_len", data.sequence)
        .with("padding_mask", data.padding_mask)
        .with("precision", training.precision.id())
        .with("quantization", training.quantization.id())
        .with("optimizer", training.optimizer.id())
        .with("attention", training.attention.id())
        .with(
            "gradient_checkpointing",
            training.checkpointing != Checkpointing::None,
        )
        .with("clip_grad_norm", training.clip.then_some(1.0))
        .with("dropout", training.dropout)
        .with("ema", training.ema)
        .with("ema_on_host", training.ema_on_host)
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
        .with("bucket_cap_mb", parallel.bucket_mb)
        .with("gradient_as_bucket_view", parallel.bucket_view)
        .with("memory_fraction", runtime.memory_fraction)
        .with("num_workers", runtime.workers)
        .with("prefetch_factor", runtime.prefetch)
        .with("pin_memory", runtime.pin_memory)
        .with_note("eval_batch_size", runtime.eval_batch, "0: no evaluation")
        .with("eval_every", runtime.eval_every)
        .with_note("save_every", runtime.save_every, "0: nothing is saved")
        .with("save_keep", runtime.save_keep)
        .with("learning_rate", 2e-5)
        .with("max_steps", 10_u64)
        .with_note("predicted_allocated", estimate.allocated.expected, "bytes")
}
