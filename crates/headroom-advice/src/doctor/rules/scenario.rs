//! Compares the failure with the scenario's prediction.

use super::Reading;
use crate::doctor::{
    Cause, Failure, Findings, MemoryLines, PredictedUsage, Recognized, StageImbalance, Trend,
};
use headroom_base::units::Bytes;

/// The tolerance of a prediction.
const ROUNDING: f64 = 1.02;

pub(super) fn read(
    failure: &Failure,
    findings: &Findings,
    expected: PredictedUsage,
) -> Option<Reading> {
    let peak = expected.peak;
    let step = findings.moment.step;
    let Some((usable, needed)) = failure.usable().zip(failure.needed()) else {
        let most = failure.usable().or(failure.total)?;
        return (peak > most).then(|| does_not_fit(failure, step, expected, most));
    };
    let others = failure.listed();
    if peak > usable && peak <= usable + others {
        return Some(Reading::new(
            format!(
                "The scenario's peak of {peak} fits the GPU, but not the {usable} that other processes left free."
            ),
            &[(Cause::OtherProcess, 0.88), (Cause::Capacity, 0.08)],
        ));
    }
    if let Some(found) = expected.recognized.filter(|found| found.clean) {
        return Some(clean(failure, step, expected, &found, usable));
    }
    if peak > usable {
        return Some(does_not_fit(failure, step, expected, usable));
    }
    if needed > peak.scale(ROUNDING) {
        return Some(unexplained(step, expected, needed));
    }
    if let Some(found) = expected.recognized {
        return Some(in_excess(step, expected, &found));
    }
    Some(fits(step, expected, usable))
}

/// Memory that the scenario says grows with every evaluation, in an epoch in which it is noticeable.
pub(super) fn grown(findings: &Findings, expected: PredictedUsage) -> Option<Reading> {
    let growing = expected.growth?;
    let full_in = growing.full_in?;
    let printed = findings.printed.as_ref().and_then(MemoryLines::trend);
    let grew = matches!(printed, Some(Trend::Growing { .. }));
    let epoch = findings.moment.epoch;
    let when = match epoch {
        Some(epoch) => format!("in epoch {epoch}"),
        None => "after its printed memory had grown all the time".into(),
    };
    let near = epoch.is_some_and(|epoch| epoch.saturating_mul(2) >= full_in);
    (near || grew).then(|| {
        Reading::new(
            format!(
                "The scenario's metrics keep {} of each epoch, because nothing resets them, and fill its GPU in epoch \
                 {full_in}; this run failed {when}.",
                growing.per_epoch
            ),
            &[
                (Cause::Leak, 0.92),
                (Cause::Evaluation, 0.04),
                (Cause::Outlier, 0.02),
            ],
        )
    })
}

/// A step of the scenario makes this request with as much allocated: nothing else was alive.
fn clean(
    failure: &Failure,
    step: Option<u64>,
    expected: PredictedUsage,
    found: &Recognized,
    usable: Bytes,
) -> Reading {
    let Recognized {
        size,
        largest,
        peak,
        op,
        ..
    } = *found;
    let tried = failure.tried.unwrap_or_default();
    let reason = format!(
        "A batch of {size} requests {tried} ({op}) with as much allocated as the error says: nothing else was alive. Its step \
         needs {peak}"
    );
    // Close to the limit, a percent decides.
    if peak <= usable && peak > usable.scale(0.96) {
        return Reading::new(
            format!(
                "{reason}: too close to the {usable} available to this process to tell too large a batch from fragmentation."
            ),
            &[
                (Cause::Fragmentation, 0.62),
                (Cause::Outlier, 0.3),
                (Cause::Capacity, 0.06),
            ],
        );
    }
    if peak <= usable {
        return Reading::new(
            format!(
                "{reason}, which fits in the {usable} available to this process: the free memory was not contiguous."
            ),
            &[
                (Cause::Fragmentation, 0.93),
                (Cause::Outlier, 0.03),
                (Cause::Capacity, 0.02),
            ],
        );
    }
    let reason = format!("{reason}, more than the {usable} available to this process");
    if size > largest.saturating_add(largest / 50) {
        return Reading::new(
            format!(
                "{reason}. The scenario's largest batch is {largest}: the data or a schedule has larger ones."
            ),
            if event(step, expected).is_some() || step.is_some_and(super::numbers::is_round) {
                &[(Cause::Schedule, 0.6), (Cause::Outlier, 0.32)]
            } else {
                &[(Cause::Outlier, 0.62), (Cause::Schedule, 0.3)]
            },
        );
    }
    if step.is_none_or(|step| step <= 1) {
        return Reading::new(
            format!("{reason}."),
            &[
                (Cause::Capacity, 0.93),
                (Cause::Outlier, 0.04),
                (Cause::OptimizerStep, 0.02),
            ],
        );
    }
    Reading::new(
        format!("{reason}. Earlier steps ran: this batch was larger."),
        &[
            (Cause::Outlier, 0.93),
            (Cause::Capacity, 0.04),
            (Cause::Fragmentation, 0.02),
        ],
    )
}

