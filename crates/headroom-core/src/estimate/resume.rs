//! How a run that saves its state takes it up again.

use headroom_scenario::{Scenario, Trainer};

/// Whether a resumed run reads its checkpoint onto the GPU: `torch.load` puts tensors where they were saved from unless it is
/// given a `map_location`. All the trainers give one, or read tensor by tensor, through the host: transformers
/// (`Trainer._load_from_checkpoint`), Lightning (`TorchCheckpointIO.load_checkpoint`), DeepSpeed
/// (`DeepSpeedEngine._load_checkpoint`), torchtune (`safe_torch_load`), Megatron-core (`_load_base_checkpoint`) and
/// torchtitan (`torch.distributed.checkpoint`). A checkpoint that stays alive under a name stays on the device for good.
pub fn on_device(scenario: &Scenario) -> bool {
    scenario.runtime.save_every > 0 && scenario.stack.trainer == Trainer::Torch
}
