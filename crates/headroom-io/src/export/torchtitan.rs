//! torchtitan: flags over one of its own configurations.

use super::common::{launch_torchrun, machines, processes};
use super::header::header;
use super::refuse::{self, Layout};
use super::{Files, Target};
use headroom_core::estimate::Estimate;
use headroom_scenario::{
    Attention, Checkpointing, Compile, LossKernel, Offload, Optimizer, Parallelism, Precision,
    Problem, Scenario, Schedule,
};

pub(super) const TARGET: Target = Target {
    id: "torchtitan",
    title: "torchtitan",
    versions: "torchtitan 0.3",
    differs: "its own modules, and FSDP's casts in place of autocast, save other tensors than predicted",
    write,
};

/// The catalogue's models, and torchtitan's modules and configurations of them (0.3.0, `config_registry.py`).
const MODELS: &[(&str, &str, &str)] = &[
    ("llama-3.1-8b", "llama3", "llama3_8b"),
    ("llama-3.1-70b", "llama3", "llama3_70b"),
    ("llama-3.1-405b", "llama3", "llama3_405b"),
    ("qwen3-0.6b", "qwen3", "qwen3_0_6b"),
    ("qwen3-1.7b", "qwen3", "qwen3_1_7b"),
    ("qwen3-14b", "qwen3", "qwen3_14b"),
    ("qwen3-30b-a3b", "qwen3", "qwen3_30b_a3b"),
    ("qwen3-32b", "qwen3", "qwen3_32b"),
];

/// The catalogue's model by the name of torchtitan's configuration of it.
pub(crate) fn model_of(configuration: &str) -> Option<&'static str> {
    let found = MODELS.iter().find(|(.., name)| *name == configuration);
    found.map(|(id, ..)| *id)
}

const LAYOUTS: &[Parallelism] = &[Parallelism::Ddp, Parallelism::Fsdp2, Parallelism::Hsdp];

/// The strategy's settings that it exposes.
const DETAILS: &[&str] = &[
    "parallel.reshard",
    "parallel.sequence_parallel",
    "parallel.loss_parallel",
    "parallel.schedule",
    "parallel.virtual_stages",
];

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let training = &scenario.training;
    let mut problems = refuse::fixed(
        scenario,
        &[
            &[
                "model.dims",
                "training.checkpoint_first",
                "training.checkpoint_span",
            ],
            refuse::BEYOND_PRETRAINING,
        ],
    );
    problems.extend(refuse::task(scenario));
    problems.extend(refuse::details(scenario, DETAILS));
    problems.extend(refuse::compiled_layers(scenario));
    let model = refuse::model_among(scenario, MODELS, |(id, ..)| *id);
    problems.extend(model.as_ref().err().cloned());
    let model = model.ok();
    let mut expect = |field: &str, value: &str, right: bool, expected: &str| {
        if !right {
            problems.push(Problem::new(field, value, expected));
        }
    };
    let loss = training.loss;
    let chunked = matches!(
        loss,
        LossKernel::ChunkedCheckpoint | LossKernel::LigerLinear
    );
    let expected =
        "chunked-checkpoint or liger-linear: this target goes back through each chunk at once";
    expect("training.loss", loss.id(), chunked, expected);
    let parts = training.loss_chunks;
    let eight = loss != LossKernel::ChunkedCheckpoint || parts == 8;
    expect(
        "training.loss_chunks",
        &parts.to_string(),
        eight,
        "8 for this target",
    );
    let expected = "on for this target, which always clips";
    expect("training.clip", "off", training.clip, expected);
    let attention = training.attention;
    let expected = "sdpa for this target";
    expect(
        "training.attention",
        attention.id(),
        attention == Attention::Sdpa,
        expected,
    );
    let parallel = &scenario.parallel;
    let expected = "on for this target, which splits the loss with the matrices";
    let splits = parallel.tp < 2 || parallel.loss_parallel;
    expect("parallel.loss_parallel", "off", splits, expected);
    let precision = match training.precision {
        Precision::Fp32 => Some(["float32", "float32"]),
        Precision::AmpBf16 => Some(["float32", "bfloat16"]),
        Precision::Bf16 => Some(["bfloat16", "bfloat16"]),
        _ => None,
    };
    let expected = "fp32, amp-bf16 or bf16 for this target";
    expect(
        "training.precision",
        training.precision.id(),
        precision.is_some(),
        expected,
    );
    let optimizer = match training.optimizer {
        Optimizer::AdamW => Some("foreach"),
        Optimizer::AdamWFused => Some("fused"),
        Optimizer::AdamWLoop => Some("for-loop"),
        _ => None,
    };
    let expected = "adamw, adamw-fused or adamw-loop for this target";
    expect(
        "training.optimizer",
        training.optimizer.id(),
        optimizer.is_some(),
        expected,
    );
    let recompute = match training.checkpointing {
        Checkpointing::None => Some("none"),
        Checkpointing::Layers => Some("full"),
        Checkpointing::KeepHalf => Some("selective"),
        _ => None,
    };
    let expected = "none, layers or keep-half for this target";
    expect(
        "training.checkpointing",
        training.checkpointing.id(),
        recompute.is_some(),
        expected,
    );
    let (layout, machines) = (refuse::layout(scenario, LAYOUTS), machines(scenario));
    if let Ok(layout) = layout {
        problems.extend(refuse::buckets(scenario, layout, refuse::BUCKETS));
    }
    let (
        Some((_, module, config)),
        Some([weights, compute]),
        Some(optimizer),
        Some(recompute),
        Ok(layout),
        Ok(machines),
        true,
    ) = (
        model,
        precision,
        optimizer,
        recompute,
        &layout,
        &machines,
        problems.is_empty(),
    )
    else {
        problems.extend(layout.err());
        problems.extend(machines.err());
        return Err(problems);
    };
    let [replicas, shards] = degrees(scenario, *layout);
    let reshard = if parallel.reshard { "always" } else { "never" };
    let options: Vec<(&str, String)> = vec![
        ("--module", (*module).into()),
        ("--config", (*config).into()),
        (
            "--training.local_batch_size",
            local_batch(scenario).to_string(),
        ),
        (
            "--training.global_batch_size",
            scenario.effective_batch().to_string(),
        ),
        ("--training.seq_len", scenario.data.sequence.to_string()),
        ("--training.steps", "100".into()),
        ("--training.dtype", weights.into()),
        ("--training.mixed_precision_param", compute.into()),
        ("--training.max_norm", "1.0".into()),
        ("--optimizer.implementation", optimizer.into()),
        ("--parallelism.data_parallel_replicate_degree", replicas),
        ("--parallelism.data_parallel_shard_degree", shards),
        ("--parallelism.fsdp_reshard_after_forward", reshard.into()),
        (
            "--parallelism.tensor_parallel_degree",
            parallel.tp.to_string(),
        ),
        (
            "--parallelism.pipeline_parallel_degree",
            parallel.pp.to_string(),
        ),
        (
            "--parallelism.context_parallel_degree",
            parallel.cp.to_string(),
        ),
        (
            "--parallelism.expert_parallel_degree",
            parallel.ep.to_string(),
        ),
    ];
    let mut words: Vec<String> = vec!["-m".into(), "torchtitan.train".into()];
    words.extend(
        options
            .into_iter()
            .flat_map(|(name, value)| [name.to_string(), value]),
    );
    // Graphs, and the monitoring that is on by default, would hold memory that is not modelled.
    words.extend(
        [
            "--training.disable_cuda_graphs",
            "--profiler.no-enable_profiling",
            "--metrics.no-enable_tensorboard",
        ]
        .map(String::from),
    );
    if training.compile == Compile::Layers {
        // The loss would be compiled too, and then needs a little less.
        words.extend(["--compile.enable", "--compile.components", "model"].map(String::from));
    }
    words.extend(pipeline(scenario));
    if parallel.tp > 1 && !parallel.sequence_parallel {
        words.push("--parallelism.no-enable_sequence_parallel".into());
    }
    if parallel.offload == Offload::Parameters && *layout != Layout::Single {
        words.push("--training.enable_cpu_offload".into());
    }
    words.push(format!("activation-checkpoint:{recompute}"));
    let header = header(&TARGET, scenario, estimate);
    Ok(vec![launch_torchrun(&header, scenario, machines, &words)])
}

