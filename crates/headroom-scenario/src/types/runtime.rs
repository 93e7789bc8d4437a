//! The software, and the process around the steps.

use crate::Trainer;
use std::num::NonZero;

/// The software a run uses; its defaults change with its versions.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    pub trainer: Trainer,
    /// `None` is the newest that the catalogue knows.
    pub trainer_version: Option<(u8, u8)>,
    /// PyTorch's version, major and minor.
    pub torch: (u8, u8),
    pub transformers: (u8, u8),
    pub peft: (u8, u8),
    pub bitsandbytes: (u8, u8),
    pub liger: (u8, u8),
}

impl Default for Stack {
    fn default() -> Self {
        Self {
            trainer: Trainer::default(),
            trainer_version: None,
            torch: (2, 15),
            transformers: (5, 23),
            peft: (0, 21),
            bitsandbytes: (0, 50),
            liger: (0, 8),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Runtime {
    /// `expandable_segments:True` in the allocator's settings.
    pub expandable_segments: bool,
    pub max_split_size_mb: Option<NonZero<u64>>,
    pub garbage_collection_threshold: Option<f64>,
    pub roundup_power2_divisions: Option<NonZero<u32>>,
    /// The share of the GPU that the allocator may reserve.
    pub memory_fraction: Option<f64>,
    /// MiB in use on the GPU outside PyTorch, as measured; in place of the catalogue's.
    pub outside_mib: Option<NonZero<u64>>,
    /// What a run was measured to allocate beyond its prediction, in MiB.
    pub kept_mib: u64,
    pub workers: u32,
    /// Batches that each worker holds ready.
    pub prefetch: u32,
    pub pin_memory: bool,
    /// The data set, where all of it is loaded.
    pub dataset_gib: f64,
    /// `None` where nothing is evaluated.
    pub eval_batch: Option<NonZero<u64>>,
    /// Optimizer steps between evaluations, in place of a share of an epoch.
    pub eval_every: Option<NonZero<u64>>,
    /// The share of an epoch between evaluations, where no steps are given.
    pub eval_interval: f64,
    /// Samples in the evaluation set, divided over data-parallel GPUs; zero where not known.
    pub eval_samples: u64,
    /// The share of them that is evaluated; above one, a number of batches.
    pub eval_limit: f64,
    /// Bytes of each evaluated sample that stay on the GPU until the run ends.
    pub eval_keeps: u64,
    pub epochs: Option<NonZero<u64>>,
    /// Optimizer steps of the run; `None` where its epochs decide.
    pub max_steps: Option<NonZero<u64>>,
    /// Optimizer steps between checkpoints; `None` where nothing is saved.
    pub save_every: Option<NonZero<u64>>,
    /// How many checkpoints are kept; `None` keeps all.
    pub save_keep: Option<NonZero<u64>>,
}

impl Default for Runtime {
    fn default() -> Self {
        Self {
            expandable_segments: false,
            max_split_size_mb: None,
            garbage_collection_threshold: None,
            roundup_power2_divisions: None,
            memory_fraction: None,
            outside_mib: None,
            kept_mib: 0,
            workers: 0,
            prefetch: 2,
            pin_memory: false,
            dataset_gib: 0.0,
            eval_batch: None,
            eval_every: None,
            eval_interval: 1.0,
            eval_samples: 0,
            eval_limit: 1.0,
            eval_keeps: 0,
            epochs: None,
            max_steps: None,
            save_every: None,
            save_keep: None,
        }
    }
}
