//! Accelerate: its launch file, with the script of the Hugging Face `Trainer`.

use super::common::{file, launch_on_each, processes};
use super::header::header;
use super::refuse::Layout;
use super::trainer::{self, Layouts};
use super::{File, Files, Target, hf, layout};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_core::estimate::Estimate;
use headroom_scenario::{Checkpointing, Offload, Parallelism, Precision, Scenario};

pub(super) const TARGET: Target = Target {
    id: "accelerate",
    title: "Accelerate",
    versions: "accelerate 1.10 to 1.15, transformers 4.57 to 5.23, peft where adapters are used",
    differs: "",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let header = header(&TARGET, scenario, estimate);
    let (mut files, layout) = hf::trainer(scenario, &header, &OWN)?;
    let config = config(scenario, layout);
    files.push(file("accelerate.yaml", format!("{header}{config}")));
    files.push(start(&header, scenario));
    Ok(files)
}

/// The layouts that a launch file can ask for.
pub(super) const LAYOUTS: Layouts = Layouts {
    strategies: &[
        Parallelism::Ddp,
        Parallelism::Fsdp2,
        Parallelism::Hsdp,
        Parallelism::Zero1,
        Parallelism::Zero2,
        Parallelism::Zero3,
    ],
    details: &[DETAILS, trainer::COMPILE],
};

const DETAILS: &[&str] = &["parallel.reshard", "parallel.sync_each"];

/// The same with the `Trainer`'s script, which has context parallelism too.
const OWN: Layouts = Layouts {
    strategies: LAYOUTS.strategies,
    details: &[DETAILS, trainer::COMPILE, &["parallel.cp"]],
};

/// `launch.sh` that starts the script of the `Trainer` with a launch file.
pub(super) fn start(header: &str, scenario: &Scenario) -> File {
    let launcher = ["accelerate", "launch", "--config_file", "accelerate.yaml"];
    launch_on_each(
        header,
        scenario,
        &launcher,
        PLACE,
        &["train.py", "train.yaml"],
    )
}

/// The machine's rank and the first machine's address, as the launcher's options.
pub(super) const PLACE: &str = "--machine_rank \"${NODE_RANK:?}\" --main_process_ip \"${MASTER_ADDR:?}\" \\\n  \
                                --main_process_port \"${MASTER_PORT:-29500}\"";

/// The launcher's file, which TRL reads too.
pub(super) fn config(scenario: &Scenario, layout: Layout) -> String {
    let opening = |kind| opening(scenario, kind).with("mixed_precision", mixed(scenario));
    let document = match layout {
        Layout::Ddp => opening("MULTI_GPU"),
        Layout::Fsdp2 if scenario.parallel.cp <= 1 => {
            opening("FSDP").with("fsdp_config", fsdp(scenario))
        }
        Layout::Fsdp2 | Layout::Hsdp => opening("FSDP")
            .with("fsdp_config", fsdp(scenario))
            .with("parallelism_config", groups(scenario)),
        Layout::Zero(stage) => opening("DEEPSPEED").with("deepspeed_config", zero(scenario, stage)),
        _ => opening("NO"),
    };
    yaml::write(&document)
}

/// The first keys of every launch file.
pub(super) fn opening(scenario: &Scenario, kind: &str) -> Document {
    Document::new()
        .with("compute_environment", "LOCAL_MACHINE")
        .with("distributed_type", kind)
        .with("num_machines", scenario.hardware.nodes.max(1))
        .with("num_processes", processes(scenario))
        .with("machine_rank", 0_u64)
        .with("main_training_function", "main")
        .with("use_cpu", false)
}

fn mixed(scenario: &Scenario) -> &'static str {
    match scenario.training.precision {
        Precision::AmpBf16 | Precision::AmpBf16OnBf16 => "bf16",
        Precision::AmpFp16 | Precision::AmpFp16OnFp16 => "fp16",
        Precision::Fp32 | Precision::Fp64 | Precision::Bf16 | Precision::Fp16 => "no",
    }
}

/// FSDP's keys; without the first it would be version 1.
fn fsdp(scenario: &Scenario) -> Document {
    let checkpointing = scenario.training.checkpointing != Checkpointing::None;
    Document::new()
        .with("fsdp_version", 2_u64)
        .with_note(
            "fsdp_reshard_after_forward",
            scenario.parallel.reshard,
            "true: as ZeRO-3, false: as ZeRO-2",
        )
        .with("fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP")
        .with("fsdp_cpu_ram_efficient_loading", true)
        .with(
            "fsdp_offload_params",
            scenario.parallel.offload != Offload::None,
        )
        .with_note(
            "fsdp_activation_checkpointing",
            checkpointing,
            "instead of the trainer's own",
        )
        .with("fsdp_state_dict_type", "SHARDED_STATE_DICT")
}

/// The groups of a mesh in which copies of all shards lie side by side, or GPUs share sequences. Weights are sharded over these too;
/// keys and values of all are gathered at once, as `context_parallel` of PyTorch does by itself.
fn groups(scenario: &Scenario) -> Document {
    let replicas = layout::replicas(scenario);
    let context = scenario.parallel.cp.max(1);
    let shards = processes(scenario) / replicas.max(1) / context;
    let document = Document::new()
        .with("parallelism_config_dp_replicate_size", replicas)
        .with("parallelism_config_dp_shard_size", shards.max(1));
    if context == 1 {
        return document;
    }
    document
        .with("parallelism_config_cp_size", context)
        .with("parallelism_config_cp_comm_strategy", "allgather")
}

fn zero(scenario: &Scenario, stage: u8) -> Document {
    let offload = scenario.parallel.offload;
    let place = |host| if host { "cpu" } else { "none" };
    let document = Document::new()
        .with("zero_stage", u64::from(stage))
        .with_note(
            "gradient_accumulation_steps",
            scenario.training.accumulation,
            "the same as in the trainer's file",
        )
        .with("offload_optimizer_device", place(offload != Offload::None))
        .with(
            "offload_param_device",
            place(offload == Offload::Parameters),
        )
        .with("zero3_init_flag", stage == 3)
        .with("zero3_save_16bit_model", stage == 3);
    if scenario.training.clip {
        document.with("gradient_clipping", 1.0)
    } else {
        document
    }
}
