//! A preset for each system, after the launch script of its repository.

use headroom_scenario::presets::Preset;

pub(super) const PRESETS: &[Preset] = &[DREAMS, GSA, PRS_MED, RNA_3E_FFI, PEPTRM];

/// `integrated_memory_optimized_train_with_wandb.sh` of the fork, before it was changed to a batch of one. The guide
/// names no card: one of 32 GB runs out of memory in the epoch it names.
const DREAMS: Preset = Preset {
    id: "dreams",
    title: "DreaMS, fine-tuning on mass spectra",
    about: "A transformer over the peaks of mass spectra, fine-tuned to fingerprints in fp32 on two cards.",
    set: &[
        ("hardware.gpu", "v100-sxm2-32gb"),
        ("hardware.gpus", "2"),
        ("model.id", "dreams"),
        ("data.micro_batch", "2"),
        ("data.sequence", "1"),
        ("training.precision", "fp32"),
        ("training.optimizer", "adamw"),
        ("training.checkpointing", "none"),
        ("training.accumulation", "1"),
        ("runtime.workers", "4"),
        ("runtime.save_keep", "3"),
        // BinaryAUROC and CosineSimilarity each keep predictions and targets: 4 lists of 4096 floats.
        ("runtime.eval_keeps", "65536"),
        ("runtime.eval_samples", "1606"),
        ("runtime.eval_interval", "0.1"),
        ("runtime.epochs", "100"),
        ("training.learning_rate", "0.0001"),
    ],
};

/// `training/configs/pretrain_512m_low_memory.yaml` on four cards of 44 GB; the trainer's loop keeps `outputs` alive.
const GSA: Preset = Preset {
    id: "gsa-512m",
    title: "Gated Sparse Attention, pre-training",
    about: "A small language model that gathers keys and values, in bf16 autocast with checkpointing on four cards.",
    set: &[
        ("hardware.gpu", "l40s-48gb"),
        ("hardware.gpus", "4"),
        ("model.id", "gsa-512m"),
        ("data.micro_batch", "2"),
        ("data.sequence", "1024"),
        ("training.precision", "amp-bf16"),
        ("training.optimizer", "adamw"),
        ("training.checkpointing", "layers"),
        ("training.accumulation", "32"),
        ("training.clip", "on"),
        ("training.keep_outputs", "on"),
        ("training.learning_rate", "0.0003"),
        // The loop never enters no_sync.
        ("parallel.sync_each", "on"),
        ("runtime.max_steps", "100000"),
        ("runtime.workers", "4"),
        ("runtime.pin_memory", "on"),
        ("runtime.save_every", "5000"),
        ("runtime.expandable_segments", "on"),
    ],
};

/// `configs/optimized_extended.yaml` with the guide's batch: autocast is fp16 whatever `amp_dtype` says.
const PEPTRM: Preset = Preset {
    id: "peptrm",
    title: "pepTRM, recursive peptide sequencing",
    about: "Three layers run 168 times through shared weights with full back-propagation, and a loss that renders spectra.",
    set: &[
        ("hardware.gpu", "rtx-4090"),
        ("hardware.gpus", "1"),
        ("model.id", "peptrm"),
        ("data.micro_batch", "48"),
        ("data.sequence", "35"),
        ("training.precision", "amp-fp16"),
        ("training.optimizer", "adamw"),
        ("training.checkpointing", "none"),
        ("training.accumulation", "2"),
        ("training.clip", "on"),
        ("training.ema", "on"),
        ("training.learning_rate", "0.00015"),
        ("runtime.max_steps", "100000"),
        ("runtime.workers", "4"),
        ("runtime.pin_memory", "on"),
        ("runtime.save_every", "2500"),
    ],
};

/// The command of the guide, at the commit it was written at, with the two graphs of a typical batch. The largest
/// graphs are those of the log of 30 October: their pair has 364,625 non-bonded edges. Of 974 samples, drawn from a
/// log-normal distribution of that mean, the largest is expected there when one in twenty has more than 55,000.
const RNA_3E_FFI: Preset = Preset {
    id: "rna-3e-ffi",
    title: "RNA-3E-FFI, pockets of RNA",
    about: "An E(3)-equivariant graph network over binding pockets, whose largest graphs have nine times the mean's edges.",
    set: &[
        ("hardware.gpu", "a40-48gb"),
        ("hardware.memory_mib", "45599"),
        ("hardware.gpus", "1"),
        ("model.id", "rna-3e-ffi"),
        ("data.micro_batch", "2"),
        ("data.sequence", "1"),
        ("data.distribution", "varying"),
        ("data.mean", "20000"),
        ("data.p95", "55000"),
        ("data.max", "182312"),
        ("data.samples", "974"),
        ("training.precision", "fp32"),
        ("training.optimizer", "adamw"),
        ("training.checkpointing", "none"),
        ("training.accumulation", "1"),
        ("training.clip", "on"),
        ("training.dropout", "on"),
        ("training.learning_rate", "0.001"),
        ("runtime.epochs", "300"),
        ("runtime.workers", "2"),
        ("runtime.expandable_segments", "on"),
    ],
};

/// "Configuration 3: Paper Settings": batch 8 under autocast, on the card that the guide recommends for it. Questions
/// of a batch are padded to the longest, 600 tokens with the image's 576; the loop's names hold the outputs.
const PRS_MED: Preset = Preset {
    id: "prs-med",
    title: "PRS-Med, LLaVA-Med with TinySAM",
    about: "A frozen 7B vision-language model in fp16 with adapters, and a small image encoder trained at 1024² beside it.",
    set: &[
        ("hardware.gpu", "a100-sxm4-80gb"),
        ("hardware.gpus", "1"),
        ("model.id", "prs-med"),
        ("data.micro_batch", "8"),
        ("data.sequence", "600"),
        ("data.padding_mask", "on"),
        ("training.precision", "amp-fp16"),
        ("training.optimizer", "adamw"),
        ("training.attention", "sdpa"),
        ("training.checkpointing", "none"),
        ("training.accumulation", "1"),
        ("training.clip", "on"),
        ("training.keep_outputs", "on"),
        ("training.lora", "on"),
        ("training.lora.rank", "16"),
        (
            "training.lora.targets",
            "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj",
        ),
        ("training.lora.dropout", "0.05"),
        ("training.lora.fp32_adapters", "on"),
        ("training.learning_rate", "0.0001"),
        ("parallel.sync_each", "on"),
        ("runtime.epochs", "20"),
        ("runtime.workers", "2"),
        ("runtime.pin_memory", "on"),
        ("runtime.expandable_segments", "on"),
    ],
};
