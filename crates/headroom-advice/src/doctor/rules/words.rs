//! What the program was doing when the error occurred, from its traceback and logs.

use super::{Reading, scenario};
use crate::doctor::activity::Activity;
use crate::doctor::{Cause, Failure, Findings, PredictedUsage, Signs, Source};
use headroom_base::units::Bytes;
use headroom_catalog as catalog;

pub(super) fn read(
    failure: &Failure,
    findings: &Findings,
    expected: Option<PredictedUsage>,
) -> Option<Reading> {
    let signs = &findings.signs;
    if findings.moment.no_batch_fits {
        return Some(Reading::new(
            "A batch-size finder tried every size down to one sample, and none fit.",
            &[(Cause::Capacity, 0.85), (Cause::OtherProcess, 0.1)],
        ));
    }
    let phase = signs.activity().filter(|activity| {
        signs.traced && matches!(activity, Activity::Evaluation | Activity::Checkpoint)
    });
    if signs.growing && findings.log.is_none() && phase.is_none() {
        return Some(Reading::new(
            "The text says that memory grew while the program ran.",
            &[
                (Cause::Leak, 0.75),
                (Cause::Outlier, 0.1),
                (Cause::Evaluation, 0.06),
            ],
        ));
    }
    if signs.sampler {
        return Some(Reading::new(
            "vLLM failed to allocate its share of the training GPU: its weights, KV cache and profiling run must fit into \
             gpu_memory_utilization, and training into the rest.",
            &[
                (Cause::Capacity, 0.65),
                (Cause::OtherProcess, 0.2),
                (Cause::Fragmentation, 0.05),
            ],
        ));
    }
    if let Some(reading) = spilled(failure, signs) {
        return Some(reading);
    }
    // If the text does not give the GPU's size, the largest GPU is an upper bound.
    let largest = || {
        catalog::gpus()
            .iter()
            .map(|gpu| Bytes::gib(f64::from(gpu.memory.marketing_gb)))
            .max()
    };
    if let (Some(tried), Some(total)) = (failure.tried, failure.total.or_else(largest))
        && tried > total
        && failure.source == Source::Allocator
    {
        if failure
            .reserved()
            .is_some_and(|reserved| reserved.get() == 0)
        {
            return Some(Reading::new(
                format!("A first request of {tried} on a GPU that reports {total}."),
                &[
                    (Cause::LibraryBug, 0.45),
                    (Cause::Capacity, 0.35),
                    (Cause::Unknown, 0.1),
                ],
            ));
        }
        let scheduled =
            expected.and_then(|expected| scenario::event(findings.moment.step, expected));
        let evaluates = signs.activity() == Some(Activity::Evaluation)
            || scheduled.is_some_and(|(_, cause)| cause == Cause::Evaluation);
        let (attention, evaluation) = if evaluates { (0.2, 0.6) } else { (0.6, 0.12) };
        return Some(Reading::new(
            format!(
                "One request of {tried} exceeds the whole GPU: a tensor quadratic in the sequence length or in the \
                 pixels, or everything in one batch."
            ),
            &[
                (Cause::Attention, attention),
                (Cause::Outlier, 0.18),
                (Cause::Evaluation, evaluation),
            ],
        ));
    }
    let activity = signs.activity()?;
    let (reason, shares) = of_activity(activity, failure, findings);
    Some(Reading::new(reason, &shares))
}

/// More is allocated than the GPU has, as Windows allows: it lends the host's memory.
fn spilled(failure: &Failure, signs: &Signs) -> Option<Reading> {
    let (allocated, total) = (failure.allocated?, failure.total?);
    let numbered = failure.source == Source::Allocator && signs.activity().is_none();
    (numbered && total > Bytes::ZERO && allocated > total).then(|| {
        Reading::new(
            format!(
                "{allocated} is allocated on a GPU of {total}: the driver already lent the host's memory, as Windows does, and \
                 that is exhausted too."
            ),
            &[
                (Cause::Capacity, 0.6),
                (Cause::Evaluation, 0.15),
                (Cause::Outlier, 0.12),
            ],
        )
    })
}

