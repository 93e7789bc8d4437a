//! Other processes, and other GPUs.

use super::Reading;
use crate::doctor::{Activity, Cause, Failure, Findings, PredictedUsage, Source};
use headroom_base::units::Bytes;

/// The ids of ranks that one launcher started are this close.
const SIBLINGS: u64 = 64;
/// Used by a display or a monitor, as a share of the GPU.
const SMALL: f64 = 0.05;
/// Used by a desktop with its programs, as a share of the GPU.
const DESKTOP: f64 = 0.125;
/// Unaccounted memory beyond what cuDNN and other libraries of the process can hold, as a share of the GPU.
const HIDDEN: f64 = 0.2;

pub(super) fn read(
    failure: &Failure,
    findings: &Findings,
    expected: Option<PredictedUsage>,
) -> Option<Reading> {
    if failure.source == Source::Mps {
        return Some(on_mps(failure));
    }
    stray_process(failure, findings)
        .or_else(|| wrong_card(failure, findings))
        .or_else(|| listed(failure, expected))
        // A log records the memory outside PyTorch at its start.
        .or_else(|| {
            let boxes = findings.signs.activity() == Some(Activity::Boxes);
            hidden(failure, findings).filter(|_| findings.log.is_none() && !boxes)
        })
        .or_else(|| chosen(failure, findings))
}

/// Apple's allocator reports how much is not its own: Metal's other memory of this process and of others. The larger part
/// is the cause.
fn on_mps(failure: &Failure) -> Reading {
    let total = failure.total.unwrap_or_default();
    let own = failure.allocated.unwrap_or_default();
    let others = total - own - failure.free.unwrap_or_default();
    if others > own {
        return Reading::new(
            format!(
                "{others} of the {total} that Metal allows is used by something other than this process's tensors."
            ),
            &[
                (Cause::OtherProcess, 0.7),
                (Cause::Capacity, 0.2),
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

/// Memory of the processes listed in the error.
fn listed(failure: &Failure, expected: Option<PredictedUsage>) -> Option<Reading> {
    let listed = failure.listed();
    let total = failure.total?;
    let short = failure.tried.unwrap_or_default() - failure.free.unwrap_or_default();
    if listed < total.scale(SMALL) || listed < short {
        return None;
    }
    let needs_more = |expected: PredictedUsage| {
        let need = expected.typical.unwrap_or(expected.peak);
        failure
            .usable()
            .is_some_and(|usable| need > usable + listed)
    };
    let most = listed > total.scale(0.5);
    if !most && expected.is_some_and(needs_more) {
        // The run would not have fit without them either.
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
                "{} processes with adjacent ids share this GPU and use {listed} of it: probably the ranks of one job, \
                 which should have a GPU each.",
                failure.processes.len()
            ),
            &[(Cause::WrongDevice, 0.75), (Cause::OtherProcess, 0.2)],
        ));
    }
    if listed < total.scale(DESKTOP) {
        return Some(Reading::new(
            format!(
                "Other processes use {listed} of the GPU's {total}, as a desktop does: this request, short by {short}, would \
                 have succeeded without them, but little more."
            ),
            &[
                (Cause::Capacity, 0.5),
                (Cause::OtherProcess, 0.38),
                (Cause::Outlier, 0.06),
            ],
        ));
    }
    let sure = if most { 0.93 } else { 0.9 };
    Some(Reading::new(
        format!(
            "Other processes use {listed} of the GPU's {total}; without them this request, short by {short}, would have \
             succeeded."
        ),
        &[
            (Cause::OtherProcess, sure),
            (Cause::WrongDevice, 0.04),
            (Cause::Capacity, 0.02),
        ],
    ))
}

/// Unaccounted memory: the total minus free memory, this process and the processes listed.
fn hidden(failure: &Failure, findings: &Findings) -> Option<Reading> {
    let (total, free) = (failure.total?, failure.free?);
    let hidden = failure.foreign()? - failure.listed();
    let short = failure.tried.unwrap_or_default() - free;
    let enough = hidden > total.scale(HIDDEN) && hidden >= short;
    if enough && findings.signs.activity() == Some(Activity::Checkpoint) {
        return Some(Reading::new(
            format!(
                "{hidden} of the GPU's {total} is not accounted for while a checkpoint is read: other ranks that read it to \
                 the same GPU, without map_location, or another process."
            ),
            &[
                (Cause::OtherProcess, 0.48),
                (Cause::WrongDevice, 0.27),
                (Cause::Checkpoint, 0.2),
            ],
        ));
    }
    enough.then(|| {
        Reading::new(
            format!(
                "{hidden} of the GPU's {total} is not accounted for: another process, or libraries of this one."
            ),
            &[(Cause::OtherProcess, 0.7), (Cause::Unknown, 0.15), (Cause::WrongDevice, 0.1)],
        )
    })
}

/// Processes on other GPUs that also hold memory on this one.
fn stray_process(failure: &Failure, findings: &Findings) -> Option<Reading> {
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
    // A single process on several GPUs is intended.
    (strays > 0 && here.count() > 1).then(|| {
        Reading::new(
            format!(
                "{strays} processes that run on other GPUs also hold memory on GPU {device}: a checkpoint was loaded \
                 without map_location, or CUDA was used before torch.cuda.set_device()."
            ),
            &[(Cause::WrongDevice, 0.8), (Cause::OtherProcess, 0.1)],
        )
    })
}

/// A full GPU while another is empty.
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
                "{used} is in use on GPU {device}, mostly not by this program, while GPU {} is nearly empty.",
                empty.index
            ),
            &[(Cause::WrongDevice, 0.65), (Cause::OtherProcess, 0.3)],
        ),
        None if failure.allocated.is_some() => Reading::new(
            format!("{used} is in use on GPU {device}, mostly not by this program."),
            &[(Cause::OtherProcess, 0.7), (Cause::WrongDevice, 0.12)],
        ),
        None => return None,
    })
}

/// Errors without numbers, with explicitly selected GPUs.
fn chosen(failure: &Failure, findings: &Findings) -> Option<Reading> {
    let signs = &findings.signs;
    let bare = failure.tried.is_none() && signs.activity().is_none();
    (bare && signs.device_chosen).then(|| {
        Reading::new(
            "GPUs are selected explicitly and the error has no numbers: the program may run on the wrong GPU.",
            &[(Cause::WrongDevice, 0.5), (Cause::OtherProcess, 0.25), (Cause::Capacity, 0.12)],
        )
    })
}
