//! How a run resumes from a checkpoint.

use headroom_scenario::{Scenario, Trainer};

/// Whether a resumed run reads its checkpoint onto the GPU: `torch.load` puts tensors where they were saved from unless it
/// is given a `map_location`. All trainers pass one, or read tensor by tensor through the host: transformers
/// (`Trainer._load_from_checkpoint`), Lightning (`TorchCheckpointIO.load_checkpoint`), DeepSpeed
/// (`DeepSpeedEngine._load_checkpoint`), torchtune (`safe_torch_load`), Megatron-core (`_load_base_checkpoint`) and
/// torchtitan (`torch.distributed.checkpoint`). A checkpoint that stays referenced stays on the device for good.
pub(crate) fn on_device(scenario: &Scenario) -> bool {
    scenario.runtime.save_every.is_some() && scenario.stack.trainer == Trainer::Torch
}
