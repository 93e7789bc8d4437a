//! Checkpoints on disk.

use serde::Serialize;

use super::host::Sizes;
use super::{Category, Part};
use headroom_base::units::Bytes;
use headroom_scenario::{Optimizer, Scenario, Trainer};

/// Checkpoints on disk; empty if none are saved.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Disk {
    /// One checkpoint.
    pub parts: Vec<Part<Category>>,
    /// The size of one checkpoint: the sum of `parts`.
    pub checkpoint: Bytes,
    /// How many exist at once: those kept and the one being written, or an epoch's if all are kept.
    pub count: Option<u64>,
    /// The size of `count` checkpoints; `None` if their number is unknown.
    pub total: Option<Bytes>,
}

impl Disk {
    /// The file format of a checkpoint.
    pub const fn format(trainer: Trainer, adapters: bool) -> &'static str {
        match trainer {
            Trainer::Torch => "one file of torch.save",
            Trainer::Lightning => "one .ckpt",
            Trainer::Deepspeed => "mp_rank_*_model_states.pt and *_optim_states.pt",
            Trainer::Torchtitan | Trainer::Megatron => {
                "shards of torch.distributed.checkpoint (.distcp)"
            }
            Trainer::Torchtune => "safetensors, and recipe_state.pt",
            _ if adapters => "adapter_model.safetensors and optimizer.pt",
            _ => "model.safetensors and optimizer.pt",
        }
    }

    /// The checkpoints of a run.
    pub(super) fn of(sizes: &Sizes, scenario: &Scenario) -> Self {
        let runtime = &scenario.runtime;
        let Some(every) = runtime.save_every else {
            return Self::default();
        };
        let on_host = match scenario.training.optimizer {
            // Its copies of weights and gradients are not optimizer states.
            Optimizer::AdamWOffload | Optimizer::AdamWOffloadGradients => {
                Bytes::new(sizes.host_states.get() / 2)
            }
            _ => sizes.host_states,
        };
        let mut parts = vec![
            Part {
                what: Category::Parameters,
                bytes: sizes.saved,
            },
            Part {
                what: Category::OptimizerStates,
                bytes: sizes.states + on_host,
            },
        ];
        if scenario.training.ema {
            parts.push(Part {
                what: Category::Ema,
                bytes: sizes.weights,
            });
        }
        parts.retain(|part| part.bytes > Bytes::ZERO);
        let checkpoint: Bytes = parts.iter().map(|part| part.bytes).sum();
        let steps =
            (scenario.data.samples as f64 / scenario.effective_batch().max(1) as f64) as u64;
        let count = match runtime.save_keep {
            // An older one goes once the newer is written.
            Some(kept) => Some(kept.get().saturating_add(1)),
            None if scenario.data.samples > 0 => Some(steps / every),
            None => None,
        };
        Self {
            parts,
            checkpoint,
            count,
            total: count.map(|count| checkpoint * count),
        }
    }
}
