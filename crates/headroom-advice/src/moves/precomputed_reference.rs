//! The reference's log-probabilities before training.

use super::{Cost, Group, Move, with};
use headroom_scenario::{LmHead, Objective, Reference};

pub const MOVE: Move = Move {
    id: "precomputed-reference",
    title: "the reference's log-probabilities before training",
    group: Group::Outputs,
    what: "The model itself judges all data before it is trained, so that no copy of it is kept and no reference runs in a step.",
    needs: "DPO or KTO with TRL's head, and a reference that runs.",
    cost: Cost::Free,
    never_worse: true,
    speed: "One pass over the data before training instead of one in every epoch.",
    quality: "Identical.",
    source: "trl/trainer/dpo_trainer.py and kto_trainer.py (_precompute_ref_logps)",
    caveat: "Not for data that is streamed.",
    code: "DPOConfig(precompute_ref_log_probs=True)",
    apply: |run| {
        let task = &run.training.task;
        let compared = matches!(task.objective, Objective::Dpo | Objective::Kto);
        let runs = !matches!(task.reference, Reference::None | Reference::ByItself);
        (compared && runs && task.head == LmHead::Fused).then(|| {
            with(run, |changed| {
                changed.training.task.reference = Reference::ByItself;
            })
        })
    },
};
