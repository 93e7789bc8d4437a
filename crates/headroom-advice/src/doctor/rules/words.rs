//! What the program did when the error came, by its own words.

use super::Reading;
use crate::doctor::signs::Activity;
use crate::doctor::{Cause, Failure, Findings, Source};
use headroom_base::units::Bytes;
use headroom_catalog as catalog;

pub(super) fn read(failure: &Failure, findings: &Findings) -> Option<Reading> {
    let signs = &findings.signs;
    if findings.moment.no_batch_fits {
        return Some(Reading::new(
            "A batch-size finder tried every size down to one sample, and none ran.",
            &[(Cause::Capacity, 0.8), (Cause::OtherProcess, 0.1)],
        ));
    }
    if signs.growing && findings.log.is_none() {
        return Some(Reading::new(
            "The text says that memory grew while the program ran.",
            &[
                (Cause::Leak, 0.65),
                (Cause::Outlier, 0.15),
                (Cause::Evaluation, 0.08),
            ],
        ));
    }
    if signs.sampler {
        return Some(Reading::new(
            "vLLM failed as it took its share of the GPU beside the training: its weights, its cache and its trial run must fit into \
             gpu_memory_utilization, and the training into the rest.",
            &[
                (Cause::Capacity, 0.65),
                (Cause::OtherProcess, 0.2),
                (Cause::Fragmentation, 0.05),
            ],
        ));
    }
    // Where the text does not say how large the GPU is, none is larger than the largest.
    let largest = || {
        catalog::gpus()
            .iter()
            .map(|gpu| Bytes::gib(f64::from(gpu.memory.marketing_gb)))
            .max()
    };
    if let (Some(tried), Some(total)) = (failure.tried, failure.total.or_else(largest))
        && tried > total
        && failure.source == Source::Allocator
    {
        if failure
            .reserved()
            .is_some_and(|reserved| reserved.get() == 0)
        {
            return Some(Reading::new(
                format!("A first request of {tried} on a GPU that is said to have {total}."),
                &[
                    (Cause::LibraryBug, 0.45),
                    (Cause::Capacity, 0.35),
                    (Cause::Unknown, 0.1),
                ],
            ));
        }
        let evaluates = signs.activity() == Some(Activity::Evaluation);
        let (attention, evaluation) = if evaluates { (0.3, 0.45) } else { (0.55, 0.12) };
        return Some(Reading::new(
            format!(
                "One request of {tried} is more than the whole GPU has: a tensor that grows with the square of the length or of \
                 the pixels, or everything at once."
            ),
            &[
                (Cause::Attention, attention),
                (Cause::Outlier, 0.18),
                (Cause::Evaluation, evaluation),
            ],
        ));
    }
    let activity = signs.activity()?;
    let (reason, cause) = match activity {
        Activity::Evaluation => (
            "It happened during an evaluation or a generation, not in a training step.",
            Cause::Evaluation,
        ),
        Activity::Checkpoint => (
            "It happened while a checkpoint was written or read.",
            Cause::Checkpoint,
        ),
        Activity::OptimizerStep => (
            "It happened in the optimizer, which makes its states in its first step.",
            Cause::OptimizerStep,
        ),
    };
    let mut shares = vec![(cause, 0.78)];
    let others = signs.activities.iter().skip(1).map(|other| match other {
        Activity::Evaluation => Cause::Evaluation,
        Activity::Checkpoint => Cause::Checkpoint,
        Activity::OptimizerStep => Cause::OptimizerStep,
    });
    let others = others.chain([Cause::Capacity, Cause::WrongDevice, Cause::Unknown]);
    shares.extend(others.zip([0.1, 0.05, 0.03]));
    Some(Reading::new(reason, &shares))
}
