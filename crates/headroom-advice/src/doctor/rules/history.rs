//! The ledger of a probe log's failed step: memory between steps, its growth, this batch's need, other processes. The cause
//! is the term without which the step would have fit.

use super::Reading;
use crate::doctor::{Cause, Drift, Failure, Findings, Log, LoggedStep};
use headroom_base::units::Bytes;

/// Smaller differences, as a share of the memory, are rounding, workspaces, a display.
const NOTICEABLE: f64 = 0.01;
/// The error of a batch's predicted need, within the sizes that ran and beyond them.
const KNOWN_SIZE: f64 = 0.03;
const LARGER_SIZE: f64 = 0.1;
/// A need this close to the available memory is undecided.
const CLOSE: f64 = 0.04;

pub(super) fn read(failure: &Failure, findings: &Findings, log: &Log) -> Option<Reading> {
    let failed = log.failed.unwrap_or_default();
    if let Some(reading) = of_phase(&failed) {
        return Some(reading);
    }
    if findings.signs.activity().is_some() && log.failed.is_none() {
        return None;
    }
    let (room, needed) = (failure.usable()?, failure.needed()?);
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
    let whole = floor + need;
    if took > noticeable + noticeable && whole <= room + took && whole + growth > room {
        return Some(Reading::new(
            format!(
                "Other processes took {took} of the GPU during the run; this step needs {whole} and would have fit otherwise."
            ),
            &[(Cause::OtherProcess, 0.92), (Cause::Unknown, 0.05)],
        ));
    }
    if growth >= noticeable && whole <= room {
        return Some(grown(log, growth, whole, room, noticeable));
    }
    let largest = ledger.largest;
    let apart = whole.max(room) - whole.min(room);
    if apart <= room.scale(CLOSE) && needed <= whole.scale(1.0 + KNOWN_SIZE) {
        let over = whole > room;
        let (too_much, holes) = if over { (0.72, 0.2) } else { (0.2, 0.72) };
        let cause = if largest {
            Cause::Outlier
        } else {
            Cause::Capacity
        };
        return Some(Reading::new(
            format!(
                "Judging by earlier steps, this one needs {whole}: too close to the {room} available to this process to \
                 tell too large a batch from fragmentation."
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
                "The failed step needed {needed}, but earlier steps of its size needed {whole}: something new started."
            ),
            &[
                (Cause::Schedule, 0.85),
                (Cause::Evaluation, 0.06),
                (Cause::Leak, 0.05),
            ],
        ));
    }
    Some(Reading::new(
        format!(
            "Judging by earlier steps, this one needs {whole}, which fits in the {room} available to this process: the \
             free memory was not contiguous."
        ),
        &[
            (Cause::Fragmentation, 0.9),
            (Cause::Outlier, 0.05),
            (Cause::Leak, 0.03),
        ],
    ))
}

/// The terms of a failed step.
struct Ledger {
    /// Allocated between the first steps.
    floor: Bytes,
    /// How much that has grown.
    growth: Bytes,
    /// The need of a batch of this size on top, judging by earlier steps.
    need: Bytes,
    /// Memory that other processes took since the log began.
    took: Bytes,
    /// No earlier batch was as large.
    largest: bool,
}

