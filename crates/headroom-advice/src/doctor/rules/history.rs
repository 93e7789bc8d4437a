//! The ledger of a probe log's failed step: what lay there before, what had grown, what this batch needs, what others took, and
//! what is left over. The cause is the term without which the whole step would have fitted.

use super::Reading;
use crate::doctor::{Cause, Drift, Failure, Findings, Log, LoggedStep};
use headroom_base::units::Bytes;

/// Differences below this share of the memory are rounding, workspaces, a display.
const NOTICEABLE: f64 = 0.01;
/// How far a batch's need may be off, among sizes that ran and beyond them.
const KNOWN_SIZE: f64 = 0.03;
const LARGER_SIZE: f64 = 0.1;
/// Closer than this to the room there is, need and room cannot be told apart.
const CLOSE: f64 = 0.04;

pub(super) fn read(failure: &Failure, findings: &Findings, log: &Log) -> Option<Reading> {
    let failed = log.failed.unwrap_or_default();
    if let Some(reading) = of_phase(&failed) {
        return Some(reading);
    }
    if !findings.signs.activities.is_empty() && log.failed.is_none() {
        return None;
    }
    let (room, allocated) = (failure.usable()?, failure.allocated?);
    if log.settled().next().is_none() {
        return in_second_step(log, &failed);
    }
    let ledger = Ledger::of(log, &failed, failure, room)?;
    let Ledger {
        floor,
        growth,
        need,
        took,
        ..
    } = ledger;
    let noticeable = room.scale(NOTICEABLE);
    let needed = allocated + failure.tried.unwrap_or_default();
    let whole = floor + need;
    if took > noticeable + noticeable && whole <= room + took && whole + growth > room {
        return Some(Reading::new(
            format!(
                "Others took {took} of the GPU while the run went on; with it, this step needs {whole} and would have fitted."
            ),
            &[(Cause::OtherProcess, 0.85), (Cause::Unknown, 0.08)],
        ));
    }
    if growth >= noticeable && whole <= room {
        return Some(grown(log, growth, whole, room, noticeable));
    }
    let largest = ledger.largest;
    let apart = whole.max(room) - whole.min(room);
    if apart <= room.scale(CLOSE) && needed <= whole.scale(1.0 + KNOWN_SIZE) {
        let over = whole > room;
        let (too_much, holes) = if over { (0.6, 0.3) } else { (0.3, 0.6) };
        let cause = if largest {
            Cause::Outlier
        } else {
            Cause::Capacity
        };
        return Some(Reading::new(
            format!(
                "Judging by earlier steps, this one needs {whole}, too close to the {room} that this process could have had to \
                 tell a batch too large from fragmentation."
            ),
            &[(cause, too_much), (Cause::Fragmentation, holes)],
        ));
    }
    if whole > room {
        return Some(too_large(log, &failed, whole, room, largest));
    }
    let tolerance = if largest { LARGER_SIZE } else { KNOWN_SIZE };
    if needed > (whole + growth).scale(1.0 + tolerance) + noticeable {
        return Some(Reading::new(
            format!(
                "The failed step had reached {needed}, but earlier steps of its size needed {whole}: something new started."
            ),
            &[
                (Cause::Schedule, 0.75),
                (Cause::Evaluation, 0.08),
                (Cause::Leak, 0.08),
            ],
        ));
    }
    Some(Reading::new(
        format!(
            "Judging by earlier steps, this one needs {whole}, which fits in the {room} that this process could have had: the \
             free memory was not contiguous."
        ),
        &[
            (Cause::Fragmentation, 0.78),
            (Cause::Outlier, 0.08),
            (Cause::Leak, 0.05),
        ],
    ))
}

/// The terms of a failed step.
struct Ledger {
    /// Allocated between steps at first.
    floor: Bytes,
    /// What that had grown by.
    growth: Bytes,
    /// What a batch of this size needs on top, by earlier steps.
    need: Bytes,
    /// What others have taken since the log began.
    took: Bytes,
    /// No batch before was as large.
    largest: bool,
}

impl Ledger {
    fn of(log: &Log, failed: &LoggedStep, failure: &Failure, room: Bytes) -> Option<Self> {
        let ends: Vec<Bytes> = log.trained().map(|step| step.allocated).collect();
        log.settled().next()?;
        let quarter = ends.len().div_ceil(4);
        let floor = ends.iter().take(quarter).copied().min()?;
        // What the very last step left may go with its size; of a few steps there is no other.
        let kept = if ends.len() < 4 { 1 } else { 2 };
        let last = ends.iter().rev().take(kept).copied().min()?;
        let outside = failure.total.unwrap_or_default() - room;
        let before = log.steps.iter().find_map(LoggedStep::outside_of_it);
        let largest = failed
            .size
            .zip(log.sizes())
            .is_some_and(|(size, range)| size > range.1 * 1.02);
        Some(Self {
            floor,
            growth: last - floor,
            need: log.need(failed.size)?,
            took: before.map_or(Bytes::ZERO, |before| outside - before),
            largest,
        })
    }
}

