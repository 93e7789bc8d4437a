//! Other processes, and other GPUs.

use super::Reading;
use crate::doctor::{Cause, Expectation, Failure, Findings, Source};
use headroom_base::units::Bytes;

/// Process ids of ranks that one launcher started lie this close together.
const SIBLINGS: u64 = 64;
/// A display, a monitor: what a card always has.
const SMALL: f64 = 0.05;
/// Memory that nothing accounts for, beyond what cuDNN and other libraries of the same process hold.
const HIDDEN: f64 = 0.2;

pub(super) fn read(
    failure: &Failure,
    findings: &Findings,
    expected: Option<Expectation>,
) -> Option<Reading> {
    if failure.source == Source::Mps {
        return Some(on_mps(failure));
    }
    astray(failure, findings)
        .or_else(|| wrong_card(failure, findings))
        .or_else(|| listed(failure, expected))
        // A log knows itself what lay outside when it began.
        .or_else(|| hidden(failure).filter(|_| findings.log.is_none()))
        .or_else(|| chosen(failure, findings))
}

/// Apple's allocator says itself how much is not its own: what Metal counts for this process besides, and for others. The
/// larger of the two is the cause.
fn on_mps(failure: &Failure) -> Reading {
    let total = failure.total.unwrap_or_default();
    let own = failure.allocated.unwrap_or_default();
    let others = total - own - failure.free.unwrap_or_default();
    if others > own {
        return Reading::new(
            format!(
                "{others} of the {total} that Metal allows belong to others than this process's tensors."
            ),
            &[
                (Cause::OtherProcess, 0.6),
                (Cause::Capacity, 0.25),
                (Cause::Unknown, 0.1),
            ],
        );
    }
    Reading::new(
        format!("This process's tensors fill {own} of the {total} that Metal allows."),
        &[
            (Cause::Capacity, 0.7),
            (Cause::Leak, 0.12),
            (Cause::Evaluation, 0.08),
        ],
    )
}

/// The bytes that others hold of those that were missing.
fn listed(failure: &Failure, expected: Option<Expectation>) -> Option<Reading> {
    let listed: Bytes = failure.processes.iter().map(|process| process.1).sum();
    let total = failure.total?;
    let short = failure.tried.unwrap_or_default() - failure.free.unwrap_or_default();
    if listed < total.scale(SMALL) || listed < short {
        return None;
    }
    let needs_more = |expected: Expectation| {
        failure
            .usable()
            .is_some_and(|usable| expected.peak > usable + listed)
    };
    if expected.is_some_and(needs_more) {
        // Without them it would not have run either.
        return None;
    }
    let pids = failure.processes.iter().map(|process| process.0);
    let near = pids
        .clone()
        .max()
        .zip(pids.min())
        .is_some_and(|(last, first)| last - first <= SIBLINGS);
    if failure.processes.len() > 1 && near {
        return Some(Reading::new(
            format!(
                "{} processes with neighbouring ids share this GPU and use {listed} of it: the ranks of one job, each meant for \
                 a GPU of its own.",
                failure.processes.len()
            ),
            &[(Cause::WrongDevice, 0.75), (Cause::OtherProcess, 0.2)],
        ));
    }
    let sure = if listed >= total.scale(4.0 * SMALL) {
        0.85
    } else {
        0.6
    };
    Some(Reading::new(
        format!(
            "Other processes use {listed} of the GPU's {total}; without them this request, short by {short}, would have \
             succeeded."
        ),
        &[
            (Cause::OtherProcess, sure),
            (Cause::WrongDevice, 0.08),
            (Cause::Capacity, 0.05),
        ],
    ))
}

/// Memory in use that nobody accounts for: the total less free memory, this process and the processes listed.
fn hidden(failure: &Failure) -> Option<Reading> {
    let (total, free) = (failure.total?, failure.free?);
    // A context and its libraries where the text does not count them.
    let own = match failure.in_use {
        Some(own) => own,
        None => failure.reserved()? + Bytes::gib(1.5),
    };
    let listed: Bytes = failure.processes.iter().map(|process| process.1).sum();
    let hidden = total - free - own - listed;
    let short = failure.tried.unwrap_or_default() - free;
    (hidden > total.scale(HIDDEN) && hidden >= short).then(|| {
        Reading::new(
            format!(
                "{hidden} of the GPU's {total} are used by nothing that the text names: another process, or libraries of this \
                 one."
            ),
            &[(Cause::OtherProcess, 0.7), (Cause::Unknown, 0.15), (Cause::WrongDevice, 0.1)],
        )
    })
}

/// Processes with a GPU of their own that hold memory on this one too.
fn astray(failure: &Failure, findings: &Findings) -> Option<Reading> {
    let processes = &findings.smi.as_ref()?.processes;
    let device = failure.device.unwrap_or(0);
    let here = processes.iter().filter(|process| process.card == device);
    let elsewhere = |pid: u64| {
        processes
            .iter()
            .any(|other| other.card != device && other.pid == pid)
    };
    let strays = here
        .clone()
        .filter(|process| elsewhere(process.pid))
        .count();
    // One process on several GPUs is meant to be.
    (strays > 0 && here.count() > 1).then(|| {
        Reading::new(
            format!(
                "{strays} processes that run on other GPUs hold memory on GPU {device} too: a checkpoint was loaded without \
                 map_location, or CUDA was used before the GPU was chosen."
            ),
            &[(Cause::WrongDevice, 0.8), (Cause::OtherProcess, 0.1)],
        )
    })
}

/// A full card beside an empty one.
fn wrong_card(failure: &Failure, findings: &Findings) -> Option<Reading> {
    let smi = findings.smi.as_ref()?;
    let device = failure.device.unwrap_or(0);
    let card = smi.cards.iter().find(|card| card.index == device)?;
    let own = failure.reserved().unwrap_or_default();
    let crowded = card.used > own + Bytes::new(card.total.get() / 4);
    let empty = smi
        .cards
        .iter()
        .find(|other| other.index != device && other.used.get() < other.total.get() / 10);
    if !crowded || failure.source == Source::Host {
        return None;
    }
    let used = card.used;
    Some(match empty {
        Some(empty) => Reading::new(
            format!(
                "{used} are in use on GPU {device}, mostly not by this program, while GPU {} is nearly empty.",
                empty.index
            ),
            &[(Cause::WrongDevice, 0.55), (Cause::OtherProcess, 0.35)],
        ),
        None if failure.allocated.is_some() => Reading::new(
            format!("{used} are in use on GPU {device}, mostly not by this program."),
            &[(Cause::OtherProcess, 0.7), (Cause::WrongDevice, 0.12)],
        ),
        None => return None,
    })
}

/// Errors without numbers where GPUs were chosen by hand.
fn chosen(failure: &Failure, findings: &Findings) -> Option<Reading> {
    let signs = &findings.signs;
    let bare = failure.tried.is_none() && signs.activities.is_empty();
    (bare && signs.device_chosen).then(|| {
        Reading::new(
            "GPUs are chosen by hand and the error has no numbers: the program may have come to another GPU than was meant.",
            &[(Cause::WrongDevice, 0.5), (Cause::OtherProcess, 0.25), (Cause::Capacity, 0.12)],
        )
    })
}
