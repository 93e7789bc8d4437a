//! DeepSpeed: its JSON in resolved numbers, with the script of the `Trainer`, started by Accelerate.

use super::common::file;
use super::header::header;
use super::refuse::Layout;
use super::trainer::Layouts;
use super::{File, Files, Target, accelerate, hf, layout};
use headroom_base::document::Document;
use headroom_base::document::{json, yaml};
use headroom_core::estimate::Estimate;
use headroom_scenario::{Offload, Parallelism, Precision, Problem, Scenario};

pub(super) const TARGET: Target = Target {
    id: "deepspeed",
    title: "DeepSpeed",
    versions: "deepspeed 0.16 to 0.19, accelerate 1.10 to 1.15, transformers 4.57 to 5.23",
    differs: "with 16-bit formats DeepSpeed keeps 16-bit weights in addition to fp32 copies instead of casting them",
    write,
};

/// The name of DeepSpeed's configuration file.
pub(super) const FILE: &str = "deepspeed.json";

/// DeepSpeed with and without ZeRO. DDP is not among them: stage 0 is no DDP, but fp32 copies and gradients of its own.
const OWN_LAYOUTS: Layouts = Layouts {
    strategies: &[
        Parallelism::Zero0,
        Parallelism::Zero1,
        Parallelism::Zero2,
        Parallelism::Zero3,
    ],
    ..LAYOUTS
};

/// DDP and ZeRO's stages with the settings that its file exposes, for tools that read that file.
pub(super) const LAYOUTS: Layouts = Layouts {
    strategies: &[
        Parallelism::Ddp,
        Parallelism::Zero0,
        Parallelism::Zero1,
        Parallelism::Zero2,
        Parallelism::Zero3,
    ],
    details: &[DETAILS, &["parallel.reshard_to"]],
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let header = header(&TARGET, scenario, estimate);
    let (mut files, layout) = hf::trainer(scenario, &header, &OWN_LAYOUTS)?;
    let known = [Precision::Fp32, Precision::AmpBf16, Precision::AmpFp16];
    let precision = scenario.training.precision;
    if !known.contains(&precision) {
        let expected = "fp32, amp-bf16 or amp-fp16 for this target";
        let problem = Problem::new("training.precision", precision.id(), expected);
        return Err(vec![problem]);
    }
    let stage = stage(layout);
    // DeepSpeed computes the product: it reads this before it knows the number of processes.
    let batch = [
        scenario.data.micro_batch.into(),
        scenario.training.accumulation.into(),
    ];
    let config = config(scenario, stage, batch);
    let from_file = Document::new()
        .with("deepspeed_config_file", FILE)
        .with("zero3_init_flag", stage == 3);
    let launcher = accelerate::opening(scenario, "DEEPSPEED").with("deepspeed_config", from_file);
    files.push(file(FILE, json::write(&config)));
    files.push(file(
        "accelerate.yaml",
        format!("{header}{}", yaml::write(&launcher)),
    ));
    files.push(accelerate::start(&header, scenario));
    Ok(files)
}

/// `deepspeed.json` for another tool, which fills in the batch; `None` without ZeRO.
pub(super) fn config_file(scenario: &Scenario, layout: Layout) -> Option<File> {
    let Layout::Zero(stage) = layout else {
        return None;
    };
    let auto = || Document::from("auto");
    let config = config(scenario, stage, [auto(), auto()]);
    Some(file(FILE, json::write(&config)))
}

fn stage(layout: Layout) -> u8 {
    match layout {
        Layout::Zero(stage) => stage,
        _ => 0,
    }
}

/// The configuration; the batch is the micro-batch and how often it is accumulated.
fn config(scenario: &Scenario, stage: u8, batch: [Document; 2]) -> Document {
    let [micro, accumulation] = batch;
    let clip = if scenario.training.clip { 1.0 } else { 0.0 };
    let precision = scenario.training.precision;
    let bf16 = matches!(
        precision,
        Precision::AmpBf16 | Precision::AmpBf16OnBf16 | Precision::Bf16
    );
    let fp16 = matches!(
        precision,
        Precision::AmpFp16 | Precision::Fp16 | Precision::AmpFp16OnFp16
    );
    let enabled = |on: bool| Document::new().with("enabled", on);
    Document::new()
        .with("train_micro_batch_size_per_gpu", micro)
        .with("gradient_accumulation_steps", accumulation)
        .with("gradient_clipping", clip)
        .with("bf16", master(enabled(bf16), scenario))
        .with("fp16", enabled(fp16))
        .with("zero_optimization", zero(scenario, stage))
        .with("zero_allow_untested_optimizer", true)
        .with("zero_force_ds_cpu_optimizer", false)
        .with("steps_per_print", 10_u64)
}

/// In which type the optimizer steps.
fn master(bf16: Document, scenario: &Scenario) -> Document {
    if !scenario.parallel.zero_bf16_master {
        return bf16;
    }
    bf16.with("bf16_master_weights_and_grads", true)
        .with("bf16_optimizer_states", true)
}

/// Settings that its own section exposes.
pub(super) const DETAILS: &[&str] = &[
    "parallel.zero_bucket",
    "parallel.zero_overlap",
    "parallel.zero_contiguous",
    "parallel.zero_bf16_master",
    "parallel.zero_prefetch",
    "parallel.zero_persistence",
    "parallel.zero_live",
    "parallel.zero_reuse",
    "parallel.zero_subgroup",
];

/// ZeRO's own section: sizes are written out as they were computed with, because they are buffers on the card.
fn zero(scenario: &Scenario, stage: u8) -> Document {
    let parallel = &scenario.parallel;
    let sizes = layout::zero_sizes(scenario);
    let mut zero = Document::new().with("stage", u64::from(stage));
    if stage > 0 {
        zero = zero
            .with("contiguous_gradients", parallel.zero_contiguous)
            .with("overlap_comm", layout::zero_overlaps(scenario, stage))
            .with("reduce_bucket_size", sizes.bucket)
            .with("allgather_bucket_size", 500_000_000_u64);
    }
    if stage == 3 {
        zero = zero
            .with("stage3_prefetch_bucket_size", sizes.prefetch)
            .with("stage3_param_persistence_threshold", sizes.persistence)
            .with("stage3_max_live_parameters", sizes.live)
            .with("stage3_max_reuse_distance", sizes.reuse)
            .with("sub_group_size", sizes.subgroup)
            .with("stage3_gather_16bit_weights_on_model_save", true);
        if parallel.reshard_to > 1 {
            zero = zero.with("zero_hpz_partition_size", u64::from(parallel.reshard_to));
        }
    }
    let host = || {
        Document::new()
            .with("device", "cpu")
            .with("pin_memory", true)
    };
    match scenario.parallel.offload {
        Offload::Optimizer if stage > 0 => zero.with("offload_optimizer", host()),
        Offload::Parameters if stage == 3 => zero
            .with("offload_optimizer", host())
            .with("offload_param", host()),
        _ => zero,
    }
}