/// A step of the scenario makes this request, but with less allocated.
fn in_excess(step: Option<u64>, expected: PredictedUsage, found: &Recognized) -> Reading {
    let Recognized {
        size, excess, op, ..
    } = *found;
    let reason = format!(
        "A batch of {size} makes this request ({op}) with {excess} less allocated: something else is alive."
    );
    let every = expected.eval_every;
    if every > 0 && step.is_some_and(|step| step > 0 && step.is_multiple_of(every)) {
        return Reading::new(
            format!("{reason} The step is the first after an evaluation, which may have left it."),
            &[
                (Cause::Leak, 0.55),
                (Cause::Evaluation, 0.25),
                (Cause::Schedule, 0.12),
            ],
        );
    }
    if let Some(event) = event(step, expected) {
        return Reading::new(
            format!(
                "{reason} The scenario schedules its {} at this step.",
                event.0
            ),
            &[
                (event.1, 0.75),
                (Cause::Leak, 0.12),
                (Cause::Schedule, 0.06),
            ],
        );
    }
    if let Some(each) = found.each_step {
        return Reading::new(
            format!(
                "{reason} That is {each} for each step so far, the size of one of the step's tensors: it is kept."
            ),
            &[
                (Cause::Leak, 0.9),
                (Cause::Schedule, 0.05),
                (Cause::Evaluation, 0.04),
            ],
        );
    }
    if found.copy_of_weights {
        return Reading::new(
            format!(
                "{reason} That is the size of a copy of the weights: a moving average, a teacher, a state dict."
            ),
            &[
                (Cause::Schedule, 0.8),
                (Cause::Checkpoint, 0.1),
                (Cause::Leak, 0.06),
            ],
        );
    }
    Reading::new(reason, shares_of_the_unexplained(step))
}

/// What is alive besides the step, by when.
fn shares_of_the_unexplained(step: Option<u64>) -> &'static [(Cause, f64)] {
    match step {
        Some(0) => &[
            (Cause::Checkpoint, 0.52),
            (Cause::Unknown, 0.22),
            (Cause::Capacity, 0.2),
        ],
        Some(step) if super::numbers::is_round(step) => &[
            (Cause::Schedule, 0.55),
            (Cause::Leak, 0.28),
            (Cause::Evaluation, 0.12),
        ],
        _ => &[
            (Cause::Leak, 0.7),
            (Cause::Schedule, 0.18),
            (Cause::Evaluation, 0.06),
        ],
    }
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
fn does_not_fit(
    failure: &Failure,
    step: Option<u64>,
    expected: PredictedUsage,
    usable: Bytes,
) -> Reading {
    let reason = format!(
        "The scenario's peak is {}; at most {usable} was available to this process.",
        expected.peak
    );
    if let Some(typical) = expected.typical.filter(|typical| *typical <= usable) {
        return Reading::new(
            format!(
                "{reason} A typical batch needs {typical} and fits: this one was among the largest."
            ),
            &[
                (Cause::Outlier, 0.9),
                (Cause::Capacity, 0.05),
                (Cause::Fragmentation, 0.03),
            ],
        );
    }
    if step.is_none_or(|step| step <= 1) {
        return Reading::new(
            reason,
            &[
                (Cause::Capacity, 0.85),
                (Cause::Outlier, 0.07),
                (Cause::OptimizerStep, 0.04),
            ],
        );
    }
    if !expected.varies {
        return Reading::new(
            format!(
                "{reason} Earlier steps ran, and its batches are all of one size: something in it began later."
            ),
            &[
                (Cause::Schedule, 0.55),
                (Cause::Evaluation, 0.15),
                (Cause::Fragmentation, 0.12),
                (Cause::Leak, 0.1),
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
            (Cause::Outlier, 0.8),
            (Cause::Capacity, 0.1),
            (Cause::Schedule, 0.05),
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
            &[(event.1, 0.82), (Cause::Leak, 0.08), (Cause::Unknown, 0.04)],
        );
    }
    if let Some(found) = expected.recognized {
        return in_excess(step, expected, &found);
    }
    Reading::new(reason, shares_of_the_unexplained(step))
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
                (event.1, 0.72),
                (Cause::Fragmentation, 0.15),
                (Cause::Leak, 0.06),
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
pub(super) fn event(step: Option<u64>, expected: PredictedUsage) -> Option<(&'static str, Cause)> {
    let comes = |every: u64| every > 0 && step.is_some_and(|step| (step + 1).is_multiple_of(every));
    if comes(expected.eval_every) {
        return Some(("evaluation", Cause::Evaluation));
    }
    comes(expected.save_every).then_some(("save", Cause::Checkpoint))
}
