//! Lightning's command line: its YAML or JSON.

use super::Imported;
use super::take::KeyReader;
use headroom_base::document::Document;
use headroom_scenario::Scenario;

/// Whether the document is such a file.
pub fn recognises(document: &Document) -> bool {
    let trainer = document.get("trainer");
    let marks = [
        "devices",
        "accelerator",
        "precision",
        "max_steps",
        "max_epochs",
    ];
    trainer.is_some_and(|trainer| marks.iter().any(|key| trainer.get(key).is_some()))
}

/// The run with the trainer's settings; arguments of the module and of the data module are the user's own.
pub fn read(document: &Document, run: &Scenario) -> Imported {
    let mut reader = KeyReader::new(document);
    reader.part_of(run);
    if let Some(Document::List(devices)) = reader.value("trainer.devices") {
        reader.set("hardware.gpus", &devices.len().to_string());
    } else {
        reader.copy("trainer.devices", "hardware.gpus");
    }
    reader.copy("trainer.num_nodes", "hardware.nodes");
    let scenario = &reader.imported.scenario;
    // Devices are counted for each machine.
    let all = scenario
        .hardware
        .gpus
        .saturating_mul(scenario.hardware.nodes.max(1));
    if all != scenario.hardware.gpus {
        reader.set("hardware.gpus", &all.to_string());
    }
    reader.copy("trainer.accumulate_grad_batches", "training.accumulation");
    reader.clip("trainer.gradient_clip_val");
    if let Some(value) = reader.value("trainer.precision") {
        match precision(value) {
            Some(precision) => reader.set("training.precision", precision),
            None => reader.mark_unused("trainer.precision"),
        }
    }
    strategy(&mut reader);
    reader.optimizer("optimizer.class_path", "optimizer.init_args.");
    for name in ["batch_size", "micro_batch_size"] {
        reader.copy(&format!("data.{name}"), "data.micro_batch");
        reader.copy(&format!("data.init_args.{name}"), "data.micro_batch");
    }
    for name in ["max_seq_len", "max_length", "sequence_length"] {
        reader.copy(&format!("data.{name}"), "data.sequence");
        reader.copy(&format!("data.init_args.{name}"), "data.sequence");
    }
    for name in ["num_workers", "init_args.num_workers"] {
        reader.copy(&format!("data.{name}"), "runtime.workers");
    }
    reader.finish(&[
        "seed_everything",
        "ckpt_path",
        "optimizer.init_args.lr",
        "optimizer.init_args.weight_decay",
        "optimizer.init_args.betas",
        "lr_scheduler",
        "trainer.accelerator",
        "trainer.max_steps",
        "trainer.max_epochs",
        "trainer.min_epochs",
        "trainer.log_every_n_steps",
        "trainer.logger",
        "trainer.enable_checkpointing",
        "trainer.enable_progress_bar",
        "trainer.enable_model_summary",
        "trainer.default_root_dir",
        "trainer.num_sanity_val_steps",
        "trainer.deterministic",
        "trainer.strategy.init_args.process_group_backend",
        "trainer.strategy.init_args.find_unused_parameters",
    ])
}

/// A precision by its name in Lightning and Fabric.
pub(super) fn precision(value: &Document) -> Option<&'static str> {
    let name = match value {
        Document::Int(value) => value.to_string(),
        Document::Text(value) => value.clone(),
        _ => return None,
    };
    Some(match name.as_str() {
        "32" | "32-true" => "fp32",
        "64" | "64-true" => "fp64",
        "bf16" | "bf16-mixed" => "amp-bf16",
        "16" | "16-mixed" => "amp-fp16",
        "bf16-true" => "bf16",
        "16-true" => "fp16",
        _ => return None,
    })
}

/// A name, or a class with its arguments.
fn strategy(reader: &mut KeyReader) {
    let named = "trainer.strategy";
    let class = "trainer.strategy.class_path";
    let found = reader.text(named).or_else(|| reader.text(class));
    let Some(found) = found else { return };
    let name = found.rsplit('.').next().unwrap_or(found);
    let (strategy, offload) = match name {
        "auto" | "single_device" | "SingleDeviceStrategy" => return,
        "FSDPStrategy" | "fsdp" => ("fsdp1", "none"),
        "fsdp_cpu_offload" => ("fsdp1", "parameters"),
        "ModelParallelStrategy" => ("fsdp2", "none"),
        "deepspeed_stage_1" => ("zero1", "none"),
        "deepspeed_stage_2_offload" => ("zero2", "optimizer"),
        "deepspeed_stage_3" => ("zero3", "none"),
        "deepspeed_stage_3_offload" => ("zero3", "parameters"),
        "deepspeed_stage_2" | "DeepSpeedStrategy" | "deepspeed" => ("zero2", "none"),
        value if value == "DDPStrategy" || value.starts_with("ddp") => ("ddp", "none"),
        _ => {
            reader.mark_unused(named);
            return reader.mark_unused(class);
        }
    };
    reader.set("parallel.strategy", strategy);
    reader.set("parallel.offload", offload);
    let init = |name: &str| format!("trainer.strategy.init_args.{name}");
    super::deepspeed::zero(reader, &init("stage"));
    if reader.switch(&init("offload_parameters")) == Some(true)
        || reader.switch(&init("cpu_offload")) == Some(true)
    {
        reader.set("parallel.offload", "parameters");
    }
    let states = reader.switch(&init("offload_optimizer")) == Some(true);
    if states && reader.imported.scenario.parallel.offload == headroom_scenario::Offload::None {
        reader.set("parallel.offload", "optimizer");
    }
    if let Some(sharding) = reader.text(&init("sharding_strategy")) {
        match sharding {
            "FULL_SHARD" => reader.set("parallel.reshard", "on"),
            "SHARD_GRAD_OP" => reader.set("parallel.reshard", "off"),
            "HYBRID_SHARD" => reader.set("parallel.strategy", "hsdp"),
            _ => reader.mark_unused(&init("sharding_strategy")),
        }
    }
    reader.copy(&init("bucket_cap_mb"), "parallel.bucket_mb");
    reader.copy(&init("gradient_as_bucket_view"), "parallel.bucket_view");
    reader.copy(&init("tensor_parallel_size"), "parallel.tp");
}
