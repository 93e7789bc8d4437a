//! What the ranks of one job say together, and NCCL, through which they meet.

use super::Reading;
use crate::doctor::signs::NcclError;
use crate::doctor::{Cause, Failure, Findings, RankFailure};
use headroom_base::units::Bytes;

/// What libraries of the same process hold beside PyTorch, as a share of the card.
const LIBRARIES: f64 = 0.05;

pub(super) fn read(failure: &Failure, findings: &Findings) -> Option<Reading> {
    one_card(&findings.ranks).or_else(|| nccl(failure, findings))
}

/// Several ranks that name one card, on which others hold memory. A rank that sees its own card alone calls it GPU 0 too.
fn one_card(ranks: &[RankFailure]) -> Option<Reading> {
    let (first, rest) = ranks.split_first()?;
    let device = first.failure.device?;
    let together = rest
        .iter()
        .all(|other| other.failure.device == Some(device));
    if rest.is_empty() || !together || !ranks.iter().all(|rank| shares(&rank.failure)) {
        return None;
    }
    let named: Vec<String> = ranks.iter().map(|rank| rank.rank.to_string()).collect();
    let (last, others) = named.split_last()?;
    Some(Reading::new(
        format!(
            "Ranks {} and {last} all failed on GPU {device}, and each found memory of others there: every process runs on one \
             card.",
            others.join(", ")
        ),
        &[(Cause::WrongDevice, 0.88), (Cause::OtherProcess, 0.08)],
    ))
}

/// Whether a card holds more than this process's own memory and what is free.
fn shares(failure: &Failure) -> bool {
    let listed: Bytes = failure.processes.iter().map(|process| process.1).sum();
    let beyond = || {
        let (total, free) = (failure.total?, failure.free?);
        let own = match failure.in_use {
            Some(own) => own,
            None => failure.reserved()? + Bytes::gib(1.5),
        };
        Some(total - free - own > total.scale(LIBRARIES))
    };
    listed > failure.total.unwrap_or_default().scale(LIBRARIES) || beyond() == Some(true)
}

/// NCCL's own errors, where no allocator's numbers say more.
fn nccl(failure: &Failure, findings: &Findings) -> Option<Reading> {
    if failure.tried.is_some() {
        return None;
    }
    Some(match findings.signs.nccl? {
        NcclError::OneCard => Reading::new(
            "NCCL found two ranks on one GPU: each process needs a card of its own.",
            &[(Cause::WrongDevice, 0.93), (Cause::LibraryBug, 0.03)],
        ),
        NcclError::OutOfMemory => Reading::new(
            "NCCL had no memory for its buffers, which it allocates outside PyTorch's allocator when a group of ranks first \
             communicates: the card was full by then, or several ranks are on one.",
            &[
                (Cause::Capacity, 0.5),
                (Cause::WrongDevice, 0.25),
                (Cause::OtherProcess, 0.15),
            ],
        ),
        NcclError::Other => Reading::new(
            "A collective failed, not an allocation: most often another rank died first, and its error is the cause.",
            &[
                (Cause::NotOutOfMemory, 0.6),
                (Cause::WrongDevice, 0.15),
                (Cause::LibraryBug, 0.1),
                (Cause::Capacity, 0.1),
            ],
        ),
    })
}
