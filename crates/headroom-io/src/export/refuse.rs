//! Reports the fields that a target cannot express, so that no file is silently wrong.

use super::common::processes;
use headroom_catalog as catalog;
use headroom_scenario::network;
use headroom_scenario::{
    AdapterMethod, Case, Checkpointing, CommHook, Compile, Lora, Offload, Parallelism, Precision,
    Problem, Quantization, Scenario, settings,
};

/// Settings that few targets support.
pub(super) const RARE: &[&str] = &[
    "task.sampling_offload",
    "task.scored_rows",
    "training.fp8",
    "training.qat",
    "training.low_precision",
    "training.memory_budget",
    "parallel.tp",
    "parallel.pp",
    "parallel.cp",
    "parallel.ep",
    "runtime.memory_fraction",
    "runtime.eval_batch",
];

/// `torch.compile`, for targets that do not pass it on.
pub(super) const COMPILE: &[&str] = &["training.compile", "training.compile_mode"];

/// A problem if it is not each layer that is compiled, in the default mode.
pub(super) fn compiled_layers(scenario: &Scenario) -> Vec<Problem> {
    let compile = scenario.training.compile;
    let expected = "nothing, or layers: this target compiles each of them";
    let known = matches!(compile, Compile::Nothing | Compile::Layers);
    let mut problems = fixed_fields(scenario, &["training.compile_mode"]);
    problems.extend((!known).then(|| Problem::new("training.compile", compile.id(), expected)));
    problems
}

/// The targets that support the most wanted of these.
const SUPPORTED: &[(&str, &[&str])] = &[
    ("parallel.tp", &["torchtitan", "megatron"]),
    ("parallel.pp", &["torchtitan", "megatron"]),
    ("parallel.cp", &["accelerate", "torchtitan", "megatron"]),
];

/// Settings that pre-training frameworks do not support.
pub(super) const BEYOND_PRETRAINING: &[&str] = &[
    "training.freeze",
    "training.train_only",
    "training.lora",
    "training.quantization",
    "training.ema",
    "training.ema_on_host",
    "training.checkpoint_every",
    "training.kernels",
    "training.memory_budget",
    "training.optimizer_in_backward",
    "training.zero_to_none",
    "training.keep_outputs",
    "training.use_cache",
    "training.fp8",
    "training.qat",
    "training.low_precision",
    "data.padding_mask",
    "runtime.memory_fraction",
    "runtime.eval_batch",
];

/// Settings of DDP's buckets, for frameworks with their own data parallelism.
pub(super) const BUCKETS: &[&str] = &["parallel.bucket_view", "parallel.bucket_mb"];

/// How the GPUs share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// One process.
    Single,
    /// One process that copies the model to all GPUs.
    DataParallel,
    Ddp,
    Fsdp1,
    Fsdp2,
    Hsdp,
    /// DeepSpeed's ZeRO and its stage.
    Zero(u8),
}

impl Layout {
    /// Whether `fully_shard` shards the weights, in one group or in replicated groups.
    pub fn is_fsdp2(self) -> bool {
        matches!(self, Self::Fsdp2 | Self::Hsdp)
    }
}

/// The scenario's layout, if the target knows it.
pub(super) fn layout(scenario: &Scenario, known: &[Parallelism]) -> Result<Layout, Problem> {
    let strategy = scenario.parallel.strategy;
    let offload = scenario.parallel.offload;
    let layout = match strategy {
        Parallelism::DataParallel if scenario.hardware.gpus > 1 => Layout::DataParallel,
        _ if processes(scenario) == 1 => return Ok(Layout::Single),
        Parallelism::None | Parallelism::DataParallel => Layout::Single,
        Parallelism::Ddp => Layout::Ddp,
        Parallelism::Fsdp1 => Layout::Fsdp1,
        Parallelism::Fsdp2 => Layout::Fsdp2,
        Parallelism::Hsdp => Layout::Hsdp,
        Parallelism::Zero0 => Layout::Zero(0),
        Parallelism::Zero1 => Layout::Zero(1),
        Parallelism::Zero2 => Layout::Zero(2),
        Parallelism::Zero3 => Layout::Zero(3),
    };
    if !known.contains(&strategy) {
        let ids: Vec<&str> = known.iter().map(|strategy| strategy.id()).collect();
        let expected = format!("{} for this target", ids.join(" or "));
        return Err(Problem::new("parallel.strategy", strategy.id(), expected));
    }
    let keeps = match layout {
        Layout::Single | Layout::DataParallel | Layout::Ddp => Offload::None,
        Layout::Zero(1 | 2) => Offload::Optimizer,
        _ => Offload::Parameters,
    };
    // FSDP moves weights and states together.
    let divided = matches!(layout, Layout::Fsdp1 | Layout::Fsdp2 | Layout::Hsdp);
    let known = offload == Offload::None
        || offload == keeps
        || (offload == Offload::Optimizer && layout == Layout::Zero(3));
    if !known {
        let expected = match keeps {
            Offload::None => "nothing (none) with this strategy",
            Offload::Optimizer => "none or optimizer with this strategy",
            Offload::Parameters if divided => "none or parameters with this strategy",
            Offload::Parameters => "none, optimizer or parameters",
        };
        return Err(Problem::new("parallel.offload", offload.id(), expected));
    }
    Ok(layout)
}

