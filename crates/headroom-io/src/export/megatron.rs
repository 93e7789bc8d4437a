//! Megatron: flags of `pretrain_gpt.py`, which lives in the repository and not in the package.

use super::common::{hub_name, launch_torchrun, machines};
use super::header::header;
use super::refuse::{self, Layout};
use super::{Files, Target};
use headroom_catalog::ModelEntry;
use headroom_core::estimate::Estimate;
use headroom_scenario::{
    Attention, Case, Checkpointing, LossKernel, Optimizer, Parallelism, Precision, Problem,
    Scenario, Schedule, Trainer,
};

pub(super) const TARGET: Target = Target {
    id: "megatron",
    title: "Megatron-core (pretrain_gpt.py)",
    versions: "megatron-core 0.16 to 0.19",
    differs: "its own kernels save other tensors than predicted, and with --bf16, 16-bit weights exist in addition to \
              fp32 ones and fp32 gradients",
    write,
};

const LAYOUTS: &[Parallelism] = &[Parallelism::Ddp, Parallelism::Zero1];

/// Architectures whose layers its flags describe, and the flags that are not sizes.
const ARCHITECTURES: &[(&str, &[&str])] = &[
    ("llama", LLAMA),
    ("mistral", LLAMA),
    ("qwen2", QWEN2),
    ("gpt2", GPT2),
];
const LLAMA: &[&str] = &[
    "--normalization=RMSNorm",
    "--swiglu",
    "--disable-bias-linear",
    "--position-embedding-type=rope",
    "--hidden-dropout=0.0",
    "--attention-dropout=0.0",
];
const QWEN2: &[&str] = &[
    "--normalization=RMSNorm",
    "--swiglu",
    "--disable-bias-linear",
    "--add-qkv-bias",
    "--position-embedding-type=rope",
    "--hidden-dropout=0.0",
    "--attention-dropout=0.0",
];
const GPT2: &[&str] = &[
    "--normalization=LayerNorm",
    "--position-embedding-type=learned_absolute",
];

/// The strategy's settings that it exposes.
const DETAILS: &[&str] = &[
    "parallel.sequence_parallel",
    "parallel.loss_parallel",
    "parallel.schedule",
    "parallel.virtual_stages",
];

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let training = &scenario.training;
    // Counted as its own network, whose loss Transformer Engine can fuse.
    let is_named = scenario.stack.trainer == Trainer::Megatron;
    let fuses = is_named && training.loss == LossKernel::Liger;
    let loss: &[&str] = if fuses { &[] } else { &["training.loss"] };
    let mut problems = refuse::fixed(
        scenario,
        &[refuse::BEYOND_PRETRAINING, refuse::COMPILE, loss],
    );
    problems.extend(refuse::task(scenario));
    problems.extend(refuse::details(scenario, DETAILS));
    problems.extend(split(scenario));
    let model = Case::of(scenario).model;
    let kind = model.and_then(|model| ARCHITECTURES.iter().find(|(arch, _)| *arch == model.arch));
    if kind.is_none() {
        let ids: Vec<&str> = ARCHITECTURES.iter().map(|(id, _)| *id).collect();
        let expected = format!(
            "a model of the catalogue of kind {} for this target",
            ids.join(", ")
        );
        problems.push(Problem::new("model.id", &scenario.model.id, expected));
    }
    let known: &[Precision] = if is_named {
        &[Precision::Fp32, Precision::Bf16, Precision::Fp16]
    } else {
        &[Precision::Fp32, Precision::AmpBf16, Precision::AmpFp16]
    };
    problems.extend(refuse::precision_among(scenario, known));
    problems.extend(refuse::plain_checkpointing(scenario));
    let optimizer = training.optimizer;
    let named = match optimizer {
        Optimizer::AdamWFused => Some("adam"),
        Optimizer::SgdMomentum => Some("sgd"),
        _ => None,
    };
    if named.is_none() {
        let expected = "adamw-fused or sgd-momentum for this target";
        problems.push(Problem::new("training.optimizer", optimizer.id(), expected));
    }
    let (layout, machines) = (refuse::layout(scenario, LAYOUTS), machines(scenario));
    if let Ok(layout) = layout {
        problems.extend(refuse::buckets(scenario, layout, refuse::BUCKETS));
    }
    let (Some(model), Some((_, flags)), Some(optimizer), Ok(layout), Ok(machines), true) =
        (model, kind, named, &layout, &machines, problems.is_empty())
    else {
        problems.extend(layout.err());
        problems.extend(machines.err());
        return Err(problems);
    };
    let mut words: Vec<String> = vec!["pretrain_gpt.py".into()];
    words.extend(sizes(scenario, model));
    words.extend(flags.iter().map(ToString::to_string));
    if *flags == GPT2 {
        let dropout = if training.dropout { 0.1 } else { 0.0 };
        words.push(format!("--hidden-dropout={dropout:.1}"));
        words.push(format!("--attention-dropout={dropout:.1}"));
    }
    words.extend(run(scenario, *layout, optimizer));
    let header = header(&TARGET, scenario, estimate);
    Ok(vec![launch_torchrun(&header, scenario, machines, &words)])
}

