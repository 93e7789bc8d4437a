//! The systems' programs: their flags, and what they do where a flag is not given.

use super::Read;
use headroom_scenario::Irreps;

/// Whether a flag is given.
pub(super) type Given<'a> = &'a dyn Fn(&str) -> bool;

/// A program of a system.
pub(super) struct Program {
    pub preset: &'static str,
    /// The end of its path.
    pub script: &'static str,
    /// What holds before any flag.
    pub unsaid: fn(&mut Read),
    pub flags: &'static [(&'static str, To)],
    /// What the program makes of its flags together.
    pub after: fn(&mut Read, Given),
}

/// What a flag says.
pub(super) enum To {
    /// The value of a field.
    Field(&'static str),
    /// A dimension of the model.
    Size(&'static str),
    /// A field's value, by being there.
    Is(&'static str, &'static str),
    Does(fn(&mut Read, &str)),
    /// Nothing of memory.
    Nothing,
}

use To::{Does, Field, Is, Nothing, Size};

/// Those with the surest names first.
pub(super) const PROGRAMS: &[Program] = &[
    Program {
        preset: "dreams",
        script: "dreams/training/train.py",
        unsaid: |read| {
            for (field, value) in [
                ("hardware.gpus", "1"),
                ("runtime.workers", "0"),
                ("runtime.save_keep", "1"),
                ("runtime.eval_interval", "1.0"),
            ] {
                read.set(field, value);
            }
        },
        flags: DREAMS,
        after: |read, given| {
            if given("--as_given") {
                return;
            }
            let batch = read.scenario().data.micro_batch;
            read.set("data.micro_batch", "1");
            read.set("training.accumulation", &batch.to_string());
            let workers = read.scenario().runtime.workers.min(2);
            read.set("runtime.workers", &workers.to_string());
            read.set("runtime.eval_interval", "0.25");
            read.note(
                "without --as_given of wiring.diff the fork takes a batch of 1, --batch_size as accumulation, two workers \
                 at most and a val_check_interval of 0.25",
            );
        },
    },
    Program {
        preset: "rna-3e-ffi",
        script: "04_train_model.py",
        unsaid: |read| read.size("--use_layer_norm", "layer_norm", "0"),
        flags: RNA,
        after: |read, _| {
            let workers = read.scenario().runtime.workers.min(2);
            read.set("runtime.workers", &workers.to_string());
        },
    },
    Program {
        preset: "prs-med",
        script: "train_prs_med.py",
        unsaid: |_| {},
        flags: PRS_MED,
        after: |read, given| {
            if given("--gradient_checkpointing") {
                read.note("--gradient_checkpointing trains no adapter of the language model without wiring.diff");
            }
        },
    },
    Program {
        preset: "peptrm",
        script: "train_optimized.py",
        unsaid: |_| {},
        flags: &[("--resume_from", Nothing), ("--config", Nothing)],
        after: |read, _| read.note(OF_YAML),
    },
    Program {
        preset: "gsa-512m",
        script: "training/train.py",
        unsaid: |_| {},
        flags: &[
            ("--config", Nothing),
            ("--output_dir", Nothing),
            ("--resume_from", Nothing),
            ("--wandb_run_name", Nothing),
            ("--seed", Nothing),
            ("--local_rank", Nothing),
        ],
        after: |read, _| read.note(OF_YAML),
    },
];

const OF_YAML: &str =
    "batch, lengths and model are those of the author's YAML: import that file for another";

const DREAMS: &[(&str, To)] = &[
    ("--batch_size", Field("data.micro_batch")),
    ("--accumulate_grad_batches", Field("training.accumulation")),
    ("--max_peaks_n", Size("peaks")),
    ("--num_devices", Field("hardware.gpus")),
    ("--num_workers_data", Field("runtime.workers")),
    ("--max_epochs", Field("runtime.epochs")),
    ("--val_check_interval", Field("runtime.eval_interval")),
    ("--limit_val_batches", Field("runtime.eval_limit")),
    ("--every_n_train_steps", Field("runtime.save_every")),
    ("--reset_val_metrics", Is("runtime.eval_keeps", "0")),
    ("--gradient_clip_val", Is("training.clip", "on")),
    // Nothing is evaluated, and nothing kept.
    ("--no_val", Is("runtime.eval_samples", "0")),
    (
        "--save_top_k",
        Does(|read, value| read.set("runtime.save_keep", if value == "-1" { "0" } else { value })),
    ),
    (
        "--train_precision",
        Does(|read, value| match value {
            "32" => read.set("training.precision", "fp32"),
            "64" => read.set("training.precision", "fp64"),
            _ => read.wrong(
                "--train_precision",
                value,
                "32 or 64: the preprocessor asserts one of the two",
            ),
        }),
    ),
    (
        "--unfreeze_backbone_at_epoch",
        Does(|read, value| {
            if value != "0" {
                read.set("training.freeze", "backbone");
            }
        }),
    ),
    ("--as_given", Nothing),
    ("--no_wandb", Nothing),
    ("--project_name", Nothing),
    ("--job_key", Nothing),
    ("--run_name", Nothing),
    ("--wandb_entity_name", Nothing),
    ("--train_objective", Nothing),
    ("--train_regime", Nothing),
    ("--dataset_pth", Nothing),
    ("--dformat", Nothing),
    ("--model", Nothing),
    ("--lr", Nothing),
    ("--prec_intens", Nothing),
    ("--log_every_n_steps", Nothing),
    ("--head_depth", Nothing),
    ("--seed", Nothing),
    ("--pre_trained_pth", Nothing),
    ("--val_frac", Nothing),
    ("--weight_decay", Nothing),
];

const RNA: &[(&str, To)] = &[
    ("--batch_size", Field("data.micro_batch")),
    ("--accumulation_steps", Field("training.accumulation")),
    ("--max_edges", Field("data.batch_max")),
    ("--num_workers", Field("runtime.workers")),
    ("--use_amp", Is("training.precision", "amp-fp16")),
    ("--num_layers", Size("layers")),
    ("--output_dim", Size("out")),
    ("--num_radial_basis", Size("bessel")),
    (
        "--hidden_irreps",
        Does(|read, value| match Irreps::parse(value) {
            Ok(irreps) => {
                for (name, count) in irreps.sizes() {
                    read.size("--hidden_irreps", &name, &count.to_string());
                }
            }
            Err(expected) => read.wrong("--hidden_irreps", value, &expected),
        }),
    ),
    (
        "--use_layer_norm",
        Does(|read, _| read.size("--use_layer_norm", "layer_norm", "1")),
    ),
    (
        "--no-use_multi_hop",
        Does(|read, _| read.size("--no-use_multi_hop", "multi_hop", "0")),
    ),
    (
        "--grad_clip",
        Does(|read, value| {
            // The code clips at 1.0 whatever is said, unless the patch's 0 ends it.
            if value.parse() == Ok(0.0) {
                read.set("training.clip", "off");
            }
        }),
    ),
    (
        "--dropout",
        Does(|read, value| {
            let off = value.parse() == Ok(0.0);
            read.set("training.dropout", if off { "off" } else { "on" });
        }),
    ),
    ("--use_multi_hop", Nothing),
    ("--use_nonbonded", Nothing),
    ("--use_gate", Nothing),
    ("--hariboss_csv", Nothing),
    ("--graph_dir", Nothing),
    ("--embeddings_path", Nothing),
    ("--splits_file", Nothing),
    ("--num_epochs", Nothing),
    ("--lr", Nothing),
    ("--weight_decay", Nothing),
    ("--save_every", Nothing),
    ("--output_dir", Nothing),
    ("--seed", Nothing),
    ("--patience", Nothing),
    ("--scheduler", Nothing),
];

const PRS_MED: &[(&str, To)] = &[
    ("--batch_size", Field("data.micro_batch")),
    (
        "--gradient_accumulation_steps",
        Field("training.accumulation"),
    ),
    ("--num_workers", Field("runtime.workers")),
    ("--lora_rank", Field("training.lora.rank")),
    ("--lora_dropout", Field("training.lora.dropout")),
    ("--lora_targets", Field("training.lora.targets")),
    ("--load_4bit", Field("training.quantization")),
    ("--use_amp", Is("training.precision", "amp-fp16")),
    ("--no-use_amp", Is("training.precision", "fp32")),
    (
        "--gradient_checkpointing",
        Is("training.checkpointing", "layers"),
    ),
    (
        "--checkpoint_encoder",
        Does(|read, _| read.size("--checkpoint_encoder", "checkpoint_encoder", "1")),
    ),
    (
        "--image_size",
        Does(|read, value| {
            if value != "1024" {
                read.wrong(
                    "--image_size",
                    value,
                    "1024: the encoder asserts it, and the data are resized to it whatever is said",
                );
            }
        }),
    ),
    ("--data_root", Nothing),
    ("--learning_rate", Nothing),
    ("--num_epochs", Nothing),
    ("--checkpoint_dir", Nothing),
    ("--tinysam_checkpoint", Nothing),
    ("--lora_alpha", Nothing),
    ("--lambda_seg", Nothing),
    ("--lambda_txt", Nothing),
    ("--seed", Nothing),
    ("--deterministic", Nothing),
    ("--find_unused_parameters", Nothing),
    ("--no-scale_lr", Nothing),
];
