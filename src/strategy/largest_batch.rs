//! The largest micro-batch that fits.

use crate::estimate::{Estimate, Unsupported, estimate};
use crate::scenario::{Scenario, settings};

/// The largest micro-batch that fits, and what the next one would need.
#[derive(Clone, Debug, PartialEq)]
pub struct LargestBatch {
    /// The scenario with that micro-batch; `None` where even one sample does not fit.
    pub scenario: Option<Scenario>,
    /// The estimate of that scenario, or of one sample where none fits.
    pub estimate: Estimate,
    /// The estimate of one sample more, unless the largest micro-batch that can be asked for fits.
    pub next: Option<Estimate>,
}

/// Finds it by doubling, then by bisection: memory does not fall as the micro-batch grows.
pub fn largest_batch(scenario: &Scenario) -> Result<LargestBatch, Unsupported> {
    let most = match settings::find("data.micro_batch").map(|setting| setting.value_type) {
        Some(settings::ValueType::Whole { high, .. }) => high,
        _ => 1,
    };
    let with = |micro_batch: u64| {
        let mut scenario = scenario.clone();
        scenario.data.micro_batch = micro_batch;
        scenario
    };
    let at = |micro_batch: u64| estimate(&with(micro_batch));
    let largest = largest(most, |micro_batch| match at(micro_batch)?.fits {
        Some(fits) => Ok(fits),
        None => Err(Unsupported::UnknownMemory),
    })?;
    Ok(LargestBatch {
        estimate: at(largest.max(1))?,
        next: (0 < largest && largest < most)
            .then(|| at(largest + 1))
            .transpose()?,
        scenario: (largest > 0).then(|| with(largest)),
    })
}

/// The largest number up to `most` for which the answer is yes; 0 where there is none.
fn largest<E>(most: u64, mut fits: impl FnMut(u64) -> Result<bool, E>) -> Result<u64, E> {
    let mut low = 0;
    let mut high = 1;
    while high <= most && fits(high)? {
        low = high;
        high = if high == most {
            most + 1
        } else {
            (high * 2).min(most)
        };
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bisection_finds_the_last_that_fits() {
        for most in [1, 2, 3, 7, 8, 100] {
            for limit in 0..=most {
                let mut asked = 0;
                let found = largest(most, |n| {
                    asked += 1;
                    assert!(1 <= n && n <= most);
                    Ok::<_, ()>(n <= limit)
                });
                assert_eq!(found, Ok(limit));
                assert!(
                    asked <= 2 * most.ilog2() + 3,
                    "{asked} for {limit} of {most}"
                );
            }
        }
    }

    #[test]
    fn what_cannot_be_estimated_is_said() {
        assert_eq!(largest(8, |_| Err::<bool, _>("no")), Err("no"));
    }
}