/// What the probe says the step was doing, and failures before there is anything to compare with.
fn of_phase(failed: &LoggedStep) -> Option<Reading> {
    if failed.evaluating {
        return Some(Reading::new(
            "The failed step was an evaluation or a generation.",
            &[(Cause::Evaluation, 0.9), (Cause::Leak, 0.05)],
        ));
    }
    if failed.checkpoint {
        return Some(Reading::new(
            "The failed step was reading or writing a checkpoint.",
            &[(Cause::Checkpoint, 0.9), (Cause::Capacity, 0.05)],
        ));
    }
    (failed.in_optimizer && failed.step <= 1).then(|| {
        Reading::new(
            "The first turn of the optimizer, in which it makes its states, did not fit.",
            &[(Cause::OptimizerStep, 0.75), (Cause::Capacity, 0.2)],
        )
    })
}

/// The second step, of which only the first is known: the optimizer's states lie there now, and a batch may be larger.
fn in_second_step(log: &Log, failed: &LoggedStep) -> Option<Reading> {
    let first = log.trained().next()?;
    if let Some((size, before)) = failed.size.zip(first.size)
        && size > 1.05 * before
    {
        return Some(Reading::new(
            format!("This batch is {size}, the one before was {before}."),
            &[
                (Cause::Outlier, 0.6),
                (Cause::Capacity, 0.25),
                (Cause::OptimizerStep, 0.1),
            ],
        ));
    }
    let before = log.steps.iter().find(|step| step.step < 0)?.allocated;
    (first.allocated > before.scale(1.5)).then(|| {
        Reading::new(
            format!(
                "After the first step {} stayed allocated, {before} before it: the optimizer's states are there now, and the                  second step no longer fits beside them.",
                first.allocated
            ),
            &[(Cause::OptimizerStep, 0.6), (Cause::Capacity, 0.3)],
        )
    })
}

/// Memory between steps that grew, without which the step would have fitted.
fn grown(log: &Log, growth: Bytes, whole: Bytes, room: Bytes, noticeable: Bytes) -> Reading {
    let jump = matches!(log.drift(noticeable), Drift::Jump { .. });
    if jump && log.rises(noticeable) < 2 {
        return Reading::new(
            format!(
                "Memory between steps rose by {growth} at once and stayed there; without it this step needs {whole} of {room}."
            ),
            &[(Cause::Schedule, 0.7), (Cause::Leak, 0.2)],
        );
    }
    Reading::new(
        format!(
            "Memory between steps grew by {growth}; without it this step needs {whole} of {room}, and fits."
        ),
        &[(Cause::Leak, 0.8), (Cause::Schedule, 0.12)],
    )
}

/// A step that needs more than there is, whatever lay there before.
fn too_large(log: &Log, failed: &LoggedStep, whole: Bytes, room: Bytes, largest: bool) -> Reading {
    let sizes = log.sizes();
    let Some(((_, before), size)) = sizes.zip(failed.size).filter(|_| largest) else {
        return Reading::new(
            format!(
                "Judging by earlier steps, this one needs {whole}, more than the {room} that this process could have had."
            ),
            &[
                (Cause::Capacity, 0.65),
                (Cause::Outlier, 0.2),
                (Cause::Fragmentation, 0.08),
            ],
        );
    };
    let reason = format!(
        "This batch is {size}, the largest before was {before}: it needs {whole}, more than the {room} that this process could \
         have had."
    );
    let constant = sizes.is_some_and(|(low, high)| low >= high) && log.settled().count() >= 10;
    let multiple = size / before.max(1.0);
    let doubled = (multiple - multiple.round()).abs() < 1e-9;
    if constant && doubled && super::numbers::is_round(failed.step.unsigned_abs()) {
        return Reading::new(
            format!("{reason} All before were of one size, as where a schedule changes it."),
            &[(Cause::Schedule, 0.5), (Cause::Outlier, 0.4)],
        );
    }
    Reading::new(
        reason,
        &[
            (Cause::Outlier, 0.8),
            (Cause::Schedule, 0.1),
            (Cause::Capacity, 0.05),
        ],
    )
}
