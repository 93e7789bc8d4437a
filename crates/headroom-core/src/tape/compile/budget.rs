//! What is kept under an `activation_memory_budget` between 0 and 1 (`choose_saved_values_set` in
//! torch/_functorch/partitioners.py): cuts that recompute more and more, and a knapsack over what even the last one would keep.

use std::collections::{BTreeMap, BTreeSet};

use super::cut::{self, MinCutOptions, Value};

/// Marks the values to keep, in their order. The budget is a share of what the cut for speed keeps beyond the graph's inputs.
pub(super) fn kept(values: &[Value], budget: f64) -> Vec<bool> {
    let none = BTreeSet::new();
    let fastest = cut::saved_values(values, MinCutOptions::DEFAULT, &none);
    if budget >= 1.0 {
        return fastest;
    }
    let size = |kept: &[bool]| -> f64 {
        let kept = values.iter().zip(kept).filter(|(_, kept)| **kept);
        kept.map(|(value, _)| value.bytes as f64).sum()
    };
    let inputs = values.iter().filter(|value| value.outside);
    let least: f64 = inputs.map(|value| value.bytes as f64).sum();
    let most = size(&fastest);
    if most <= least {
        return fastest;
    }
    let share = |kept: &[bool]| (size(kept) - least) / (most - least);
    for options in [MinCutOptions::MORE, MinCutOptions::AGGRESSIVE] {
        let kept = cut::saved_values(values, options, &none);
        if share(&kept) < budget {
            return kept;
        }
    }
    let items = items(values);
    let again = recomputed(&items, budget, most - least);
    cut::saved_values(values, MinCutOptions::AGGRESSIVE, &again)
}

/// An operation that no cut computes must_recompute: all of its results, and the work of doing so.
struct Item {
    operation: usize,
    bytes: u64,
    flops: f64,
}

/// The largest first.
fn items(values: &[Value]) -> Vec<Item> {
    let banned = cut::never_recomputed(values);
    let mut by_operation: BTreeMap<usize, Item> = BTreeMap::new();
    for (value, _) in values.iter().zip(&banned).filter(|(_, banned)| **banned) {
        let item = by_operation.entry(value.operation).or_insert(Item {
            operation: value.operation,
            bytes: 0,
            flops: 1.0,
        });
        item.bytes = item.bytes.saturating_add(value.bytes);
        item.flops = item.flops.max(value.flops);
    }
    let mut all: Vec<Item> = by_operation.into_values().collect();
    all.sort_by_key(|item| std::cmp::Reverse(item.bytes));
    all
}

/// `dp_knapsack`: the operations to recompute when the budget is filled with the most work; sizes are in ten-thousandths of `whole`.
fn recomputed(items: &[Item], budget: f64, whole: f64) -> BTreeSet<usize> {
    const PARTS: f64 = 10_000.0;
    let part = |share: f64| (share * PARTS).round_ties_even().max(0.0) as usize;
    let room = part(budget.max(0.0));
    let weights: Vec<usize> = items
        .iter()
        .map(|item| part(item.bytes as f64 / whole))
        .collect();
    let mut rows: Vec<Vec<f32>> = vec![vec![0.0; room + 1]];
    for (item, &weight) in items.iter().zip(&weights) {
        let work = item.flops as f32;
        let Some(before) = rows.last() else { break };
        let row = (0..=room)
            .map(|used| match used.checked_sub(weight) {
                _ if weight == 0 => before[used] + work,
                Some(rest) => before[used].max(before[rest] + work),
                None => before[used],
            })
            .collect();
        rows.push(row);
    }
    let mut left = room;
    let mut again = BTreeSet::new();
    for (place, item) in items.iter().enumerate().rev() {
        let changed = rows[place + 1][left] > rows[place][left];
        if changed {
            left = left.saturating_sub(weights[place]);
        } else {
            again.insert(item.operation);
        }
    }
    again
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of products of equal size, each read by the next and by backward, from one input.
    fn chain(products: usize) -> Vec<Value> {
        let input = Value {
            outside: true,
            bytes: 100,
            operation: 0,
            ..Value::default()
        };
        let product = |place: usize| Value {
            bytes: 1000,
            inputs: vec![place],
            never_recompute: true,
            saved: true,
            operation: place + 1,
            flops: 1e6 * (place + 1) as f64,
            ..Value::default()
        };
        std::iter::once(input)
            .chain((0..products).map(product))
            .collect()
    }

    #[track_caller]
    fn check(budget: f64, expected: &[usize]) {
        let kept = kept(&chain(4), budget);
        let found: Vec<usize> = (0..kept.len()).filter(|&place| kept[place]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_budget_keeps_the_products_with_the_most_work() {
        // The full budget keeps what the fastest cut does; none keeps the input.
        check(1.0, &[1, 2, 3, 4]);
        check(0.55, &[0, 3, 4]);
        check(0.0, &[0]);
    }
}
