//! The same failure several times in one log, and memory that the program printed.

use super::Reading;
use crate::doctor::{Cause, Counted, Findings, Trend};

pub(super) fn read(findings: &Findings) -> Option<Reading> {
    repeated(findings).or_else(|| printed(findings))
}

/// Several runs that failed at the same step with the same request: neither accumulates, both are in the data or the
/// settings. Data loaders with a fixed seed repeat their order.
fn repeated(findings: &Findings) -> Option<Reading> {
    let repeated = findings.repeated?;
    let (step, tried) = (repeated.step?, repeated.tried?);
    let times = repeated.times;
    let reason = format!(
        "{times} runs in this log failed at the same step {step} with the same request of {tried}: nothing accumulates, that \
         batch does not fit."
    );
    Some(if step <= 1 {
        Reading::new(reason, &[(Cause::Capacity, 0.85), (Cause::Outlier, 0.08)])
    } else {
        Reading::new(
            reason,
            &[
                (Cause::Outlier, 0.85),
                (Cause::Capacity, 0.07),
                (Cause::Schedule, 0.04),
            ],
        )
    })
}

/// Memory in the program's own log.
fn printed(findings: &Findings) -> Option<Reading> {
    let lines = findings
        .printed
        .as_ref()
        .filter(|_| findings.log.is_none())?;
    let count = lines.values.len();
    let what = match lines.counted {
        Counted::Allocated => "allocated",
        Counted::Used => "used",
        Counted::Reserved => "reserved",
        Counted::Peak => "peak",
    };
    match lines.trend()? {
        Trend::Growing { from, to } => Some(Reading::new(
            format!(
                "The log's {count} figures of {what} memory grow from {from} to {to} without falling back."
            ),
            &[
                (Cause::Leak, 0.8),
                (Cause::Schedule, 0.08),
                (Cause::Outlier, 0.06),
            ],
        )),
        Trend::Rose { by } => Some(Reading::new(
            format!(
                "The log's {count} figures of {what} memory rise once, by {by}, and stay there."
            ),
            &[
                (Cause::Schedule, 0.6),
                (Cause::Evaluation, 0.15),
                (Cause::Leak, 0.15),
            ],
        )),
        Trend::Level { at } => {
            let failed = findings
                .failure
                .as_ref()
                .is_some_and(|failure| failure.tried.is_some());
            (failed && lines.counted != Counted::Reserved).then(|| {
                Reading::new(
                    format!("The log's {count} figures of {what} memory stay below {at}: nothing accumulates."),
                    &[
                        (Cause::Outlier, 0.6),
                        (Cause::Evaluation, 0.14),
                        (Cause::Fragmentation, 0.12),
                    ],
                )
            })
        }
    }
}
