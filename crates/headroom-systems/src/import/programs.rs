//! The systems' programs: their flags and defaults.

use super::Builder;
use headroom_scenario::Irreps;

/// Whether the command has a flag.
pub(super) type HasFlag<'a> = &'a dyn Fn(&str) -> bool;

/// A program of a system.
pub(super) struct Program {
    pub preset: &'static str,
    /// The end of its path.
    pub script: &'static str,
    /// Settings before any flag is applied.
    pub defaults: fn(&mut Builder),
    pub flags: &'static [(&'static str, FlagTarget)],
    /// What depends on several flags, or on the absence of one.
    pub after: fn(&mut Builder, HasFlag),
}

/// What a flag sets.
pub(super) enum FlagTarget {
    /// A setting, to the value after it.
    Setting(&'static str),
    /// A dimension of the model, to the value after it.
    Dim(&'static str),
    /// A setting, to this value.
    SetTo(&'static str, &'static str),
    Apply(fn(&mut Builder, &str)),
    /// Nothing that changes memory.
    NoEffect,
}

use FlagTarget::{Apply, Dim, NoEffect, SetTo, Setting};

/// The most distinctive paths first.
pub(super) const PROGRAMS: &[Program] = &[
    Program {
        preset: "dreams",
        script: "dreams/training/train.py",
        defaults: |run| {
            for (field, value) in [
                ("hardware.gpus", "1"),
                ("runtime.workers", "0"),
                ("runtime.save_keep", "1"),
                ("runtime.eval_interval", "1.0"),
            ] {
                run.set(field, value);
            }
        },
        flags: DREAMS,
        after: |run, has_flag| {
            if has_flag("--as_given") {
                return;
            }
            let batch = run.scenario().data.micro_batch;
            run.set("data.micro_batch", "1");
            run.set("training.accumulation", &batch.to_string());
            let workers = run.scenario().runtime.workers.min(2);
            run.set("runtime.workers", &workers.to_string());
            run.set("runtime.eval_interval", "0.25");
            run.note(
                "without --as_given of wiring.diff the fork takes a batch of 1, --batch_size as accumulation, two workers \
                 at most and a val_check_interval of 0.25",
            );
        },
    },
    Program {
        preset: "rna-3e-ffi",
        script: "04_train_model.py",
        defaults: |run| run.size("--use_layer_norm", "layer_norm", "0"),
        flags: RNA,
        after: |run, _| {
            let workers = run.scenario().runtime.workers.min(2);
            run.set("runtime.workers", &workers.to_string());
        },
    },
    Program {
        preset: "prs-med",
        script: "train_prs_med.py",
        defaults: |_| {},
        flags: PRS_MED,
        after: |run, has_flag| {
            if has_flag("--gradient_checkpointing") {
                run.note("--gradient_checkpointing trains no adapter of the language model without wiring.diff");
            }
        },
    },
    Program {
        preset: "peptrm",
        script: "train_optimized.py",
        defaults: |_| {},
        flags: &[("--resume_from", NoEffect), ("--config", NoEffect)],
        after: |run, _| run.note(OF_YAML),
    },
    Program {
        preset: "gsa-512m",
        script: "training/train.py",
        defaults: |_| {},
        flags: &[
            ("--config", NoEffect),
            ("--output_dir", NoEffect),
            ("--resume_from", NoEffect),
            ("--wandb_run_name", NoEffect),
            ("--seed", NoEffect),
            ("--local_rank", NoEffect),
        ],
        after: |run, _| run.note(OF_YAML),
    },
];

const OF_YAML: &str =
    "batch, lengths and model are those of the author's YAML: import that file for another";

const DREAMS: &[(&str, FlagTarget)] = &[
    ("--batch_size", Setting("data.micro_batch")),
    (
        "--accumulate_grad_batches",
        Setting("training.accumulation"),
    ),
    ("--max_peaks_n", Dim("peaks")),
    ("--num_devices", Setting("hardware.gpus")),
    ("--num_workers_data", Setting("runtime.workers")),
    ("--max_epochs", Setting("runtime.epochs")),
    ("--val_check_interval", Setting("runtime.eval_interval")),
    ("--limit_val_batches", Setting("runtime.eval_limit")),
    ("--every_n_train_steps", Setting("runtime.save_every")),
    ("--reset_val_metrics", SetTo("runtime.eval_keeps", "0")),
    ("--gradient_clip_val", SetTo("training.clip", "on")),
    // Nothing is evaluated, and nothing kept.
    ("--no_val", SetTo("runtime.eval_samples", "0")),
    (
        "--save_top_k",
        Apply(|run, value| run.set("runtime.save_keep", if value == "-1" { "0" } else { value })),
    ),
    (
        "--train_precision",
        Apply(|run, value| match value {
            "32" => run.set("training.precision", "fp32"),
            "64" => run.set("training.precision", "fp64"),
            _ => run.wrong(
                "--train_precision",
                value,
                "32 or 64: the preprocessor asserts one of the two",
            ),
        }),
    ),
    (
        "--unfreeze_backbone_at_epoch",
        Apply(|run, value| {
            if value != "0" {
                run.set("training.freeze", "backbone");
            }
        }),
    ),
    ("--as_given", NoEffect),
    ("--no_wandb", NoEffect),
    ("--project_name", NoEffect),
    ("--job_key", NoEffect),
    ("--run_name", NoEffect),
    ("--wandb_entity_name", NoEffect),
    ("--train_objective", NoEffect),
    ("--train_regime", NoEffect),
    ("--dataset_pth", NoEffect),
    ("--dformat", NoEffect),
    ("--model", NoEffect),
    ("--lr", Setting("training.learning_rate")),
    ("--prec_intens", NoEffect),
    ("--log_every_n_steps", NoEffect),
    ("--head_depth", NoEffect),
    ("--seed", NoEffect),
    ("--pre_trained_pth", NoEffect),
    ("--val_frac", NoEffect),
    ("--weight_decay", NoEffect),
];

const RNA: &[(&str, FlagTarget)] = &[
    ("--batch_size", Setting("data.micro_batch")),
    ("--accumulation_steps", Setting("training.accumulation")),
    ("--max_edges", Setting("data.batch_max")),
    ("--num_workers", Setting("runtime.workers")),
    ("--use_amp", SetTo("training.precision", "amp-fp16")),
    ("--num_layers", Dim("layers")),
    ("--output_dim", Dim("out")),
    ("--num_radial_basis", Dim("bessel")),
    (
        "--hidden_irreps",
        Apply(|run, value| match Irreps::parse(value) {
            Ok(irreps) => {
                for (name, count) in irreps.sizes() {
                    run.size("--hidden_irreps", &name, &count.to_string());
                }
            }
            Err(expected) => run.wrong("--hidden_irreps", value, &expected),
        }),
    ),
    (
        "--use_layer_norm",
        Apply(|run, _| run.size("--use_layer_norm", "layer_norm", "1")),
    ),
    (
        "--no-use_multi_hop",
        Apply(|run, _| run.size("--no-use_multi_hop", "multi_hop", "0")),
    ),
    (
        "--grad_clip",
        Apply(|run, value| {
            // The code clips at 1.0 whatever the value, except that 0 turns it off with the patch.
            if value.parse() == Ok(0.0) {
                run.set("training.clip", "off");
            }
        }),
    ),
    (
        "--dropout",
        Apply(|run, value| {
            let off = value.parse() == Ok(0.0);
            run.set("training.dropout", if off { "off" } else { "on" });
        }),
    ),
    ("--use_multi_hop", NoEffect),
    ("--use_nonbonded", NoEffect),
    ("--use_gate", NoEffect),
    ("--hariboss_csv", NoEffect),
    ("--graph_dir", NoEffect),
    ("--embeddings_path", NoEffect),
    ("--splits_file", NoEffect),
    ("--num_epochs", Setting("runtime.epochs")),
    ("--lr", Setting("training.learning_rate")),
    (
        "--recompute_layers",
        SetTo("training.checkpointing", "layers"),
    ),
    ("--weight_decay", NoEffect),
    ("--save_every", NoEffect),
    ("--output_dir", NoEffect),
    ("--seed", NoEffect),
    ("--patience", NoEffect),
    ("--scheduler", NoEffect),
];

const PRS_MED: &[(&str, FlagTarget)] = &[
    ("--batch_size", Setting("data.micro_batch")),
    (
        "--gradient_accumulation_steps",
        Setting("training.accumulation"),
    ),
    ("--num_workers", Setting("runtime.workers")),
    ("--lora_rank", Setting("training.lora.rank")),
    ("--lora_dropout", Setting("training.lora.dropout")),
    ("--lora_targets", Setting("training.lora.targets")),
    ("--load_4bit", Setting("training.quantization")),
    ("--use_amp", SetTo("training.precision", "amp-fp16")),
    ("--no-use_amp", SetTo("training.precision", "fp32")),
    (
        "--gradient_checkpointing",
        SetTo("training.checkpointing", "layers"),
    ),
    (
        "--checkpoint_encoder",
        Apply(|run, _| run.size("--checkpoint_encoder", "checkpoint_encoder", "1")),
    ),
    (
        "--image_size",
        Apply(|run, value| {
            if value != "1024" {
                run.wrong(
                    "--image_size",
                    value,
                    "1024: the encoder asserts it, and the data are resized to it whatever is said",
                );
            }
        }),
    ),
    ("--data_root", NoEffect),
    ("--learning_rate", Setting("training.learning_rate")),
    ("--num_epochs", Setting("runtime.epochs")),
    (
        "--compile_model",
        Apply(|run, _| {
            run.set("training.compile", "model");
            run.set("training.compile_mode", "reduce-overhead");
        }),
    ),
    ("--checkpoint_dir", NoEffect),
    ("--tinysam_checkpoint", NoEffect),
    ("--lora_alpha", NoEffect),
    ("--lambda_seg", NoEffect),
    ("--lambda_txt", NoEffect),
    ("--seed", NoEffect),
    ("--deterministic", NoEffect),
    ("--find_unused_parameters", NoEffect),
    ("--no-scale_lr", NoEffect),
];
