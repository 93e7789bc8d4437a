//! Plain PyTorch: a short `train.py` that does what was predicted, its YAML, and the `torchrun` command.
//!
//! `train.py` is the loop, `model.py` the model with its batches and its loss, `prepare.py` what a run changes in any model.

mod network;
mod recorded;

use std::num::NonZero;

use super::common::{
    file, hub_name, launch_alone, launch_torchrun, learning_rate, machines, processes,
};
use super::header::header;
use super::refuse::{self, Layout};
use super::{Files, Target, adapters, layout};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_catalog as catalog;
use headroom_core::estimate::Estimate;
use headroom_scenario::{
    Case, Compile, Kernels, LossKernel, Offload, Optimizer, Parallelism, Problem, Quantization,
    Scenario,
};

pub(super) const TARGET: Target = Target {
    id: "plain",
    title: "Plain PyTorch (torchrun)",
    versions: "torch 2.4 to 2.15, transformers 4.57 to 5.23, peft where adapters are used",
    differs: "",
    write,
};

/// The count, as the script's configuration has it.
fn or_zero(count: Option<NonZero<u64>>) -> u64 {
    count.map_or(0, NonZero::get)
}

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let header = header(&TARGET, scenario, estimate);
    let mut files = program(scenario, estimate, &header)?;
    let launch = if copies(scenario) > 1 {
        launch_alone(&header, scenario, &["train.py", "train.yaml"])
    } else {
        let machines = machines(scenario).map_err(|problem| vec![problem])?;
        let words = ["train.py", "train.yaml"].map(String::from);
        launch_torchrun(&header, scenario, &machines, &words)
    };
    files.push(match recorded::recording(scenario) {
        Some(_) => recorded::finding_modules(launch),
        None => launch,
    });
    Ok(files)
}

/// `train.yaml` and `train.py`, for any launcher that starts a process for each GPU.
pub(super) fn job(scenario: &Scenario, estimate: &Estimate, header: &str) -> Files {
    if copies(scenario) > 1 {
        let expected = "another strategy: this target starts a process for each GPU";
        let id = scenario.parallel.strategy.id();
        return Err(vec![Problem::new("parallel.strategy", id, expected)]);
    }
    program(scenario, estimate, header)
}

/// The GPUs that one process copies its model to.
fn copies(scenario: &Scenario) -> u32 {
    match refuse::layout(scenario, LAYOUTS) {
        Ok(Layout::DataParallel) => scenario.hardware.gpus,
        _ => 1,
    }
}

fn program(scenario: &Scenario, estimate: &Estimate, header: &str) -> Files {
    let problems = problems(scenario);
    if !problems.is_empty() {
        return Err(problems);
    }
    let (opening, (name, model)) = match (recorded::recording(scenario), network::family(scenario))
    {
        (Some(recording), _) => (recorded::opening(recording), recorded::MODEL),
        (None, Some((family, model))) => (
            network::opening(scenario, family, model),
            ("model.py", include_str!("network.py")),
        ),
        (None, None) => (causal(scenario), ("model.py", include_str!("causal.py"))),
    };
    let config = yaml::write(&opening.and(config(scenario, estimate)));
    let mut files = vec![
        file("train.yaml", format!("{header}{config}")),
        file(
            "train.py",
            recorded::importing(name, include_str!("train.py")),
        ),
        file(name, model.into()),
        file("prepare.py", include_str!("prepare.py").into()),
    ];
    files.extend(adapters::adapter_module(scenario));
    Ok(files)
}

/// Packages that the model's constructor needs in addition to transformers.
pub(super) fn library(scenario: &Scenario) -> Option<&'static str> {
    network::family(scenario)?.0.package()
}

/// What `train.py` always does in one way.
const FIXED: &[&str] = &[
    "training.checkpoint_first",
    "training.checkpoint_span",
    "training.memory_budget",
    "training.fp8",
    "training.low_precision",
    "parallel.tp",
    "parallel.pp",
    "parallel.cp",
    "parallel.ep",
];

