//! `nvidia-smi`'s table without an error: who fills which GPU.

use super::Reading;
use crate::doctor::{Cause, Findings, SmiCard};

/// Used by a desktop or a monitor, as a share of the GPU.
const IDLE: u64 = 10;

pub(super) fn read(findings: &Findings) -> Option<Reading> {
    let smi = findings
        .smi
        .as_ref()
        .filter(|_| findings.failure.is_none())?;
    let fullest = smi.cards.iter().max_by_key(|card| share(card))?;
    let SmiCard { index, used, total } = fullest;
    let here: Vec<_> = smi
        .processes
        .iter()
        .filter(|process| process.card == *index)
        .collect();
    let idle = smi.cards.iter().filter(|card| share(card) < IDLE).count();
    let full = share(fullest) >= 90;
    let reason = format!("GPU {index} is the fullest, with {used} of {total} in use");
    Some(match here.len() {
        _ if !full => Reading::new(
            format!("{reason}: at this moment no GPU is full."),
            &[
                (Cause::Unknown, 0.6),
                (Cause::Outlier, 0.15),
                (Cause::Evaluation, 0.1),
            ],
        ),
        2.. if idle > 0 => Reading::new(
            format!(
                "{reason} by {} processes, while {idle} others are nearly empty.",
                here.len()
            ),
            &[(Cause::WrongDevice, 0.65), (Cause::OtherProcess, 0.25)],
        ),
        2.. => Reading::new(
            format!("{reason} by {} processes.", here.len()),
            &[
                (Cause::OtherProcess, 0.65),
                (Cause::WrongDevice, 0.2),
                (Cause::Capacity, 0.1),
            ],
        ),
        1 => Reading::new(
            format!(
                "{reason} by one process: its reserved memory, which includes what it could reuse."
            ),
            &[
                (Cause::Capacity, 0.55),
                (Cause::Leak, 0.15),
                (Cause::OtherProcess, 0.15),
            ],
        ),
        _ if idle > 0 => Reading::new(
            format!("{reason}, while {idle} others are nearly empty; the table names no process."),
            &[(Cause::WrongDevice, 0.5), (Cause::OtherProcess, 0.35)],
        ),
        _ => Reading::new(
            format!("{reason}; the table names no process, as in a container or after a crash."),
            &[(Cause::OtherProcess, 0.55), (Cause::Capacity, 0.3)],
        ),
    })
}

/// In percent.
fn share(card: &SmiCard) -> u64 {
    card.used.get().saturating_mul(100) / card.total.get().max(1)
}