/// A field, and whether it has an effect on a run.
type Detail = (&'static str, fn(&Scenario) -> bool);

/// Settings of how a strategy works.
const DETAILS: &[Detail] = &[
    ("parallel.partition_optimizer", is_ddp),
    ("parallel.comm_hook", is_ddp),
    ("parallel.powersgd_rank", |run| {
        is_ddp(run) && run.parallel.comm_hook == CommHook::PowerSgd
    }),
    ("parallel.reshard", shards),
    ("parallel.reshard_to", |run| shards(run) || is_zero_3(run)),
    ("parallel.reshard_root", shards),
    ("parallel.wrap", shards),
    ("parallel.param_dtype", shards),
    ("parallel.reduce_dtype", shards),
    ("parallel.prefetch_forward", shards),
    ("parallel.prefetch_backward", shards),
    ("parallel.shard_quantized", |run| {
        shards(run) && run.training.quantization != Quantization::None
    }),
    ("parallel.sync_each", |run| run.training.accumulation > 1),
    ("parallel.sequence_parallel", |run| run.parallel.tp > 1),
    ("parallel.loss_parallel", |run| run.parallel.tp > 1),
    ("parallel.context", |run| run.parallel.cp > 1),
    ("parallel.schedule", |run| run.parallel.pp > 1),
    ("parallel.virtual_stages", |run| run.parallel.pp > 1),
    ("parallel.zero_bucket", is_zero),
    ("parallel.zero_overlap", is_zero),
    ("parallel.zero_contiguous", is_zero),
    ("parallel.zero_bf16_master", is_zero),
    ("parallel.zero_prefetch", is_zero_3),
    ("parallel.zero_persistence", is_zero_3),
    ("parallel.zero_live", is_zero_3),
    ("parallel.zero_reuse", is_zero_3),
    ("parallel.zero_subgroup", is_zero_3),
];

fn is_ddp(run: &Scenario) -> bool {
    run.parallel.strategy == Parallelism::Ddp
}

fn shards(run: &Scenario) -> bool {
    use Parallelism::{Fsdp1, Fsdp2, Hsdp};
    matches!(run.parallel.strategy, Fsdp1 | Fsdp2 | Hsdp)
}

fn is_zero(run: &Scenario) -> bool {
    use Parallelism::{Zero1, Zero2, Zero3};
    matches!(run.parallel.strategy, Zero1 | Zero2 | Zero3)
}

fn is_zero_3(run: &Scenario) -> bool {
    run.parallel.strategy == Parallelism::Zero3
}

/// A problem for each setting of the strategy that has an effect on this run and is not among those that the target knows.
pub(super) fn details(scenario: &Scenario, known: &[&str]) -> Vec<Problem> {
    if processes(scenario) == 1 {
        return Vec::new();
    }
    let unknown = |(path, counts): &&Detail| !known.contains(path) && counts(scenario);
    let paths: Vec<&str> = DETAILS
        .iter()
        .filter(unknown)
        .map(|(path, _)| *path)
        .collect();
    fixed_fields(scenario, &paths)
}

/// Problems of DDP's buckets, if the target keeps these fields at their defaults.
pub(super) fn buckets(scenario: &Scenario, layout: Layout, paths: &[&str]) -> Vec<Problem> {
    if layout == Layout::Ddp {
        fixed_fields(scenario, paths)
    } else {
        Vec::new()
    }
}

/// A problem for each of these fields that is not at its default, the only value that the target supports.
pub(super) fn fixed(scenario: &Scenario, lists: &[&[&str]]) -> Vec<Problem> {
    let mut problems = fixed_fields(scenario, &lists.concat());
    if let Some(network) = &scenario.model.network {
        let expected = "a model of the catalogue: a declared network has no code to run";
        problems.push(Problem::new(network::FIELD, network.text(), expected));
    }
    problems
}

/// The problems of these fields only.
pub(super) fn fixed_fields(scenario: &Scenario, paths: &[&str]) -> Vec<Problem> {
    let defaults = Scenario::default();
    let differs = |path: &&str| {
        let setting = settings::find(path)?;
        let value = setting.get(scenario);
        let fixed = setting.get(&defaults);
        let differs = setting.applies(scenario) && value != fixed;
        let shown = if fixed.is_empty() { "nothing" } else { &fixed };
        let expected = match SUPPORTED.iter().find(|(known, _)| known == path) {
            Some((_, targets)) => {
                format!("{shown} for this target; {} support it", targets.join(", "))
            }
            None => format!("{shown}, the only value that this target supports"),
        };
        differs.then(|| Problem::new(*path, value, expected))
    };
    paths.iter().filter_map(differs).collect()
}

/// A problem if the task is not the model's own loss or the adapters are not LoRA.
pub(super) fn task(scenario: &Scenario) -> Vec<Problem> {
    fixed_fields(scenario, &["task.objective", "training.lora.method"])
}

/// A problem if the task is not the model's own loss.
pub(super) fn objective(scenario: &Scenario) -> Vec<Problem> {
    fixed_fields(scenario, &["task.objective"])
}

/// A problem if the adapters are neither LoRA nor DoRA, which tools treat as one.
pub(super) fn low_rank(scenario: &Scenario) -> Vec<Problem> {
    let dora = |lora: &Lora| lora.method == AdapterMethod::Dora;
    if scenario.training.lora.as_ref().is_some_and(dora) {
        return Vec::new();
    }
    adapters(scenario)
}

/// A problem if the adapters are not LoRA.
pub(super) fn adapters(scenario: &Scenario) -> Vec<Problem> {
    fixed_fields(scenario, &["training.lora.method"])
}

/// A problem if the model is not a causal language model.
pub(super) fn causal(scenario: &Scenario) -> Option<Problem> {
    let model = Case::of(scenario).model?;
    let expected = "a language model that continues text, for this target";
    let other = model.category != catalog::ModelCategory::Decoders;
    other.then(|| Problem::new("model.id", model.id, expected))
}

/// The row of the scenario's model, or a problem with the models that the target has.
pub(super) fn model_among<T>(
    scenario: &Scenario,
    rows: &'static [T],
    id: impl Fn(&T) -> &'static str,
) -> Result<&'static T, Problem> {
    let model = Case::of(scenario).model;
    let given = model.map_or(scenario.model.id.as_str(), |model| model.id);
    rows.iter().find(|row| id(row) == given).ok_or_else(|| {
        let ids: Vec<&str> = rows.iter().map(id).collect();
        let expected = format!("one of {} for this target", ids.join(", "));
        Problem::new("model.id", given, expected)
    })
}