impl Ledger {
    fn of(log: &Log, failed: &LoggedStep, failure: &Failure, room: Bytes) -> Option<Self> {
        let ends: Vec<Bytes> = log.trained().map(|step| step.allocated).collect();
        log.settled().next()?;
        let quarter = ends.len().div_ceil(4);
        let floor = ends.iter().take(quarter).copied().min()?;
        // The last step's leftovers may scale with its batch; with few steps there is no other.
        let kept = if ends.len() < 4 { 1 } else { 2 };
        let last = ends.iter().rev().take(kept).copied().min()?;
        let outside = failure.total.unwrap_or_default() - room;
        let before = log.steps.iter().find_map(LoggedStep::outside_pytorch);
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

/// The step's phase in the log, and failures too early for a comparison.
fn of_phase(failed: &LoggedStep) -> Option<Reading> {
    if failed.evaluating {
        return Some(Reading::new(
            "The failed step was an evaluation or a generation.",
            &[(Cause::Evaluation, 0.95), (Cause::Leak, 0.03)],
        ));
    }
    if failed.checkpoint {
        return Some(Reading::new(
            "The failed step was reading or writing a checkpoint.",
            &[(Cause::Checkpoint, 0.95), (Cause::Capacity, 0.03)],
        ));
    }
    (failed.in_optimizer && failed.step <= 1).then(|| {
        Reading::new(
            "The first optimizer step, which allocates the optimizer states, did not fit.",
            &[(Cause::OptimizerStep, 0.85), (Cause::Capacity, 0.1)],
        )
    })
}

/// The second step: the optimizer states exist now, and the batch may be larger.
fn in_second_step(log: &Log, failed: &LoggedStep) -> Option<Reading> {
    let first = log.trained().next()?;
    if let Some((size, before)) = failed.size.zip(first.size)
        && size > 1.05 * before
    {
        return Some(Reading::new(
            format!("This batch is {size}, the previous one was {before}."),
            &[
                (Cause::Outlier, 0.7),
                (Cause::Capacity, 0.18),
                (Cause::OptimizerStep, 0.1),
            ],
        ));
    }
    let before = log.steps.iter().find(|step| step.step < 0)?.allocated;
    (first.allocated > before.scale(1.5)).then(|| {
        Reading::new(
            format!(
                "{} stayed allocated after the first step, {before} before it: the optimizer states are allocated now, \
                 and the second step no longer fits.",
                first.allocated
            ),
            &[(Cause::OptimizerStep, 0.7), (Cause::Capacity, 0.22)],
        )
    })
}

/// Growth of memory between steps, without which the step would have fit.
fn grown(log: &Log, growth: Bytes, whole: Bytes, room: Bytes, noticeable: Bytes) -> Reading {
    let jump = matches!(log.drift(noticeable), Drift::Jump { .. });
    if jump && log.rises(noticeable) < 2 {
        return Reading::new(
            format!(
                "Memory between steps jumped by {growth} and stayed there; without that this step needs {whole} of {room}."
            ),
            &[(Cause::Schedule, 0.75), (Cause::Leak, 0.18)],
        );
    }
    Reading::new(
        format!(
            "Memory between steps grew by {growth}; without that this step needs {whole} of {room}, and fits."
        ),
        &[(Cause::Leak, 0.9), (Cause::Schedule, 0.06)],
    )
}

/// A step that does not fit, even without growth.
fn too_large(log: &Log, failed: &LoggedStep, whole: Bytes, room: Bytes, largest: bool) -> Reading {
    let sizes = log.sizes();
    let Some(((_, before), size)) = sizes.zip(failed.size).filter(|_| largest) else {
        return Reading::new(
            format!(
                "Judging by earlier steps, this one needs {whole}, more than the {room} available to this process."
            ),
            &[
                (Cause::Capacity, 0.72),
                (Cause::Outlier, 0.16),
                (Cause::Fragmentation, 0.08),
            ],
        );
    };
    let reason = format!(
        "This batch is {size}, the largest before was {before}: it needs {whole}, more than the {room} available to this \
         process."
    );
    let constant = sizes.is_some_and(|(low, high)| low >= high) && log.settled().count() >= 10;
    let multiple = size / before.max(1.0);
    let doubled = (multiple - multiple.round()).abs() < 1e-9;
    if constant && doubled && super::numbers::is_round(failed.step.unsigned_abs()) {
        return Reading::new(
            format!(
                "{reason} All earlier batches had the same size: a schedule may have changed it."
            ),
            &[(Cause::Schedule, 0.55), (Cause::Outlier, 0.38)],
        );
    }
    Reading::new(
        reason,
        &[
            (Cause::Outlier, 0.9),
            (Cause::Schedule, 0.05),
            (Cause::Capacity, 0.03),
        ],
    )
}