/// What the program was doing, and the causes that this makes likely.
fn of_activity(
    activity: Activity,
    failure: &Failure,
    findings: &Findings,
) -> (&'static str, Vec<(Cause, f64)>) {
    let signs = &findings.signs;
    // A traceback ends at the failure; a keyword may be older.
    let sure = if signs.traced { 0.92 } else { 0.86 };
    match activity {
        Activity::Evaluation => (
            "It happened during an evaluation or a generation, not in a training step.",
            with_others(Cause::Evaluation, sure, signs),
        ),
        Activity::Checkpoint => (
            "It happened while a checkpoint was written or read.",
            with_others(Cause::Checkpoint, sure, signs),
        ),
        Activity::OptimizerStep => (
            "It happened in the optimizer, which allocates its states in the first step.",
            with_others(Cause::OptimizerStep, sure, signs),
        ),
        Activity::Logits => (
            "It happened in the logits or their loss: batch × length × vocabulary numbers, of which the loss keeps several \
             copies, mostly in 4 bytes.",
            vec![
                (Cause::Logits, 0.62),
                (Cause::Capacity, 0.2),
                (Cause::Outlier, 0.12),
            ],
        ),
        Activity::Boxes => (
            "It happened where all boxes of an image are compared with all anchors: an image with many boxes needs far more \
             than the others.",
            vec![
                (Cause::Outlier, 0.65),
                (Cause::Capacity, 0.22),
                (Cause::Leak, 0.05),
            ],
        ),
        Activity::Attention if is_large(failure) => (
            "It happened where queries are multiplied with keys: a tensor quadratic in the sequence length or in the pixels.",
            vec![
                (Cause::Attention, 0.6),
                (Cause::Capacity, 0.2),
                (Cause::Outlier, 0.12),
            ],
        ),
        Activity::Attention => (
            "It happened in attention, with a request that is a small part of the GPU: the GPU was full before.",
            vec![
                (Cause::Capacity, 0.6),
                (Cause::Attention, 0.15),
                (Cause::Outlier, 0.12),
            ],
        ),
        Activity::Loading if failure.tried.is_none() && !signs.traced => (
            "It happened while a model was loaded, and the error has no numbers: the model is too large, or all ranks use one \
             GPU.",
            vec![
                (Cause::WrongDevice, 0.42),
                (Cause::Capacity, 0.38),
                (Cause::Checkpoint, 0.1),
            ],
        ),
        Activity::Loading | Activity::Training => (
            "It happened while a model was built or its weights were loaded: they alone fill the GPU, or all ranks use one.",
            vec![
                (Cause::Capacity, 0.62),
                (Cause::WrongDevice, 0.18),
                (Cause::OtherProcess, 0.1),
            ],
        ),
    }
}

/// Whether the request is a noticeable part of the GPU; without numbers it may be.
fn is_large(failure: &Failure) -> bool {
    const NOTICEABLE: f64 = 0.08;
    match (failure.tried, failure.total) {
        (Some(tried), Some(total)) => tried > total.scale(NOTICEABLE),
        _ => true,
    }
}

/// The cause of an activity, then those of the others that the text names.
fn with_others(cause: Cause, sure: f64, signs: &Signs) -> Vec<(Cause, f64)> {
    let mut shares = vec![(cause, sure)];
    let others = signs
        .activities
        .iter()
        .skip(1)
        .filter_map(|other| match other {
            Activity::Evaluation => Some(Cause::Evaluation),
            Activity::Checkpoint => Some(Cause::Checkpoint),
            Activity::OptimizerStep => Some(Cause::OptimizerStep),
            Activity::Logits => Some(Cause::Logits),
            _ => None,
        });
    let others = others.chain([Cause::Capacity, Cause::WrongDevice, Cause::Unknown]);
    shares.extend(others.zip([0.04, 0.02, 0.01]));
    shares
}
