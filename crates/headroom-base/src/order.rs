//! Sorted vectors in one expression.

use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The items, sorted stably.
pub fn sorted<T>(
    items: impl IntoIterator<Item = T>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort_by(compare);
    items
}

/// The items, sorted and without duplicates.
pub fn distinct<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    items
        .into_iter()
        .collect::<BTreeSet<T>>()
        .into_iter()
        .collect()
}
