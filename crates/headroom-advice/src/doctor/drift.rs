//! Whether memory rises over time: steadily, as with a leak, or at once.

use serde::Serialize;

use headroom_base::units::Bytes;

/// The trend of memory between steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Drift {
    None,
    /// It grew steadily, by this much.
    Steady(Bytes),
    /// It rose at one step and stayed there.
    Jump {
        step: i64,
        by: Bytes,
    },
}

/// The drift of memory over steps, if it is at least `least`.
///
/// Leftovers may scale with the batch, so only floors count: the minimum of each quarter, and the minimum after a jump
/// against the maximum before it.
pub(super) fn drift(ends: &[(i64, u64)], least: Bytes) -> Drift {
    let least = least.get().max(1);
    if ends.len() < 4 {
        return Drift::None;
    }
    let floor = |range: &[(i64, u64)]| range.iter().map(|(_, end)| *end).min().unwrap_or(0);
    // The minimum from each step on.
    let mut lowest: Vec<u64> = ends.iter().map(|(_, end)| *end).collect();
    for at in (1..lowest.len()).rev() {
        lowest[at - 1] = lowest[at - 1].min(lowest[at]);
    }
    let (mut highest, mut least_before) = (0, u64::MAX);
    let mut jump = None;
    for (pair, after) in ends.windows(2).zip(&lowest[1..]) {
        highest = highest.max(pair[0].1);
        least_before = least_before.min(pair[0].1);
        let spread = highest - least_before;
        let gap = after.saturating_sub(highest);
        if gap >= least && gap / 2 > spread && jump.is_none_or(|(_, most)| gap > most) {
            jump = Some((pair[1].0, gap));
        }
    }
    let quarter = |part: usize| floor(&ends[ends.len() * part / 4..ends.len() * (part + 1) / 4]);
    let floors = [quarter(0), quarter(1), quarter(2), quarter(3)];
    let grown = floors[3].saturating_sub(floors[0]);
    let rising = floors.windows(2).filter(|pair| pair[1] > pair[0]).count();
    match jump {
        Some((step, by)) if rising < 3 => Drift::Jump {
            step,
            by: Bytes::new(by),
        },
        _ if rising == 3 && grown >= least => Drift::Steady(Bytes::new(grown)),
        _ => Drift::None,
    }
}
