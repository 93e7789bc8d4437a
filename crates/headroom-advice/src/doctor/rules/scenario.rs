//! What the scenario predicts against what ran: the same steps with the memory this process could have had.

use super::Reading;
use crate::doctor::{Cause, Expectation, Failure, Findings, Uneven};
use headroom_base::units::Bytes;

/// What a prediction may be off.
const ROUNDING: f64 = 1.02;
/// The share of reserved memory that batches of one shape leave unallocated when they fail, in recorded runs of the real
/// allocator. More than that comes from varying shapes.
const ONE_SHAPE_LEAVES: f64 = 0.15;

pub(super) fn read(
    failure: &Failure,
    findings: &Findings,
    expected: Expectation,
) -> Option<Reading> {
    let (usable, allocated) = (failure.usable()?, failure.allocated?);
    let needed = allocated + failure.tried.unwrap_or_default();
    let peak = expected.peak;
    let others: Bytes = failure.processes.iter().map(|process| process.1).sum();
    let step = findings.moment.step;
    if peak > usable && peak <= usable + others {
        return Some(Reading::new(
            format!(
                "The scenario's peak of {peak} fits the GPU, but not the {usable} that other processes left."
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

/// The stages of a pipeline that need more and less.
pub(super) fn uneven(stages: Uneven) -> String {
    let Uneven {
        stage,
        count,
        most,
        least,
    } = stages;
    format!(
        "Stage {stage} of the scenario's {count} is the fullest, with {most}; another needs {least}."
    )
}

/// The clean run needs more than there was.
fn does_not_fit(failure: &Failure, step: Option<u64>, peak: Bytes, usable: Bytes) -> Reading {
    let reason = format!(
        "The scenario needs {peak} at its peak; this process could have had {usable} at most."
    );
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
    let varied = holes > reserved.scale(ONE_SHAPE_LEAVES);
    if varied && failure.tried.is_some_and(|tried| room > tried) {
        return Reading::new(
            format!(
                "{reason} Steps before it ran, and {holes} of {reserved} reserved lie unallocated: more than batches of one shape leave."
            ),
            &[
                (Cause::Fragmentation, 0.5),
                (Cause::Outlier, 0.35),
                (Cause::Capacity, 0.1),
            ],
        );
    }
    Reading::new(
        format!("{reason} Steps before it ran: a larger batch came."),
        &[
            (Cause::Outlier, 0.68),
            (Cause::Capacity, 0.15),
            (Cause::Schedule, 0.08),
        ],
    )
}

/// More was alive than the scenario explains.
fn unexplained(step: Option<u64>, expected: Expectation, needed: Bytes) -> Reading {
    let reason = format!(
        "{needed} would have been allocated, but the scenario explains only {}: something else is alive that it does not \
         contain, or another scenario ran.",
        expected.peak
    );
    if let Some(event) = event(step, expected) {
        return Reading::new(
            format!("{reason} At this step the scenario has its {}.", event.0),
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

/// The clean run fits, and no more than it needs was asked for.
fn fits(step: Option<u64>, expected: Expectation, usable: Bytes) -> Reading {
    let reason = format!(
        "The scenario's peak of {} fits in the {usable} that this process could have had, and no more than that was asked for",
        expected.peak
    );
    if let Some(event) = event(step, expected) {
        return Reading::new(
            format!("{reason}; at this step the scenario has its {}.", event.0),
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
                "{reason}. Replayed with that much, {} of its steps run without a retry, if in another order: fragmentation is not certain.",
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
                "{reason}. Replayed with that much, its steps fail too: the free memory is fragmented."
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

/// The scenario's evaluation or save at this step. Steps are counted from 0, events after so many of them.
fn event(step: Option<u64>, expected: Expectation) -> Option<(&'static str, Cause)> {
    let comes = |every: u64| every > 0 && step.is_some_and(|step| (step + 1).is_multiple_of(every));
    if comes(expected.eval_every) {
        return Some(("evaluation", Cause::Evaluation));
    }
    comes(expected.save_every).then_some(("save", Cause::Checkpoint))
}
