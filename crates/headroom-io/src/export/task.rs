//! What several targets share of the tasks after pre-training.

use super::File;
use super::common::file;
use headroom_scenario::{
    LmHead, Objective, Precision, Problem, Reference, ReferenceDtype, Scenario, Task,
};

/// A reward to begin with; trainers import it as `REWARD`.
pub(super) fn rewards() -> File {
    file("rewards.py", include_str!("rewards.py").into())
}

pub(super) const REWARD: &str = "rewards.reward";

/// Whether more than the model's own loss is computed.
pub(super) fn has_own_loss(task: &Task) -> bool {
    !matches!(task.objective, Objective::Pretraining | Objective::Sft)
}

/// A problem with supervised fine-tuning in tools that use the model's own loss and do not pack.
pub(super) fn supervised(scenario: &Scenario) -> Option<Problem> {
    let task = &scenario.training.task;
    if task.objective != Objective::Sft {
        return None;
    }
    if scenario.data.packing {
        let expected = "off for this target";
        return Some(Problem::new("data.packing", "on", expected));
    }
    head(task, &[LmHead::Logits])
}

/// A problem if log-probabilities come from a head other than the target's.
pub(super) fn head(task: &Task, known: &[LmHead]) -> Option<Problem> {
    let ids: Vec<&str> = known.iter().map(|head| head.id()).collect();
    let wrong = !known.contains(&task.head);
    wrong
        .then(|| {
            let expected = format!("{} for this target", ids.join(" or "));
            Problem::new("task.head", task.head.id(), expected)
        })
        .or_else(|| of_own_loops(task))
}

/// A problem with what loops of one's own choose and trainers do not.
fn of_own_loops(task: &Task) -> Option<Problem> {
    let refused = |path| Problem::new(path, "on", "off for this target");
    if task.objective != Objective::Dpo {
        None
    } else if task.reference_first {
        Some(refused("task.reference_first"))
    } else {
        task.keeps_logits.then(|| refused("task.keeps_logits"))
    }
}

/// A problem if groups of completions have fewer than two.
pub(super) fn generations(task: &Task) -> Option<Problem> {
    let groups = matches!(task.objective, Objective::Grpo | Objective::Rloo);
    let generations = task.generations.to_string();
    let expected = "2 or more, which are compared";
    (groups && task.generations < 2)
        .then(|| Problem::new("task.generations", generations, expected))
}

/// The micro-batches that one round of sampling is for.
pub(super) fn batches(scenario: &Scenario) -> u64 {
    match scenario.training.task.generation_batches {
        0 => scenario.training.accumulation,
        batches => batches,
    }
}

/// Whether a reference model is kept for the KL term; GRPO keeps none by default.
fn follows(task: &Task) -> bool {
    let auto = task.objective == Objective::Grpo && task.reference == Reference::Auto;
    task.reference != Reference::None && !auto
}

/// How strongly they are.
pub(super) fn beta(scenario: &Scenario) -> f64 {
    if follows(&scenario.training.task) {
        0.04
    } else {
        0.0
    }
}

/// A problem with the model beside the trained one, where a target switches adapters off, and without any loads the model once
/// more in the type of its weights: `loads`.
pub(super) fn reference(scenario: &Scenario, loads: ReferenceDtype) -> Option<Problem> {
    let training = &scenario.training;
    let task = &training.task;
    let groups = matches!(task.objective, Objective::Grpo | Objective::Rloo);
    if groups && !follows(task) {
        return None;
    }
    let adapters = training.lora.is_some();
    let copied = !adapters && matches!(task.reference, Reference::Copy | Reference::Auto);
    let off = adapters && matches!(task.reference, Reference::AdaptersOff | Reference::Auto);
    if !task.objective.refers() || off {
        return None;
    }
    if !copied {
        let expected = "auto: this target switches adapters off, and copies a model that has none";
        let problem = Problem::new("task.reference", task.reference.id(), expected);
        return Some(problem);
    }
    copy_type(scenario, loads)
}

/// A problem where a copy of the model is of another type than the one that a target loads it in.
pub(super) fn copy_type(scenario: &Scenario, loads: ReferenceDtype) -> Option<Problem> {
    let training = &scenario.training;
    let given = training.task.reference_type;
    let weights = match training.precision {
        Precision::Fp32 | Precision::AmpBf16 | Precision::AmpFp16 => ReferenceDtype::Fp32,
        Precision::Bf16 | Precision::AmpBf16OnBf16 => ReferenceDtype::Bf16,
        Precision::Fp16 | Precision::AmpFp16OnFp16 | Precision::Fp64 => ReferenceDtype::Same,
    };
    let resolved = |of: ReferenceDtype| {
        if of == ReferenceDtype::Same {
            weights
        } else {
            of
        }
    };
    let wrong = resolved(given) != resolved(loads);
    wrong.then(|| {
        let expected = format!("{}, in which this target loads the reference", loads.id());
        Problem::new("task.reference_type", given.id(), expected)
    })
}
