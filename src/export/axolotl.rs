//! Axolotl: one file for the whole job.

use super::common::{PLACE, file, hub_name, launch_on_each, machines, processes};
use super::header::header;
use super::refuse::Layout;
use super::trainer::Layouts;
use super::{Files, Target, accelerate, deepspeed, layout, trainer};
use crate::document::Document;
use crate::document::yaml;
use crate::estimate::Estimate;
use crate::scenario::{Checkpointing, LossKernel, Offload, Precision, Scenario};

pub(super) const TARGET: Target = Target {
    id: "axolotl",
    title: "Axolotl",
    versions: "axolotl 0.21",
    differs: "",
    write,
};

/// It loads the weights in the format that it computes in.
const PRECISIONS: &[Precision] = &[
    Precision::Fp32,
    Precision::Bf16,
    Precision::Fp16,
    Precision::AmpBf16OnBf16,
];

const LAYOUTS: Layouts = Layouts {
    strategies: accelerate::LAYOUTS.strategies,
    // ZeRO's sizes stand in DeepSpeed's own file.
    details: &[&["parallel.reshard"], deepspeed::DETAILS],
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let training = &scenario.training;
    let asked = trainer::asked(scenario, trainer::ADAPTERS, PRECISIONS, &LAYOUTS)?;
    let dataset = Document::new()
        .with("path", "train.jsonl")
        .with("ds_type", "json")
        .with_note("type", "completion", "JSON lines with a \"text\"");
    let mut document = Document::new()
        .with_note(
            "base_model",
            hub_name(scenario),
            "a Hugging Face name or a folder",
        )
        .with("datasets", Document::List(vec![dataset]))
        .with("dataset_prepared_path", "prepared")
        .with("output_dir", "out")
        .with("val_set_size", 0.0)
        .with("sequence_len", scenario.data.sequence)
        .with("sample_packing", false)
        .with("pad_to_sequence_len", true)
        .with("micro_batch_size", scenario.data.micro_batch)
        .with("gradient_accumulation_steps", training.accumulation)
        .with("attn_implementation", training.attention.id());
    document = match training.precision {
        Precision::Bf16 => document.with_note("bfloat16", true, "no autocast"),
        Precision::Fp16 => document.with_note("float16", true, "no autocast"),
        Precision::AmpBf16OnBf16 => document.with_note("bf16", true, "autocast over bf16 weights"),
        _ => document.with("bf16", false),
    };
    let fsdp = asked.layout.is_fsdp2();
    let checkpointing = training.checkpointing != Checkpointing::None;
    document = match asked.layout {
        Layout::Zero(_) => document.with("deepspeed", deepspeed::FILE),
        Layout::Fsdp2 => document
            .with("fsdp_version", 2_u64)
            .with("fsdp_config", fsdp_config(scenario)),
        Layout::Hsdp => document
            .with("fsdp_version", 2_u64)
            .with("fsdp_config", fsdp_config(scenario))
            .with("dp_replicate_size", layout::replicas(scenario))
            .with(
                "dp_shard_size",
                processes(scenario) / layout::replicas(scenario).max(1),
            ),
        Layout::Ddp => document.with("ddp_bucket_cap_mb", scenario.parallel.bucket_mb),
        _ => document,
    };
    // FSDP checkpoints by itself, and refuses to do it twice.
    let checkpointing = checkpointing && !fsdp;
    document = document.with("gradient_checkpointing", checkpointing);
    if checkpointing {
        let reentrant = Document::new().with("use_reentrant", false);
        document = document.with("gradient_checkpointing_kwargs", reentrant);
    }
    if asked.liger.is_used() {
        let plugin = "axolotl.integrations.liger.LigerPlugin".to_string();
        document = document
            .with("plugins", vec![plugin])
            .with("liger_rope", asked.liger.kernels)
            .with("liger_rms_norm", asked.liger.kernels)
            .with("liger_glu_activation", asked.liger.kernels);
        document = match asked.liger.loss {
            LossKernel::LigerLinear => document.with("liger_fused_linear_cross_entropy", true),
            LossKernel::Liger => document.with("liger_cross_entropy", true),
            _ => document,
        };
    }
    if let Some(lora) = &training.lora {
        let four_bits = trainer::four_bits(scenario);
        document = match four_bits {
            None => document.with("adapter", "lora"),
            Some(double) => {
                let scales = Document::new().with("bnb_4bit_use_double_quant", double);
                document
                    .with("adapter", "qlora")
                    .with("load_in_4bit", true)
                    .with("bnb_config_kwargs", scales)
                    .with_note("embeddings_skip_upcast", true, "PEFT would make them fp32")
            }
        };
        document = document
            .and(trainer::peft(lora))
            .with_note(
                "lora_mlp_kernel",
                false,
                "its own kernels need less than predicted",
            )
            .with("lora_qkv_kernel", false)
            .with("lora_o_kernel", false);
    }
    let document = document.with("optimizer", asked.optim).with_note(
        "max_grad_norm",
        if training.clip { 1.0 } else { 0.0 },
        "0: no clipping",
    );
    let document = document
        .with_note(
            "learning_rate",
            2e-5,
            "yours to choose, as are the lines below",
        )
        .with("lr_scheduler", "cosine")
        .with("max_steps", 100_u64)
        .with("logging_steps", 10_u64)
        .with("dataloader_num_workers", scenario.runtime.workers)
        .with("dataloader_pin_memory", scenario.runtime.pin_memory);
    let document = trainer::saves(scenario, document);
    let header = header(&TARGET, scenario, estimate);
    let config = yaml::write(&document);
    let machines = machines(scenario).map_err(|problem| vec![problem])?;
    let (nodes, each) = (machines.nodes.to_string(), machines.each.to_string());
    let mut words = vec!["axolotl", "train", "axolotl.yaml"];
    if asked.layout != Layout::Single {
        words.extend(["--launcher", "torchrun", "--", "--nproc-per-node", &each]);
    }
    if machines.nodes > 1 {
        words.extend(["--nnodes", &nodes]);
    }
    let mut files = vec![file("axolotl.yaml", format!("{header}{config}"))];
    files.extend(deepspeed::beside(scenario, asked.layout));
    files.push(launch_on_each(&header, scenario, &words, PLACE, &[]));
    Ok(files)
}

/// FSDP's keys, which have no prefix here.
fn fsdp_config(scenario: &Scenario) -> Document {
    let training = &scenario.training;
    Document::new()
        .with("reshard_after_forward", scenario.parallel.reshard)
        .with("offload_params", scenario.parallel.offload != Offload::None)
        .with("auto_wrap_policy", "TRANSFORMER_BASED_WRAP")
        // Weights in four bits cannot be sent to the other processes.
        .with(
            "cpu_ram_efficient_loading",
            trainer::four_bits(scenario).is_none(),
        )
        .with(
            "activation_checkpointing",
            training.checkpointing != Checkpointing::None,
        )
        .with("state_dict_type", "SHARDED_STATE_DICT")
}
