//! The error's numbers and the step alone. They prove little: too large a run, one long batch and a leak look alike.

use super::Reading;
use crate::doctor::{Cause, Failure, Findings, Source};
use headroom_base::units::Bytes;

/// A large request, as a share of the GPU.
const LARGE: f64 = 0.4;

/// The smallest part of the GPU that a request of one batch's largest tensors is.
const NOTICEABLE: f64 = 0.09;

pub(super) fn read(failure: &Failure, findings: &Findings) -> Option<Reading> {
    let (Some(tried), Some(free)) = (failure.tried, failure.free) else {
        return None;
    };
    let total = failure.total?;
    let step = findings.moment.step;
    // A whole epoch ran, whatever the step in this one.
    let late = step.is_some_and(|step| step >= 10) || epochs_ran(findings) > 0;
    if late && let Some(reading) = on_a_round_step(findings) {
        return Some(reading);
    }
    let holes = failure.unallocated.unwrap_or_default();
    let room = free + holes;
    let expandable = failure.expandable || findings.signs.expandable;
    if failure.is_fragmented() && room >= tried.scale(1.3) && !expandable {
        let reserved = failure.reserved().unwrap_or_default();
        return Some(Reading::new(
            format!(
                "{holes} of {reserved} reserved is unallocated, more than batches of one shape leave; with {free} free, \
                 that exceeds the request of {tried}."
            ),
            &[
                (Cause::Fragmentation, 0.68),
                (Cause::Outlier, 0.12),
                (Cause::Leak, 0.1),
                (Cause::Capacity, 0.06),
            ],
        ));
    }
    if late {
        return Some(after_many_steps(failure, findings, tried, room));
    }
    if tried > total.scale(LARGE) {
        return Some(Reading::new(
            format!(
                "One request of {tried} is a large part of the GPU's {total}: a batch or a tensor that is larger than intended."
            ),
            &[
                (Cause::Outlier, 0.38),
                (Cause::Evaluation, 0.25),
                (Cause::Capacity, 0.22),
                (Cause::Attention, 0.1),
            ],
        ));
    }
    if step.is_some_and(|step| step >= 2) {
        let fits = room >= tried.scale(1.3);
        let (holes, batch) = if fits { (0.5, 0.28) } else { (0.15, 0.5) };
        return Some(Reading::new(
            format!(
                "It happened at step {}, too early for most leaks and scheduled events.",
                step.unwrap_or(0)
            ),
            &[
                (Cause::Fragmentation, holes),
                (Cause::Outlier, batch),
                (Cause::Capacity, 0.15),
                (Cause::Leak, 0.1),
            ],
        ));
    }
    Some(at_the_start(failure, findings, tried, total))
}

/// The first step or two, or an unknown one.
fn at_the_start(failure: &Failure, findings: &Findings, tried: Bytes, total: Bytes) -> Reading {
    let (reason, sure): (String, f64) = match (findings.moment.step, failure.reserved()) {
        (Some(step), _) => (
            format!("It happened at step {step}: too early for a leak."),
            0.72,
        ),
        (None, Some(reserved)) => (
            format!("This process held {reserved} of {total}, and {tried} more did not fit."),
            0.56,
        ),
        (None, None) => (
            format!("A request of {tried} did not fit on a GPU of {total}."),
            0.45,
        ),
    };
    let sure = if findings.signs.in_training() {
        sure.max(0.7)
    } else {
        sure
    };
    // A hole of the request's size is not enough, but many are a sign.
    let holes = failure.unallocated.unwrap_or_default();
    let (evaluation, fragmentation) = if holes > tried {
        (0.05, 0.1)
    } else {
        (0.08, 0.05)
    };
    Reading::new(
        reason,
        &[
            (Cause::Capacity, sure),
            (Cause::Outlier, 0.14),
            (Cause::Evaluation, evaluation),
            (Cause::Fragmentation, fragmentation),
        ],
    )
}

/// How many epochs ran before this one, as far as the log says; logs count from 0 or 1.
fn epochs_ran(findings: &Findings) -> u64 {
    findings.moment.epoch.unwrap_or(0).saturating_sub(1)
}

/// A step at which scheduled events happen, unless the log names only such steps or the traceback ends in training.
fn on_a_round_step(findings: &Findings) -> Option<Reading> {
    let moment = &findings.moment;
    let step = moment.step.filter(|step| *step >= 10 || is_round(*step))?;
    if moment.logged_every.is_some() || findings.signs.in_training() {
        return None;
    }
    if moment.by_bar && step.is_multiple_of(50) {
        return Some(Reading::new(
            format!("Step {step} is a round number, as for evaluations and saves."),
            &[
                (Cause::Checkpoint, 0.46),
                (Cause::Evaluation, 0.28),
                (Cause::Fragmentation, 0.14),
            ],
        ));
    }
    is_round(step).then(|| {
        Reading::new(
            format!(
                "Step {step} is at or next to a round number, as for scheduled events: an evaluation, a save, another loss."
            ),
            &[
                (Cause::Schedule, 0.58),
                (Cause::Evaluation, 0.18),
                (Cause::Leak, 0.12),
                (Cause::Outlier, 0.08),
            ],
        )
    })
}

