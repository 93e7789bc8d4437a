//! Sorting without the code that the standard library's sort brings for each type.

use std::cmp::Ordering;

/// The items in order; equal ones stay as they were.
///
/// The lists here have tens of entries. The standard sort is made for millions: 5 kB of code for every type it is used
/// with, which whoever opens the page downloads.
pub fn sorted<T>(
    items: impl IntoIterator<Item = T>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Vec<T> {
    let mut sorted: Vec<T> = Vec::new();
    for item in items {
        let at = sorted.partition_point(|it| compare(it, &item) != Ordering::Greater);
        sorted.insert(at, item);
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sorts_as_the_standard_library_does() {
        let mut state = 1_u32;
        for length in 0..60 {
            let numbered: Vec<(u32, usize)> = (0..length)
                .map(|place| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 28, place)
                })
                .collect();
            let mut expected = numbered.clone();
            expected.sort_by_key(|it| it.0);
            assert_eq!(sorted(numbered, |a, b| a.0.cmp(&b.0)), expected);
        }
    }
}
