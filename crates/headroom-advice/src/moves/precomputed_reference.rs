//! Precomputed log-probabilities of the reference model.

use super::{Cost, Group, Move, Results, with};
use headroom_scenario::{LmHead, Objective, Reference};

pub const MOVE: Move = Move {
    id: "precomputed-reference",
    title: "precompute the reference's log-probabilities",
    group: Group::Outputs,
    what: "The model itself scores all data before training, so no copy of it is needed and no reference pass runs in a step.",
    needs: "DPO or KTO with TRL's head and a reference model.",
    cost: Cost::Free,
    results: Results::Rounding,
    never_worse: true,
    speed: "One pass over the data before training instead of one in every epoch.",
    quality: "Identical.",
    source: "trl/trainer/dpo_trainer.py and kto_trainer.py (_precompute_ref_logps)",
    caveat: "Not for streamed data.",
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