/// A problem if the precision is not one of these.
pub(super) fn precision_among(scenario: &Scenario, known: &[Precision]) -> Option<Problem> {
    let precision = scenario.training.precision;
    if known.contains(&precision) {
        return None;
    }
    let ids: Vec<&str> = known.iter().map(|strategy| strategy.id()).collect();
    let expected = format!("{} for this target", ids.join(" or "));
    Some(Problem::new("training.precision", precision.id(), expected))
}

/// A problem if checkpointing is neither off nor on for every layer.
pub(super) fn plain_checkpointing(scenario: &Scenario) -> Option<Problem> {
    let checkpointing = scenario.training.checkpointing;
    let known = matches!(checkpointing, Checkpointing::None | Checkpointing::Layers);
    let expected = "none or layers for this target";
    (!known).then(|| Problem::new("training.checkpointing", checkpointing.id(), expected))
}

/// A problem if frozen weights are quantised but nothing else is trained.
pub(super) fn quantized(scenario: &Scenario) -> Option<Problem> {
    let training = &scenario.training;
    if matches!(
        training.quantization,
        Quantization::Int8
            | Quantization::Nf4Ao
            | Quantization::Hqq
            | Quantization::Gptq
            | Quantization::Awq
            | Quantization::Aqlm
            | Quantization::Fp8
    ) {
        let expected = "none, nf4 or nf4-double for this target";
        let problem = Problem::new(
            "training.quantization",
            training.quantization.id(),
            expected,
        );
        return Some(problem);
    }
    let wrong = training.quantization != Quantization::None && training.lora.is_none();
    let expected = "none without adapters: weights in four bits cannot be trained";
    wrong.then(|| {
        Problem::new(
            "training.quantization",
            training.quantization.id(),
            expected,
        )
    })
}

/// A problem if the GPU is not NVIDIA's: the target's packages run on no other.
pub(super) fn nvidia(scenario: &Scenario) -> Option<Problem> {
    let gpu = Case::of(scenario).gpu?;
    let expected = "an NVIDIA GPU for this target, which installs PyTorch for CUDA";
    let other = gpu.vendor != catalog::Vendor::Nvidia;
    other.then(|| Problem::new("hardware.gpu", gpu.short_id(), expected))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export;
    use headroom_core::estimate::estimate;

    #[test]
    fn what_is_rare_is_carried_by_those_that_are_named() {
        for (path, targets) in SUPPORTED {
            let mut scenario = Scenario::default();
            for (name, value) in [
                ("hardware.gpus", "4"),
                ("parallel.strategy", "fsdp2"),
                (path, "2"),
            ] {
                settings::set(&mut scenario, name, value).unwrap();
            }
            let all = export::all(&scenario, &estimate(&scenario).unwrap());
            let refuses = |files: &export::Files| {
                let problems = files.as_ref().err();
                problems.is_some_and(|all| all.iter().any(|problem| problem.field() == *path))
            };
            for (target, files) in all {
                let named = targets.contains(&target.id);
                let right = if named {
                    !refuses(&files)
                } else {
                    files.is_err()
                };
                assert!(right, "{path} {}", target.id);
            }
        }
    }
}