/// How it can share the work.
const LAYOUTS: &[Parallelism] = &[
    Parallelism::Ddp,
    Parallelism::DataParallel,
    Parallelism::Fsdp2,
    Parallelism::Hsdp,
];

/// The strategy's settings that it exposes.
const DETAILS: &[&str] = &[
    "parallel.partition_optimizer",
    "parallel.comm_hook",
    "parallel.powersgd_rank",
    "parallel.reshard",
    "parallel.reshard_to",
    "parallel.reshard_root",
    "parallel.wrap",
    "parallel.param_dtype",
    "parallel.reduce_dtype",
    "parallel.prefetch_forward",
    "parallel.prefetch_backward",
    "parallel.sync_each",
];

/// What `train.py` cannot do.
fn problems(scenario: &Scenario) -> Vec<Problem> {
    let optimizer = scenario.training.optimizer;
    let recording = recorded::recording(scenario);
    let mut problems = match recording {
        Some(_) => refuse::fixed_fields(scenario, FIXED),
        None => refuse::fixed(scenario, &[FIXED]),
    };
    problems.extend(refuse::objective(scenario));
    problems.extend(adapters::problems(scenario));
    problems.extend(refuse::details(scenario, DETAILS));
    if let Some(recording) = recording {
        problems.extend(recorded::problems(scenario, recording));
    } else if let Some((family, model)) = network::family(scenario) {
        problems.extend(refuse::layout(scenario, &[Parallelism::Ddp]).err());
        problems.extend(network::problems(scenario, family, model));
    } else {
        match refuse::layout(scenario, LAYOUTS) {
            Ok(Layout::Fsdp2 | Layout::Hsdp) => problems.extend(sharded(scenario)),
            Ok(Layout::DataParallel) => {
                // A loss of its own is a method of the model, not of its copies; and it evaluates on the first GPU alone.
                let fixed = ["training.loss", "runtime.eval_batch"];
                problems.extend(refuse::fixed_fields(scenario, &fixed));
            }
            layout => problems.extend(layout.err()),
        }
        problems.extend(refuse::causal(scenario));
        problems.extend(refuse::fixed(scenario, &[&["training.channels_last"]]));
        problems.extend(kernels(scenario));
    }
    problems.extend(alone(scenario));
    problems.extend(compiled(scenario, recording.is_some()));
    problems.extend(refuse::quantized(scenario));
    if !is_offered(optimizer) {
        let expected =
            "an optimizer of torch, transformers, bitsandbytes or torchao, for this target";
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

/// Kernels that do not fit the model.
fn kernels(scenario: &Scenario) -> Vec<Problem> {
    let (kernels, loss) = (scenario.training.kernels, scenario.training.loss);
    let Some(model) = Case::of(scenario).model else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    let fits = match kernels {
        Kernels::Library => true,
        Kernels::Liger => catalog::has_liger(model.arch),
        Kernels::FusedNorms => false,
    };
    if !fits {
        let expected = "library, or liger where Liger patches the model, for this target";
        problems.push(Problem::new("training.kernels", kernels.id(), expected));
    }
    // Liger's fused loss takes a cap.
    let capped = loss == LossKernel::LigerLinear && model.arch == "gemma2";
    let over_all = matches!(loss, LossKernel::Library | LossKernel::Liger);
    if catalog::scales_logits(model.arch) && !over_all && !capped {
        let expected = "library or liger: this model scales or caps its logits behind the head";
        problems.push(Problem::new("training.loss", loss.id(), expected));
    }
    problems
}

/// A problem if the model cannot be compiled in this way: only a language model names its layers.
fn compiled(scenario: &Scenario, recorded: bool) -> Option<Problem> {
    let compile = scenario.training.compile;
    let layers = !recorded && network::family(scenario).is_none();
    let possible = match compile {
        Compile::Nothing | Compile::Model => true,
        Compile::Layers => layers,
        Compile::ModelAgain => false,
    };
    let expected = "nothing, model, or layers for a language model, for this target";
    (!possible).then(|| Problem::new("training.compile", compile.id(), expected))
}

/// Settings that work in a single process only.
fn alone(scenario: &Scenario) -> Vec<Problem> {
    let training = &scenario.training;
    let mut problems = Vec::new();
    if processes(scenario) > 1 {
        // DDP's buckets are reduced after the hook that would step.
        problems = refuse::fixed_fields(scenario, &["training.optimizer_in_backward"]);
    }
    // Gradients leave for the host while backward goes on: what is clipped or unscaled after it are other copies.
    let changed_later = training.clip || training.precision.scales_gradients();
    let shared = processes(scenario) > 1 || training.optimizer_in_backward;
    if training.optimizer == Optimizer::AdamWOffload && (changed_later || shared) {
        let expected = "an optimizer on the GPU where gradients are clipped, unscaled or reduced, or steps are made in backward";
        problems.push(Problem::new(
            "training.optimizer",
            training.optimizer.id(),
            expected,
        ));
    }
    problems
}

/// Problems with sharded weights.
fn sharded(scenario: &Scenario) -> Vec<Problem> {
    let training = &scenario.training;
    // A head whose weight is gathered by hooks cannot be called apart from the model.
    let fixed = ["training.ema_on_host", "training.loss", "training.kernels"];
    let mut problems = refuse::fixed(scenario, &[&fixed]);
    let mut expect = |field: &str, value: &str, right: bool, expected: &str| {
        if !right {
            problems.push(Problem::new(field, value, expected));
        }
    };
    let optimizer = training.optimizer;
    let steps_shards = matches!(
        optimizer,
        Optimizer::AdamW
            | Optimizer::AdamWFused
            | Optimizer::AdamWLoop
            | Optimizer::Sgd
            | Optimizer::SgdMomentum
            | Optimizer::RmsProp
    );
    let expected =
        "adamw, adamw-fused, adamw-loop, sgd, sgd-momentum or rmsprop, which step shards (DTensor)";
    expect("training.optimizer", optimizer.id(), steps_shards, expected);
    let quantization = training.quantization;
    let full = quantization == Quantization::None;
    let expected = "none where weights are sharded: bitsandbytes has no shards of its weights";
    expect("training.quantization", quantization.id(), full, expected);
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
            | Optimizer::AdamW8bitAo
            | Optimizer::AdamW4bitAo
            | Optimizer::AdamWOffload
    )
}

/// Keys of `train.yaml` for a language model and its texts.
fn causal(scenario: &Scenario) -> Document {
    let dims = |(key, size): (&String, &u64)| (key.clone(), Document::from(*size));
    Document::new()
        .with("kind", "causal")
        .with_note(
            "model",
            hub_name(scenario),
            "a Hugging Face name or a folder",
        )
        .with(
            "dims",
            scenario.model.dims.iter().map(dims).collect::<Document>(),
        )
        .with_note(
            "train_file",
            Document::Null,
            "JSON lines with a \"text\"; null: random tokens",
        )
}

/// Keys of every run.
fn config(scenario: &Scenario, estimate: &Estimate) -> Document {
    let Scenario {
        data,
        training,
        parallel,
        runtime,
        ..
    } = scenario;
    let document = Document::new()
        .with("world_size", processes(scenario))
        .with_note(
            "copies",
            copies(scenario),
            "GPUs of one process (DataParallel)",
        )
        .with("micro_batch_size", data.micro_batch)
        .with("gradient_accumulation_steps", training.accumulation)
        .with("max_seq_len", data.sequence)
        .with("padding_mask", data.padding_mask)
        .with("precision", training.precision.id())
        .with("quantization", training.quantization.id())
        .with("optimizer", training.optimizer.id())
        .with("attention", training.attention.id())
        .with_note(
            "checkpointing",
            training.checkpointing.id(),
            "none, layers, keep-attention, keep-matmuls, keep-half, offload",
        )
        .with_note(
            "checkpoint_every",
            training.checkpoint_every,
            "the last of each so many layers",
        )
        .with("kernels", training.kernels.id())
        .with("loss", training.loss.id())
        .with("loss_chunks", training.loss_chunks)
        .with("optimizer_in_backward", training.optimizer_in_backward)
        .with("channels_last", training.channels_last)
        .with("clip_grad_norm", training.clip.then_some(1.0))
        .with("dropout", training.dropout)
        .with("ema", training.ema)
        .with("ema_on_host", training.ema_on_host)
        .with("set_to_none", training.zero_to_none)
        .with("keep_outputs", training.keep_outputs)
        .with("use_cache", training.use_cache)
        .with_note("compile", training.compile.id(), "nothing, layers, model")
        .with("compile_mode", training.compile_mode.id())
        .with("freeze", training.freeze.clone())
        .with("train_only", training.train_only.clone());
    let lora = training.lora.as_ref().map(|lora| {
        Document::new()
            .with("method", lora.method.id())
            .with("rank", lora.rank)
            .with("block", lora.block())
            .with("targets", lora.targets.clone())
            .with("exclude", lora.exclude.clone())
            .with("modules_to_save", lora.modules_to_save.clone())
            .with("dropout", lora.dropout)
            .with("fp32_adapters", lora.fp32_adapters)
    });
    document
        .with("lora", lora)
        .with("bucket_cap_mb", parallel.bucket_mb)
        .with("gradient_as_bucket_view", parallel.bucket_view)
        .with_note(
            "comm_hook",
            parallel.comm_hook.id(),
            "none, fp16, bf16, powersgd",
        )
        .with("powersgd_rank", parallel.powersgd_rank)
        .with("fsdp", fsdp(scenario))
        .with_note(
            "partition_optimizer",
            processes(scenario) > 1
                && parallel.strategy == Parallelism::Ddp
                && parallel.partition_optimizer,
            "ZeroRedundancyOptimizer",
        )
        .with("sync_each", parallel.sync_each)
        .with("memory_fraction", runtime.memory_fraction.unwrap_or(1.0))
        .with("num_workers", runtime.workers)
        .with("prefetch_factor", runtime.prefetch)
        .with("pin_memory", runtime.pin_memory)
        .with_note(
            "eval_batch_size",
            or_zero(runtime.eval_batch),
            "0: no evaluation",
        )
        .with("eval_every", or_zero(runtime.eval_every))
        .with_note(
            "save_every",
            or_zero(runtime.save_every),
            "0: nothing is saved",
        )
        .with("save_keep", or_zero(runtime.save_keep))
        .with("learning_rate", learning_rate(scenario))
        .with("max_steps", 10_u64)
        .with_note("predicted_allocated", estimate.allocated.expected, "bytes")
}

/// Arguments of `fully_shard`; none if each GPU has all weights.
fn fsdp(scenario: &Scenario) -> Option<Document> {
    let layout = refuse::layout(scenario, LAYOUTS).ok()?;
    if !matches!(layout, Layout::Fsdp2 | Layout::Hsdp) {
        return None;
    }
    let parallel = &scenario.parallel;
    let policy = layout::policy(scenario);
    let reshard: Document = match parallel.reshard_to {
        0 => parallel.reshard.into(),
        to => to.into(),
    };
    Some(
        Document::new()
            .with_note(
                "replicas",
                layout::replicas(scenario),
                "copies of all shards",
            )
            .with("wrap", policy.wrap.id())
            .with("reshard_after_forward", reshard)
            .with("reshard_root", parallel.reshard_root)
            .with("param_dtype", policy.param.id())
            .with("reduce_dtype", policy.reduce.id())
            .with("prefetch_forward", parallel.prefetch_forward)
            .with("prefetch_backward", parallel.prefetch_backward)
            .with("cpu_offload", parallel.offload == Offload::Parameters),
    )
}
