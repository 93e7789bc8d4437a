//! Lightning's command line: its YAML or JSON.

use super::Imported;
use super::take::Take;
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

/// The run with what the trainer says; what a module or a data module takes is its own.
pub fn read(document: &Document, run: &Scenario) -> Imported {
    let mut take = Take::new(document);
    take.part_of(run);
    if let Some(Document::List(devices)) = take.value("trainer.devices") {
        take.set("hardware.gpus", &devices.len().to_string());
    } else {
        take.copy("trainer.devices", "hardware.gpus");
    }
    take.copy("trainer.num_nodes", "hardware.nodes");
    let scenario = &take.imported.scenario;
    // Devices are counted for each machine.
    let all = scenario
        .hardware
        .gpus
        .saturating_mul(scenario.hardware.nodes.max(1));
    if all != scenario.hardware.gpus {
        take.set("hardware.gpus", &all.to_string());
    }
    take.copy("trainer.accumulate_grad_batches", "training.accumulation");
    take.clip("trainer.gradient_clip_val");
    if let Some(value) = take.value("trainer.precision") {
        match precision(value) {
            Some(precision) => take.set("training.precision", precision),
            None => take.leave("trainer.precision"),
        }
    }
    strategy(&mut take);
    take.optimizer("optimizer.class_path", "optimizer.init_args.");
    for name in ["batch_size", "micro_batch_size"] {
        take.copy(&format!("data.{name}"), "data.micro_batch");
        take.copy(&format!("data.init_args.{name}"), "data.micro_batch");
    }
    for name in ["max_seq_len", "max_length", "sequence_length"] {
        take.copy(&format!("data.{name}"), "data.sequence");
        take.copy(&format!("data.init_args.{name}"), "data.sequence");
    }
    for name in ["num_workers", "init_args.num_workers"] {
        take.copy(&format!("data.{name}"), "runtime.workers");
    }
    take.finish(&[
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

/// What Lightning calls a format, and Fabric with it.
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

/// A name, or a class with what it is made with.
fn strategy(take: &mut Take) {
    let named = "trainer.strategy";
    let class = "trainer.strategy.class_path";
    let found = take.text(named).or_else(|| take.text(class));
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
            take.leave(named);
            return take.leave(class);
        }
    };
    take.set("parallel.strategy", strategy);
    take.set("parallel.offload", offload);
    let init = |name: &str| format!("trainer.strategy.init_args.{name}");
    super::deepspeed::zero(take, &init("stage"));
    if take.switch(&init("offload_parameters")) == Some(true)
        || take.switch(&init("cpu_offload")) == Some(true)
    {
        take.set("parallel.offload", "parameters");
    }
    let states = take.switch(&init("offload_optimizer")) == Some(true);
    if states && take.imported.scenario.parallel.offload == headroom_scenario::Offload::None {
        take.set("parallel.offload", "optimizer");
    }
    if let Some(sharding) = take.text(&init("sharding_strategy")) {
        match sharding {
            "FULL_SHARD" => take.set("parallel.reshard", "on"),
            "SHARD_GRAD_OP" => take.set("parallel.reshard", "off"),
            "HYBRID_SHARD" => take.set("parallel.strategy", "hsdp"),
            _ => take.leave(&init("sharding_strategy")),
        }
    }
    take.copy(&init("bucket_cap_mb"), "parallel.bucket_mb");
    take.copy(&init("gradient_as_bucket_view"), "parallel.bucket_view");
    take.copy(&init("tensor_parallel_size"), "parallel.tp");
}