/// Typical batches fit, so this one was larger, or something accumulated.
fn after_many_steps(failure: &Failure, findings: &Findings, tried: Bytes, room: Bytes) -> Reading {
    let usable = failure.usable().or(failure.total).unwrap_or_default();
    let ran = match (epochs_ran(findings), findings.moment.step) {
        (0, Some(step)) => format!("{step} steps ran before it: a typical batch fits."),
        (epochs, _) => format!("{epochs} epochs ran before it: a typical batch fits."),
    };
    // Where memory accumulates, the request that fails is one like all others.
    if room < tried.scale(1.1) && tried > usable.scale(NOTICEABLE) {
        return Reading::new(
            format!(
                "{ran} The remaining {room} hardly holds {tried}, even if contiguous: this batch is larger than the others."
            ),
            &[
                (Cause::Outlier, 0.66),
                (Cause::Leak, 0.14),
                (Cause::Schedule, 0.1),
                (Cause::Fragmentation, 0.06),
            ],
        );
    }
    let (leak, outlier) = if tried > usable.scale(0.05) {
        (0.52, 0.2)
    } else {
        (0.4, 0.36)
    };
    Reading::new(
        format!("{ran} The numbers fit a leak, a longer batch or a scheduled change."),
        &[
            (Cause::Leak, leak),
            (Cause::Outlier, outlier),
            (Cause::Schedule, 0.12),
            (Cause::Fragmentation, 0.08),
        ],
    )
}

/// An error that says only that memory ran out.
pub(super) fn without_numbers(findings: &Findings) -> Reading {
    let source = findings.failure.as_ref().map(|failure| failure.source);
    match findings.moment.step {
        Some(step) if step >= 1000 => Reading::new(
            format!("{step} steps ran before it: memory grows, or a batch was longer."),
            &[
                (Cause::Leak, 0.46),
                (Cause::Outlier, 0.28),
                (Cause::Fragmentation, 0.14),
            ],
        ),
        Some(step) if step >= 10 => Reading::new(
            format!("{step} steps ran before it: a typical batch fits."),
            &[
                (Cause::Outlier, 0.46),
                (Cause::Leak, 0.25),
                (Cause::Schedule, 0.15),
            ],
        ),
        _ if source == Some(Source::Driver) => Reading::new(
            "The request failed in the driver, outside PyTorch's allocator, which would have printed numbers: the GPU was \
             full when a context, a library or a kernel was loaded.",
            &[
                (Cause::OtherProcess, 0.48),
                (Cause::WrongDevice, 0.25),
                (Cause::Capacity, 0.13),
                (Cause::Evaluation, 0.08),
            ],
        ),
        _ if findings.signs.loading => Reading::new(
            "It happened while a model was loaded, and the error has no numbers: the model is too large, or all ranks use one GPU.",
            &[
                (Cause::WrongDevice, 0.4),
                (Cause::Capacity, 0.35),
                (Cause::Checkpoint, 0.12),
            ],
        ),
        _ => Reading::new(
            "The text says only that memory ran out, not how much or when.",
            &[
                (Cause::Capacity, 0.4),
                (Cause::Unknown, 0.2),
                (Cause::WrongDevice, 0.14),
                (Cause::OtherProcess, 0.1),
            ],
        ),
    }
}

/// Whether scheduled events fall on a step: a multiple of ten, the step before one, or just after a multiple of fifty.
pub(super) fn is_round(step: u64) -> bool {
    step >= 9
        && (step.is_multiple_of(10) || step.saturating_add(1).is_multiple_of(10) || step % 50 <= 2)
}

/// Further evidence in the numbers, whatever the cause.
pub(super) fn notes(failure: &Failure, findings: &Findings) -> Vec<String> {
    let mut notes = Vec::new();
    if let (Some(holes), Some(reserved)) = (failure.unallocated, failure.reserved())
        && reserved.get() > 0
        && failure.source == Source::Allocator
    {
        let share = 100.0 * holes.get() as f64 / reserved.get() as f64;
        notes.push(format!(
            "{holes} of {reserved} reserved is unallocated ({share:.0} %)."
        ));
    }
    if failure.expandable {
        notes.push(
            "Expandable segments are on: fully free pages were released before this failure."
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
    if let (Some((_, peak)), Some(needed), Some(_)) = (peak, failure.needed(), failure.tried)
        && peak >= needed
    {
        notes.push(format!(
            "An earlier peak of {peak} exceeds the {needed} with this request: the run did fit before."
        ));
    }
    notes
}
