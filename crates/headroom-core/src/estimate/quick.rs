//! Peaks without the allocator: sums up a folded trace, one group at a time.

use super::Phase;
use crate::tape::{LiveBytes, Trace};

/// The most that is allocated at any instant, in storages as the allocator rounds them.
pub(crate) fn peak(trace: &Trace) -> u64 {
    let outline = outline(trace);
    outline.passes.max(outline.step)
}

/// Allocated memory before a training step and the peaks of its two parts, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    /// Before the first step: weights, buffers, the optimizer's states.
    pub setup: u64,
    /// The batches of a step.
    pub inputs: u64,
    /// The peak before the optimizer update.
    pub passes: u64,
    /// Allocated when the optimizer update starts.
    pub before_step: u64,
    /// The peak of the optimizer update.
    pub step: u64,
    /// Micro-batches run in a step.
    pub micro_batches: u32,
}

pub(crate) fn outline(trace: &Trace) -> Outline {
    let mut sum = LiveBytes::of(&trace.storages);
    sum.follow(&trace.setup, &trace.setup_groups, 0);
    let bytes = |live: f64| live as u64;
    let mut outline = Outline {
        setup: bytes(sum.live),
        passes: bytes(sum.live),
        ..Outline::default()
    };
    let mut groups = &trace.groups[..];
    for (i, mark) in trace.phase_starts.iter().enumerate() {
        let end = trace
            .phase_starts
            .get(i + 1)
            .map_or(trace.events.len(), |next| next.at);
        // No group reaches from one phase into the next.
        let inside = groups.iter().take_while(|group| group.end <= end).count();
        let (here, later) = groups.split_at(inside);
        groups = later;
        if mark.phase == Phase::Optimizer {
            outline.before_step = outline.before_step.max(bytes(sum.live));
        }
        let before = sum.live;
        sum.peak = sum.live;
        let events = trace.events.get(mark.at..end).unwrap_or_default();
        sum.follow(events, here, mark.at);
        match mark.phase {
            Phase::Optimizer => outline.step = outline.step.max(bytes(sum.peak)),
            _ => outline.passes = outline.passes.max(bytes(sum.peak)),
        }
        if mark.step == 0 && mark.phase == Phase::Setup {
            outline.inputs = bytes(sum.live - before);
        }
        outline.micro_batches += u32::from(mark.step == 0 && mark.phase == Phase::Backward);
    }
    outline
}
