//! The model itself as its reference.

use super::{Cost, Group, Move, with};
use headroom_scenario::Reference;

pub const MOVE: Move = Move {
    id: "adapters-as-reference",
    title: "adapters off as the reference",
    group: Group::Outputs,
    what: "Switches the adapters off for the reference's pass, so that no copy of the model is kept.",
    needs: "Adapters, and a reference that is a copy.",
    cost: Cost::Free,
    never_worse: true,
    speed: "No change.",
    quality: "Identical: a new adapter changes nothing before training.",
    source: "trl/trainer/dpo_trainer.py (use_adapter), peft disable_adapter",
    caveat: "",
    code: "DPOTrainer(model, ref_model=None, peft_config=config, ...)",
    apply: |run| {
        let task = &run.training.task;
        let copied = task.objective.refers() && task.reference == Reference::Copy;
        (copied && run.training.lora.is_some()).then(|| {
            with(run, |changed| {
                changed.training.task.reference = Reference::AdaptersOff;
            })
        })
    },
};