/// Over how many GPUs weights are repeated and divided.
fn degrees(scenario: &Scenario, layout: Layout) -> [String; 2] {
    let replicas = scenario.replicas();
    let nodes = u64::from(scenario.hardware.nodes.max(1));
    match layout {
        Layout::Ddp => [replicas.to_string(), "1".into()],
        Layout::Hsdp => [nodes.to_string(), (replicas / nodes).max(1).to_string()],
        _ if processes(scenario) == 1 => ["1".into(), "1".into()],
        _ => ["1".into(), replicas.to_string()],
    }
}

/// What one GPU's step sees before gradients are accumulated: a pipeline cuts it into its micro-batches.
fn local_batch(scenario: &Scenario) -> u64 {
    let micro_batch = scenario.data.micro_batch;
    if scenario.parallel.pp > 1 {
        micro_batch.saturating_mul(scenario.training.accumulation)
    } else {
        micro_batch
    }
}

/// The flags of a pipeline: its schedule, and stages with equally many layers.
fn pipeline(scenario: &Scenario) -> Vec<String> {
    let parallel = &scenario.parallel;
    if parallel.pp < 2 {
        return Vec::new();
    }
    let schedule = match parallel.schedule {
        Schedule::GPipe => "GPipe",
        Schedule::OneForwardOneBackward => "1F1B",
        Schedule::Interleaved => "Interleaved1F1B",
        Schedule::LoopedBfs => "LoopedBFS",
        Schedule::ZeroBubble => "InterleavedZeroBubble",
        Schedule::ZeroBubbleV => "ZBVZeroBubble",
        Schedule::DualPipeV => "DualPipeV",
    };
    let stages = u64::from(parallel.pp) * u64::from(parallel.virtual_stages.max(1));
    let layers = scenario.model.dim("layers").map(|all| all.div_ceil(stages));
    let mut options = vec![
        ("schedule", schedule.to_string()),
        ("microbatch_size", scenario.data.micro_batch.to_string()),
        ("first_stage_less_layers", "0".into()),
        ("last_stage_less_layers", "0".into()),
    ];
    options.extend(layers.map(|each| ("layers_per_stage", each.to_string())));
    let words = options
        .into_iter()
        .map(|(name, value)| [format!("--parallelism.pipeline_parallel_{name}"), value]);
    words.flatten().collect()
}
