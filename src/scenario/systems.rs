//! The five systems whose memory guides started this: presets after the launch scripts of their repositories.

use super::presets::Preset;

/// `integrated_memory_optimized_train_with_wandb.sh` of the fork, before it was changed to a batch of one. The guide
/// names no card: one of 32 GB runs out of memory in the epoch that it tells of.
pub(super) const DREAMS: Preset = Preset {
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
    ],
};
