//! The largest micro-batch of a network that may fit.

use super::super::choose::Queue;
use super::super::edit::Edit;
use super::super::evaluate::{Evaluator, Quick, with};
use super::Candidate;
use super::axes::{Axes, with_optional};
use super::networks::Network;

/// Adds the network's fastest runs that may fit, with each optimizer.
pub(super) fn largest(
    evaluator: &mut Evaluator,
    axes: &Axes,
    network: &Network,
    found: &mut Queue,
) {
    for optimizer in &axes.optimizers {
        let run = with_optional(&network.edits, *optimizer);
        if run.iter().any(|edit| matches!(edit, Edit::Pipeline { .. })) {
            upwards(evaluator, &run, &network.sizes, found);
        } else {
            bisected(evaluator, axes, &run, &network.sizes, found);
        }
    }
}

/// A pipeline's step time has no order by size: all that may fit, from the smallest.
fn upwards(evaluator: &mut Evaluator, run: &[Edit], sizes: &[u64], found: &mut Queue) {
    for size in sizes.iter().rev() {
        let edits = with(run, Edit::MicroBatch(*size));
        let Some(quick) = evaluator.quick(&edits) else {
            continue;
        };
        offer(evaluator, edits, quick, found);
        if !quick.may_fit() {
            return;
        }
    }
}

fn bisected(
    evaluator: &mut Evaluator,
    axes: &Axes,
    run: &[Edit],
    sizes: &[u64],
    found: &mut Queue,
) {
    let at = |evaluator: &mut Evaluator, size: u64| {
        let edits = with(run, Edit::MicroBatch(size));
        let quick = evaluator.quick(&edits);
        quick.map(|quick| (edits, quick))
    };
    let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else {
        return;
    };
    // All samples at once, without accumulation: no gradients are alive in the forward pass.
    if let Some((edits, quick)) = at(evaluator, *first) {
        let known = found.first().map(|first| first.quick.seconds);
        let faster = known.is_none_or(|known| quick.seconds < known);
        offer(evaluator, edits.clone(), quick, found);
        if quick.may_fit() {
            return;
        }
        let freed = quick.without_gradients <= quick.room;
        if let Some(in_backward) = axes.in_backward.filter(|_| freed && faster) {
            let edits = with(&edits, in_backward);
            if let Some(quick) = evaluator.quick(&edits) {
                offer(evaluator, edits, quick, found);
            }
        }
    }
    if sizes.len() < 2 {
        return;
    }
    let Some((edits, quick)) = at(evaluator, *last) else {
        return;
    };
    offer(evaluator, edits, quick, found);
    if !quick.may_fit() {
        return;
    }
    let (mut low, mut high) = (1, sizes.len() - 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let Some(size) = sizes.get(middle) else {
            return;
        };
        match at(evaluator, *size) {
            Some((edits, quick)) if quick.may_fit() => {
                offer(evaluator, edits, quick, found);
                high = middle;
            }
            _ => low = middle + 1,
        }
    }
}

fn offer(evaluator: &mut Evaluator, edits: Vec<Edit>, quick: Quick, found: &mut Queue) {
    let strict = evaluator.space.locks.is_strict();
    if quick.may_fit() && (!strict || evaluator.is_accepted(&edits)) {
        found.add(Candidate { edits, quick });
    }
}
