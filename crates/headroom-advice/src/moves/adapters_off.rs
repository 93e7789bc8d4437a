//! The model with its base model as the reference (adapters off).

use super::{Cost, Group, Move, Results, with};
use headroom_scenario::Reference;

pub const MOVE: Move = Move {
    id: "adapters-as-reference",
    title: "base model as the reference (adapters off)",
    group: Group::Outputs,
    what: "Disables the adapters for the reference pass, so no copy of the model is needed.",
    needs: "Adapters, and a reference model that is a copy.",
    cost: Cost::Free,
    results: Results::Rounding,
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
