//! Lightning's command line: its YAML, a short module, and the plain script's model and data.

use std::num::NonZero;

use super::common::{file, launch, processes};
use super::header::header;
use super::refuse::{self, Layout};
use super::{Files, Target, layout as sharing, plain};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_core::estimate::Estimate;
use headroom_scenario::{
    Checkpointing, Offload, Optimizer, Parallelism, Precision, Problem, Scenario,
};

pub(super) const TARGET: Target = Target {
    id: "lightning",
    title: "Lightning CLI",
    versions: "lightning 2.5 to 2.6, jsonargparse 4.40 to 4.53, transformers 4.57 to 5.23",
    differs: "",
    write,
};

/// Settings that Lightning's loop does not expose.
const FIXED: &[&str] = &[
    "training.ema",
    "training.ema_on_host",
    "training.keep_outputs",
    "training.zero_to_none",
    "training.optimizer_in_backward",
    "runtime.memory_fraction",
    "runtime.eval_batch",
    "hardware.nodes",
];

/// The strategy's settings that it exposes.
const DETAILS: &[&str] = &[
    "parallel.reshard",
    "parallel.zero_bucket",
    "parallel.zero_overlap",
    "parallel.zero_contiguous",
    "parallel.zero_subgroup",
];

const LAYOUTS: &[Parallelism] = &[
    Parallelism::Ddp,
    Parallelism::Fsdp1,
    Parallelism::Zero1,
    Parallelism::Zero2,
    Parallelism::Zero3,
];

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let header = header(&TARGET, scenario, estimate);
    let mut problems = refuse::fixed(scenario, &[FIXED]);
    problems.extend(refuse::task(scenario));
    problems.extend(refuse::details(scenario, DETAILS));
    let layout = refuse::layout(scenario, LAYOUTS);
    if !matches!(layout, Ok(Layout::Single | Layout::Ddp)) {
        // The head's weight is a shard outside of the model's own forward.
        let whole = ["training.loss", "training.kernels"];
        problems.extend(refuse::fixed(scenario, &[&whole]));
    }
    let on_host = [
        (
            "training.checkpointing",
            scenario.training.checkpointing.id(),
            scenario.training.checkpointing == Checkpointing::Offload,
        ),
        (
            "training.optimizer",
            scenario.training.optimizer.id(),
            scenario.training.optimizer == Optimizer::AdamWOffload,
        ),
    ];
    for (path, value, asked) in on_host {
        if asked {
            let expected = "what stays on the GPU: Lightning's own loop is run";
            problems.push(Problem::new(path, value, expected));
        }
    }
    let (training, fused) = (&scenario.training, Optimizer::AdamWFused);
    if training.clip && training.optimizer == fused {
        let expected =
            "another optimizer where gradients are clipped: Lightning refuses both together";
        problems.push(Problem::new("training.optimizer", fused.id(), expected));
    }
    let keep = scenario.runtime.save_keep.map_or(0, NonZero::get);
    if scenario.runtime.save_every.is_some() && keep > 1 {
        let expected = "0 (all) or 1 for this target: Lightning keeps more by a metric only";
        problems.push(Problem::new(
            "runtime.save_keep",
            keep.to_string(),
            expected,
        ));
    }
    // The script's own loop is not run: its layout does not matter.
    let mut one = scenario.clone();
    one.parallel.strategy = Parallelism::Ddp;
    one.parallel.offload = Offload::None;
    let job = plain::job(&one, estimate, &header);
    let (layout, mut files) = match (layout, job) {
        (Ok(layout), Ok(files)) if problems.is_empty() => (layout, files),
        (layout, job) => {
            problems.extend(layout.err());
            problems.extend(job.err().unwrap_or_default());
            return Err(problems);
        }
    };
    let config = Document::new()
        .with("seed_everything", 42_u64)
        .with("trainer", trainer(scenario, layout))
        .with("model", Document::new().with("config", "train.yaml"))
        .with("data", Document::new().with("config", "train.yaml"));
    files.push(file(
        "lightning.yaml",
        format!("{header}{}", yaml::write(&config)),
    ));
    files.push(file("cli.py", include_str!("cli.py").into()));
    let words = ["python", "cli.py", "fit", "--config", "lightning.yaml"];
    files.push(launch(&header, scenario, &words));
    Ok(files)
}

fn trainer(scenario: &Scenario, layout: Layout) -> Document {
    let training = &scenario.training;
    let precision = match training.precision {
        Precision::Fp32 => "32-true",
        Precision::Fp64 => "64-true",
        Precision::AmpBf16 | Precision::AmpBf16OnBf16 => "bf16-mixed",
        Precision::AmpFp16 | Precision::AmpFp16OnFp16 => "16-mixed",
        Precision::Bf16 => "bf16-true",
        Precision::Fp16 => "16-true",
    };
    let document = Document::new()
        .with("accelerator", "gpu")
        .with("devices", processes(scenario))
        .with("num_nodes", 1_u64)
        .with("precision", precision)
        .with("strategy", strategy(scenario, layout))
        .with("accumulate_grad_batches", training.accumulation)
        .with("gradient_clip_val", training.clip.then_some(1.0))
        .with("max_steps", 100_u64)
        .with("log_every_n_steps", 10_u64)
        .with("logger", false);
    let keep = scenario.runtime.save_keep.map_or(0, NonZero::get);
    let Some(every) = scenario.runtime.save_every else {
        return document.with("enable_checkpointing", false);
    };
    // It keeps all or the last: a number means the best by a metric, which is not logged.
    let all = Document::Int(-1);
    let kept = Document::new()
        .with("every_n_train_steps", every.get())
        .with("save_top_k", if keep == 1 { 1_u64.into() } else { all });
    let saving = Document::new()
        .with("class_path", "lightning.pytorch.callbacks.ModelCheckpoint")
        .with("init_args", kept);
    document.with("callbacks", Document::List(vec![saving]))
}

fn strategy(scenario: &Scenario, layout: Layout) -> Document {
    let class = |name: &str, init: Document| {
        Document::new()
            .with("class_path", format!("lightning.pytorch.strategies.{name}"))
            .with("init_args", init)
    };
    let offload = scenario.parallel.offload;
    match layout {
        Layout::Ddp => {
            let init = Document::new()
                .with("find_unused_parameters", false)
                .with("bucket_cap_mb", scenario.parallel.bucket_mb)
                .with("gradient_as_bucket_view", scenario.parallel.bucket_view);
            class("DDPStrategy", init)
        }
        Layout::Fsdp1 => {
            let sharding = if scenario.parallel.reshard {
                "FULL_SHARD"
            } else {
                "SHARD_GRAD_OP"
            };
            let init = Document::new()
                .with("sharding_strategy", sharding)
                .with("cpu_offload", offload != Offload::None);
            class("FSDPStrategy", init)
        }
        Layout::Zero(stage) => {
            let sizes = sharing::zero_sizes(scenario);
            let init = Document::new()
                .with("stage", u64::from(stage))
                .with("offload_optimizer", offload != Offload::None)
                .with("offload_parameters", offload == Offload::Parameters)
                .with("reduce_bucket_size", sizes.bucket)
                .with("sub_group_size", sizes.subgroup)
                .with("overlap_comm", sharing::zero_overlaps(scenario, stage))
                .with("contiguous_gradients", scenario.parallel.zero_contiguous);
            class("DeepSpeedStrategy", init)
        }
        _ => "auto".into(),
    }
}