/// Problems of matrices and layers that are split otherwise than it does.
fn split(scenario: &Scenario) -> Vec<Problem> {
    let parallel = &scenario.parallel;
    let mut problems = Vec::new();
    if parallel.tp > 1 && !parallel.loss_parallel {
        let expected = "on for this target, which splits the loss with the matrices";
        problems.push(Problem::new("parallel.loss_parallel", "off", expected));
    }
    let (schedule, stages) = (parallel.schedule, parallel.virtual_stages);
    let known = match schedule {
        Schedule::OneForwardOneBackward => stages == 1,
        Schedule::Interleaved => stages > 1,
        _ => false,
    };
    if parallel.pp > 1 && !known {
        let expected = "1f1b with one stage a GPU, or interleaved with several, for this target";
        problems.push(Problem::new("parallel.schedule", schedule.id(), expected));
    }
    problems
}

/// The model's sizes as flags.
fn sizes(scenario: &Scenario, model: &ModelEntry) -> Vec<String> {
    let size = |name: &str| {
        let changed = scenario.model.dims.get(name).copied();
        changed.or_else(|| model.size(name))
    };
    let mut words = Vec::new();
    for (name, flag) in [
        ("layers", "--num-layers"),
        ("hidden", "--hidden-size"),
        ("ffn", "--ffn-hidden-size"),
        ("heads", "--num-attention-heads"),
        ("head_dim", "--kv-channels"),
        ("vocab", "--vocab-size"),
    ] {
        words.extend(size(name).map(|size| format!("{flag}={size}")));
    }
    if let Some(kv) = size("kv").filter(|kv| Some(*kv) != size("heads")) {
        words.push("--group-query-attention".into());
        words.push(format!("--num-query-groups={kv}"));
    }
    if size("tied") == Some(0) {
        words.push("--untie-embeddings-and-output-weights".into());
    }
    let sequence = scenario.data.sequence;
    let positions = size("ctx").unwrap_or(sequence).max(sequence);
    words.push(format!("--seq-length={sequence}"));
    words.push(format!("--max-position-embeddings={positions}"));
    words
}

/// How it is trained, as flags.
fn run(scenario: &Scenario, layout: Layout, optimizer: &str) -> Vec<String> {
    let training = &scenario.training;
    let parallel = &scenario.parallel;
    let mut words = vec![
        format!("--micro-batch-size={}", scenario.data.micro_batch),
        format!("--global-batch-size={}", scenario.effective_batch()),
        format!("--tensor-model-parallel-size={}", parallel.tp),
        format!("--pipeline-model-parallel-size={}", parallel.pp),
        format!("--context-parallel-size={}", parallel.cp),
        format!("--expert-model-parallel-size={}", parallel.ep),
        format!("--optimizer={optimizer}"),
        format!("--clip-grad={}", if training.clip { "1.0" } else { "0.0" }),
        // What was counted.
        if scenario.stack.trainer == Trainer::Megatron {
            "--transformer-impl=transformer_engine".into()
        } else {
            "--transformer-impl=local".into()
        },
    ];
    if training.loss == LossKernel::Liger {
        words.push("--cross-entropy-loss-fusion".into());
        words.push("--cross-entropy-fusion-impl=te".into());
    }
    let attention = match training.attention {
        Attention::Sdpa | Attention::Flash2 => "flash",
        Attention::Eager => "unfused",
    };
    words.push(format!("--attention-backend={attention}"));
    words.extend(match training.precision {
        Precision::AmpBf16 | Precision::Bf16 => Some("--bf16".into()),
        Precision::AmpFp16 | Precision::Fp16 => Some("--fp16".into()),
        _ => None,
    });
    if parallel.tp > 1 && parallel.sequence_parallel {
        words.push("--sequence-parallel".into());
    }
    if parallel.pp > 1 && parallel.virtual_stages > 1 {
        let stages = parallel.virtual_stages;
        words.push(format!("--num-virtual-stages-per-pipeline-rank={stages}"));
    }
    if layout == Layout::Zero(1) {
        words.push("--use-distributed-optimizer".into());
    }
    if training.checkpointing == Checkpointing::Layers {
        let (method, layers) = match training.checkpoint_first {
            0 => ("uniform", training.checkpoint_span),
            first => ("block", first),
        };
        words.push("--recompute-granularity=full".into());
        words.push(format!("--recompute-method={method}"));
        words.push(format!("--recompute-num-layers={layers}"));
    }
    // The user chooses tokenizer, data and learning rate; the data here is a placeholder.
    words.push("--tokenizer-type=HuggingFaceTokenizer".into());
    words.push(format!("--tokenizer-model={}", hub_name(scenario)));
    words.extend(
        [
            "--mock-data",
            "--lr=2e-5",
            "--train-iters=100",
            "--log-interval=10",
        ]
        .map(String::from),
    );
    words
}
