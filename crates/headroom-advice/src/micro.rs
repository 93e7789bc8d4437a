//! Micro-batches that keep the effective batch.

use headroom_core::estimate::is_replayed;
use headroom_scenario::Scenario;

/// Samples of one optimizer step on one GPU.
fn on_one_gpu(scenario: &Scenario) -> u64 {
    scenario
        .data
        .micro_batch
        .saturating_mul(scenario.training.accumulation)
}

/// Micro-batches that keep the effective batch exactly, from all samples at once downwards to one.
pub fn all(scenario: &Scenario) -> Vec<u64> {
    const LARGEST: u64 = 1_000_000;
    let whole = on_one_gpu(scenario);
    let mut low = Vec::new();
    let mut high = Vec::new();
    let mut at = 1;
    while at * at <= whole && at <= 1_000_000 {
        if whole.is_multiple_of(at) {
            low.push(at);
            if at != whole / at {
                high.push(whole / at);
            }
        }
        at += 1;
    }
    low.reverse();
    high.append(&mut low);
    // A recording may hold for some batches alone.
    high.retain(|size| {
        let is_own = *size == scenario.data.micro_batch;
        *size <= LARGEST && (is_own || is_replayed(&with_batch(scenario, *size)))
    });
    high
}

/// The scenario with this micro-batch and the accumulation that keeps the effective batch.
pub fn with_batch(scenario: &Scenario, micro_batch: u64) -> Scenario {
    let mut changed = scenario.clone();
    changed.data.micro_batch = micro_batch;
    changed.training.accumulation = on_one_gpu(scenario) / micro_batch.max(1);
    changed
}

/// The first that fits in a list of decreasing memory; `None` if none does. The first entry is tried separately: without
/// accumulation no gradients are alive during a forward pass, so it may need less than the next.
pub fn first_that_fits<E>(
    sizes: &[u64],
    mut fits: impl FnMut(u64) -> Result<bool, E>,
) -> Result<Option<u64>, E> {
    let Some(&first) = sizes.first() else {
        return Ok(None);
    };
    if fits(first)? {
        return Ok(Some(first));
    }
    let (mut low, mut high) = (1, sizes.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(sizes[middle])? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(sizes.get(low).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micro_batches_keep_the_effective_batch() {
        let mut scenario = Scenario::default();
        scenario.data.micro_batch = 12;
        assert_eq!(all(&scenario), [12, 6, 4, 3, 2, 1]);
        scenario.training.accumulation = 5;
        assert_eq!(all(&scenario)[..4], [60, 30, 20, 15]);
        for size in all(&scenario) {
            let changed = with_batch(&scenario, size);
            assert_eq!(changed.effective_batch(), scenario.effective_batch());
        }
        for (whole, count) in [(1, 1), (2, 2), (9, 3), (16, 5), (97, 2)] {
            scenario.data.micro_batch = whole;
            scenario.training.accumulation = 1;
            assert_eq!(all(&scenario).len(), count, "{whole}");
        }
    }

    #[test]
    fn bisection_finds_the_first_that_fits() {
        let sizes = [9, 7, 5, 3, 1];
        for limit in 0..11 {
            let expected = sizes.iter().copied().find(|size| *size <= limit);
            let found = first_that_fits(&sizes, |size| Ok::<_, ()>(size <= limit));
            assert_eq!(found, Ok(expected));
        }
        assert_eq!(first_that_fits(&sizes, |_| Err::<bool, _>("no")), Err("no"));
        assert_eq!(
            first_that_fits(&sizes, |size| Ok::<_, ()>(size == 9 || size <= 3)),
            Ok(Some(9))
        );
        assert_eq!(first_that_fits(&[], |_| Ok::<_, ()>(true)), Ok(None));
    }
}
