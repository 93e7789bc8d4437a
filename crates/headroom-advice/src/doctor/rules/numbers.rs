//! The numbers of the error alone, and the step. They tell little: capacity, one long batch and a leak look alike in them.

use super::Reading;
use crate::doctor::{Cause, Failure, Findings, Source};

/// The share of reserved memory that batches of one shape leave unallocated at most.
const ONE_SHAPE_LEAVES: f64 = 0.15;
/// One request that is this much of the card.
const LARGE: f64 = 0.4;

pub(super) fn read(failure: &Failure, findings: &Findings) -> Option<Reading> {
    let step = findings.moment.step;
    let (Some(tried), Some(free)) = (failure.tried, failure.free) else {
        return None;
    };
    let total = failure.total?;
    let holes = failure.unallocated.unwrap_or_default();
    let reserved = failure.reserved().unwrap_or_default();
    let room = free + holes;
    let varied = holes > reserved.scale(ONE_SHAPE_LEAVES);
    let late = step.filter(|step| *step >= 10);
    if findings.moment.by_bar && late.is_some_and(|step| step.is_multiple_of(50)) {
        return Some(Reading::new(
            format!(
                "Step {} is round, as evaluations and saves are.",
                step.unwrap_or(0)
            ),
            &[
                (Cause::Checkpoint, 0.4),
                (Cause::Evaluation, 0.3),
                (Cause::Fragmentation, 0.15),
            ],
        ));
    }
    if late.is_some_and(is_round) {
        return Some(Reading::new(
            format!(
                "Step {} is at or just beside a round number, as schedules are: an evaluation, a save, another loss.",
                step.unwrap_or(0)
            ),
            &[
                (Cause::Schedule, 0.3),
                (Cause::Evaluation, 0.28),
                (Cause::Leak, 0.16),
                (Cause::Outlier, 0.14),
            ],
        ));
    }
    if varied && room >= tried.scale(1.3) && !failure.expandable {
        return Some(Reading::new(
            format!(
                "{holes} of {reserved} reserved are unallocated, more than batches of one shape leave, and with {free} free they \
                 exceed the request of {tried}."
            ),
            &[
                (Cause::Fragmentation, 0.6),
                (Cause::Outlier, 0.15),
                (Cause::Leak, 0.1),
                (Cause::Capacity, 0.1),
            ],
        ));
    }
    if tried > total.scale(LARGE) {
        return Some(Reading::new(
            format!(
                "One request of {tried} is a large part of the GPU's {total}: a batch or a tensor that was not meant to be so large."
            ),
            &[
                (Cause::Outlier, 0.38),
                (Cause::Capacity, 0.25),
                (Cause::Attention, 0.15),
                (Cause::Evaluation, 0.14),
            ],
        ));
    }
    if let Some(step) = late {
        let ran = format!("{step} steps ran before it: the usual batch fits.");
        return Some(if room < tried.scale(1.1) {
            Reading::new(
                format!("{ran} Even whole, the {room} that were left do not hold {tried}."),
                &[
                    (Cause::Outlier, 0.45),
                    (Cause::Leak, 0.22),
                    (Cause::Schedule, 0.16),
                    (Cause::Evaluation, 0.1),
                ],
            )
        } else {
            Reading::new(
                format!(
                    "{ran} Something may be kept from step to step: these numbers fit that, a longer batch and a schedule."
                ),
                &[
                    (Cause::Leak, 0.38),
                    (Cause::Outlier, 0.28),
                    (Cause::Schedule, 0.14),
                    (Cause::Fragmentation, 0.12),
                ],
            )
        });
    }
    if step.is_some_and(|step| step >= 2) {
        let fits = room >= tried;
        let (holes, batch) = if fits { (0.42, 0.3) } else { (0.15, 0.5) };
        return Some(Reading::new(
            format!(
                "It happened at step {}, too early for most leaks and schedules.",
                step.unwrap_or(0)
            ),
            &[
                (Cause::Fragmentation, holes),
                (Cause::Outlier, batch),
                (Cause::Capacity, 0.18),
                (Cause::Leak, 0.08),
            ],
        ));
    }
    let reason = match step {
        Some(step) => {
            format!("It happened at step {step}: nothing had time to accumulate or change.")
        }
        None => format!(
            "{reserved} of {total} were held by this process, and {tried} more did not fit."
        ),
    };
    Some(Reading::new(
        reason,
        &[
            (Cause::Capacity, 0.5),
            (Cause::Outlier, 0.15),
            (Cause::Evaluation, 0.1),
            (Cause::Fragmentation, 0.08),
        ],
    ))
}

