//! Failures of several ranks of one job, and of NCCL.

use super::Reading;
use crate::doctor::signs::NcclError;
use crate::doctor::{Cause, Failure, Findings, RankFailure};

/// Memory of libraries in the process besides PyTorch, as a share of the GPU.
const LIBRARIES: f64 = 0.05;

pub(super) fn read(failure: &Failure, findings: &Findings) -> Option<Reading> {
    one_card(&findings.ranks).or_else(|| nccl(failure, findings))
}

/// Several ranks that fail on the same GPU, on which others hold memory. With CUDA_VISIBLE_DEVICES every rank's own GPU is
/// GPU 0, too.
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
            "Ranks {} and {last} all failed on GPU {device}, and each found memory of others there: all processes run on \
             one GPU.",
            others.join(", ")
        ),
        &[(Cause::WrongDevice, 0.88), (Cause::OtherProcess, 0.08)],
    ))
}

/// Whether a GPU holds memory of other processes.
fn shares(failure: &Failure) -> bool {
    let noticeable = failure.total.unwrap_or_default().scale(LIBRARIES);
    failure.listed() > noticeable || failure.foreign().is_some_and(|bytes| bytes > noticeable)
}

/// NCCL's own errors, without numbers of an allocator.
fn nccl(failure: &Failure, findings: &Findings) -> Option<Reading> {
    if failure.tried.is_some() {
        return None;
    }
    Some(match findings.signs.nccl? {
        NcclError::OneCard => Reading::new(
            "NCCL found two ranks on one GPU: each process needs its own.",
            &[(Cause::WrongDevice, 0.93), (Cause::LibraryBug, 0.03)],
        ),
        NcclError::OutOfMemory => Reading::new(
            "NCCL had no memory for its buffers, which it allocates outside PyTorch's allocator when a process group \
             first communicates: the GPU was full by then, or several ranks share it.",
            &[
                (Cause::Capacity, 0.5),
                (Cause::WrongDevice, 0.25),
                (Cause::OtherProcess, 0.15),
            ],
        ),
        NcclError::Other => Reading::new(
            "A collective failed, not an allocation: usually another rank died first, and its error is the cause.",
            &[
                (Cause::NotOutOfMemory, 0.6),
                (Cause::WrongDevice, 0.15),
                (Cause::LibraryBug, 0.1),
                (Cause::Capacity, 0.1),
            ],
        ),
    })
}
