//! Compares the failure with the scenario's prediction.

use super::Reading;
use crate::doctor::{Cause, Failure, Findings, PredictedUsage, StageImbalance};
use headroom_base::units::Bytes;

/// The tolerance of a prediction.
const ROUNDING: f64 = 1.02;
pub(super) fn read(
    failure: &Failure,
    findings: &Findings,
    expected: PredictedUsage,
) -> Option<Reading> {
    let (usable, needed) = (failure.usable()?, failure.needed()?);
    let peak = expected.peak;
    let others = failure.listed();
    let step = findings.moment.step;
    if peak > usable && peak <= usable + others {
        return Some(Reading::new(
            format!(
                "The scenario's peak of {peak} fits the GPU, but not the {usable} that other processes left free."
            ),
            &[(Cause::OtherProcess, 0.75), (Cause::Capacity, 0.15)],
        ));
    }
    if peak > usable {
        return Some(does_not_fit(failure, step, peak, usable));
    }
    if needed > peak.scale(ROUNDING) {
        return Some(unexplained(step, expected, needed));
    }
    Some(fits(step, expected, usable))
}

/// Names the fullest stage of a pipeline.
pub(super) fn uneven(stages: StageImbalance) -> String {
    let StageImbalance {
        stage,
        count,
        most,
        least,
    } = stages;
    format!(
        "Stage {stage} of the scenario's {count} is the fullest with {most}; the emptiest needs {least}."
    )
}

/// The scenario does not fit.
fn does_not_fit(failure: &Failure, step: Option<u64>, peak: Bytes, usable: Bytes) -> Reading {
    let reason =
        format!("The scenario's peak is {peak}; at most {usable} was available to this process.");
    if step.is_none_or(|step| step <= 1) {
        return Reading::new(
            reason,
            &[
                (Cause::Capacity, 0.78),
                (Cause::Outlier, 0.1),
                (Cause::OptimizerStep, 0.06),
            ],
        );
    }
    let holes = failure.unallocated.unwrap_or_default();
    let reserved = failure.reserved().unwrap_or_default();
    let room = holes + failure.free.unwrap_or_default();
    if failure.is_fragmented() && failure.tried.is_some_and(|tried| room > tried) {
        return Reading::new(
            format!(
                "{reason} Earlier steps ran, and {holes} of {reserved} reserved is unallocated: more than batches of one shape leave."
            ),
            &[
                (Cause::Fragmentation, 0.5),
                (Cause::Outlier, 0.35),
                (Cause::Capacity, 0.1),
            ],
        );
    }
    Reading::new(
        format!("{reason} Earlier steps ran: this batch was larger."),
        &[
            (Cause::Outlier, 0.68),
            (Cause::Capacity, 0.15),
            (Cause::Schedule, 0.08),
        ],
    )
}

/// More was allocated than the scenario explains.
fn unexplained(step: Option<u64>, expected: PredictedUsage, needed: Bytes) -> Reading {
    let reason = format!(
        "The process needed {needed}, but the scenario explains only {}: something else is allocated, or the run had \
         other settings.",
        expected.peak
    );
    if let Some(event) = event(step, expected) {
        return Reading::new(
            format!(
                "{reason} The scenario schedules its {} at this step.",
                event.0
            ),
            &[(event.1, 0.68), (Cause::Leak, 0.15), (Cause::Unknown, 0.08)],
        );
    }
    let shares: &[(Cause, f64)] = match step {
        Some(0) => &[
            (Cause::Checkpoint, 0.4),
            (Cause::Unknown, 0.25),
            (Cause::Capacity, 0.2),
        ],
        Some(step) if super::numbers::is_round(step) => &[
            (Cause::Schedule, 0.4),
            (Cause::Leak, 0.35),
            (Cause::Evaluation, 0.15),
        ],
        _ => &[
            (Cause::Leak, 0.5),
            (Cause::Schedule, 0.25),
            (Cause::Evaluation, 0.1),
        ],
    };
    Reading::new(reason, shares)
}

/// The scenario fits, and the run needed no more than predicted.
fn fits(step: Option<u64>, expected: PredictedUsage, usable: Bytes) -> Reading {
    let reason = format!(
        "The scenario's peak of {} fits in the {usable} available to this process, and the run needed no more than that",
        expected.peak
    );
    if let Some(event) = event(step, expected) {
        return Reading::new(
            format!(
                "{reason}; the scenario schedules its {} at this step.",
                event.0
            ),
            &[
                (event.1, 0.55),
                (Cause::Fragmentation, 0.25),
                (Cause::Leak, 0.1),
            ],
        );
    }
    match expected.replayed {
        Some(replayed) if replayed.failed.is_none() && replayed.retries == 0 => Reading::new(
            format!(
                "{reason}. Replayed with that memory, {} of its steps run without a retry, though in another order: fragmentation is not certain.",
                replayed.steps
            ),
            &[
                (Cause::Fragmentation, 0.4),
                (Cause::Leak, 0.28),
                (Cause::Schedule, 0.2),
            ],
        ),
        Some(replayed) if replayed.failed.is_some() => Reading::new(
            format!(
                "{reason}. Replayed with that memory, its steps fail too: the free memory is fragmented."
            ),
            &[
                (Cause::Fragmentation, 0.8),
                (Cause::OtherProcess, 0.08),
                (Cause::Leak, 0.05),
            ],
        ),
        _ => Reading::new(
            format!("{reason}: the free memory was not contiguous."),
            &[
                (Cause::Fragmentation, 0.7),
                (Cause::Leak, 0.12),
                (Cause::Outlier, 0.08),
            ],
        ),
    }
}

/// The scenario's evaluation or save at this step. Steps are counted from 0, intervals from 1.
fn event(step: Option<u64>, expected: PredictedUsage) -> Option<(&'static str, Cause)> {
    let comes = |every: u64| every > 0 && step.is_some_and(|step| (step + 1).is_multiple_of(every));
    if comes(expected.eval_every) {
        return Some(("evaluation", Cause::Evaluation));
    }
    comes(expected.save_every).then_some(("save", Cause::Checkpoint))
}