/// An error that says no more than that memory ran out.
pub(super) fn bare(findings: &Findings) -> Reading {
    let source = findings.failure.as_ref().map(|failure| failure.source);
    match findings.moment.step {
        Some(step) if step >= 1000 => Reading::new(
            format!("{step} steps ran before it: something grows, or a long batch came."),
            &[
                (Cause::Leak, 0.4),
                (Cause::Outlier, 0.3),
                (Cause::Fragmentation, 0.15),
            ],
        ),
        Some(step) if step >= 10 => Reading::new(
            format!("{step} steps ran before it: the usual batch fits."),
            &[
                (Cause::Outlier, 0.42),
                (Cause::Leak, 0.25),
                (Cause::Schedule, 0.15),
            ],
        ),
        _ if source == Some(Source::Driver) => Reading::new(
            "The request failed in the driver, outside PyTorch's allocator, which would have printed numbers: the GPU was full \
             when a context, a library or a kernel was loaded.",
            &[
                (Cause::OtherProcess, 0.4),
                (Cause::WrongDevice, 0.28),
                (Cause::Capacity, 0.15),
                (Cause::Evaluation, 0.08),
            ],
        ),
        _ if findings.signs.loading => Reading::new(
            "It happened while a model was loaded, and the error has no numbers: too large a model, or all ranks on one GPU.",
            &[
                (Cause::WrongDevice, 0.4),
                (Cause::Capacity, 0.35),
                (Cause::Checkpoint, 0.12),
            ],
        ),
        _ => Reading::new(
            "The text says that memory ran out, and nothing of how much or when.",
            &[
                (Cause::Capacity, 0.4),
                (Cause::Unknown, 0.2),
                (Cause::WrongDevice, 0.14),
                (Cause::OtherProcess, 0.1),
            ],
        ),
    }
}

/// Whether a step is where schedules put their events: at a multiple of ten, just before one, or just after one of fifty.
pub(super) fn is_round(step: u64) -> bool {
    step >= 9
        && (step.is_multiple_of(10) || step.saturating_add(1).is_multiple_of(10) || step % 50 <= 2)
}

/// What else the numbers say, whatever the cause.
pub(super) fn notes(failure: &Failure, findings: &Findings) -> Vec<String> {
    let mut notes = Vec::new();
    if let (Some(holes), Some(reserved)) = (failure.unallocated, failure.reserved())
        && reserved.get() > 0
        && failure.source == Source::Allocator
    {
        let share = 100.0 * holes.get() as f64 / reserved.get() as f64;
        notes.push(format!(
            "{holes} of {reserved} reserved are unallocated ({share:.0} %)."
        ));
    }
    if failure.expandable {
        notes.push(
            "Expandable segments are on: whole free pages were released before this failure."
                .into(),
        );
    }
    if let Some(pools) = failure.private_pools.filter(|pools| pools.get() > 0) {
        notes.push(format!(
            "CUDA graphs keep {pools} of the reserved memory in private pools."
        ));
    }
    let peak = findings
        .summary
        .as_ref()
        .and_then(|summary| summary.allocated);
    if let (Some((_, peak)), Some(allocated), Some(tried)) =
        (peak, failure.allocated, failure.tried)
        && peak >= allocated + tried
    {
        notes.push(format!(
            "{peak} were allocated at an earlier peak, more than the {} with this request: the run did fit before.",
            allocated + tried
        ));
    }
    notes
}
