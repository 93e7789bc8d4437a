//! The largest value that fits, for memory that never falls as the value grows.

/// The largest number up to `most` that satisfies the predicate, or 0: found by doubling from `first`, then by bisection
/// down to a distance of `gap`.
pub(super) fn largest<E>(
    first: u64,
    most: u64,
    gap: impl Fn(u64) -> u64,
    mut fits: impl FnMut(u64) -> Result<bool, E>,
) -> Result<u64, E> {
    let (mut low, mut high) = (0, first);
    while high <= most && fits(high)? {
        low = high;
        high = if high == most {
            most + 1
        } else {
            high.saturating_mul(2).min(most)
        };
    }
    while high - low > gap(low).max(1) {
        let middle = low.midpoint(high);
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
                for first in [1, 3] {
                    let mut asked = 0;
                    let found = largest(
                        first,
                        most,
                        |_| 1,
                        |n| {
                            asked += 1;
                            assert!(1 <= n && n <= most.max(first));
                            Ok::<_, ()>(n <= limit)
                        },
                    );
                    assert_eq!(found, Ok(limit));
                    assert!(
                        asked <= 2 * most.ilog2() + 4,
                        "{asked} for {limit} of {most}"
                    );
                }
            }
        }
    }

    #[test]
    fn bisection_stops_at_the_allowed_gap() {
        let mut asked = 0;
        let found = largest(
            1,
            1 << 20,
            |low| low / 100,
            |n| {
                asked += 1;
                Ok::<_, ()>(n <= 300_000)
            },
        );
        assert!((297_000..=300_000).contains(&found.unwrap()), "{found:?}");
        assert!(asked < 30, "{asked}");
    }
}
