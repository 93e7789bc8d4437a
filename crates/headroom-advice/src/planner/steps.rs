//! The order of a plan's changes: each step saves memory or time.

use std::rc::Rc;

use super::edit::Edit;
use super::evaluate::{Evaluator, Full, Quick, with, with_all, without};
use super::speech;

/// One step of a plan, and what the run needs after it.
#[derive(Clone, Debug)]
pub struct Change {
    pub id: String,
    pub text: String,
    pub edits: Vec<Edit>,
    pub after: Rc<Full>,
    /// The reason, from the two runs' figures.
    pub why: String,
}

/// A difference of less than a thousandth is none.
const LEAST: f64 = 0.001;

/// What a step gains: whether it saves memory, and by how much it changes spare memory and time, as shares.
#[derive(Clone, Copy, Debug, Default)]
struct Gain {
    memory: f64,
    time: f64,
}

impl Gain {
    fn is_any(self) -> bool {
        self.memory > LEAST || self.time > LEAST
    }
}

/// The edits of a plan as steps.
pub fn steps(evaluator: &mut Evaluator, edits: &[Edit]) -> Vec<Change> {
    let mut remaining = edits.to_vec();
    let mut done: Vec<Edit> = Vec::new();
    let mut waiting: Vec<Edit> = Vec::new();
    let mut changes: Vec<Change> = Vec::new();
    let Some(mut before) = evaluator.full(&[]) else {
        return changes;
    };
    while !remaining.is_empty() {
        let start = with_all(&done, &waiting);
        let Some(next) = next(evaluator, &start, &remaining, before.fits()) else {
            // Impossible one by one: together.
            waiting.append(&mut remaining);
            break;
        };
        remaining.retain(|edit| *edit != next);
        waiting.push(next);
        let reached = with_all(&done, &waiting);
        let Some(after) = evaluator.full(&reached) else {
            continue;
        };
        let gains = Gain {
            memory: 1.0 - after.device().get() as f64 / before.device().get().max(1) as f64,
            time: 1.0 - after.seconds / before.seconds.max(f64::MIN_POSITIVE),
        };
        if gains.is_any() {
            changes.push(change(&waiting, &before, &after));
            done = reached;
            before = after;
            waiting.clear();
        }
    }
    if waiting.is_empty() {
        return changes;
    }
    // What gains nothing by itself belongs to the step before it.
    let last = changes.pop();
    if let Some(last) = &last {
        for edit in &last.edits {
            done = without(&done, *edit);
        }
        waiting.splice(0..0, last.edits.iter().copied());
    }
    let before = changes.last().map(|change| change.after.clone());
    let before = before.or_else(|| evaluator.full(&[]));
    let after = evaluator.full(edits);
    if let (Some(before), Some(after)) = (before, after) {
        changes.push(change(&waiting, &before, &after));
    }
    changes
}

fn change(edits: &[Edit], before: &Full, after: &Rc<Full>) -> Change {
    let id = edits.iter().map(Edit::id).collect::<Vec<_>>().join("+");
    Change {
        id,
        text: speech::title(edits, &after.scenario),
        edits: edits.to_vec(),
        why: speech::why(before, after),
        after: after.clone(),
    }
}

/// The edit that gains most: memory until the run fits, then time.
fn next(evaluator: &mut Evaluator, start: &[Edit], remaining: &[Edit], fits: bool) -> Option<Edit> {
    let now = evaluator.quick(start);
    let mut best: Option<(f64, Edit)> = None;
    for edit in remaining {
        let Some(after) = evaluator.quick(&with(start, *edit)) else {
            continue;
        };
        let gain = now.map_or_else(Gain::default, |now| {
            let share = |bytes: f64| bytes / now.room.get().max(1) as f64;
            // More than enough is worth nothing until the run fits.
            let spare = |quick: Quick| {
                let spare = quick.room.get() as f64 - quick.peak.get() as f64;
                if fits { spare } else { spare.min(0.0) }
            };
            Gain {
                memory: share(spare(after) - spare(now)),
                time: 1.0 - after.seconds / now.seconds.max(f64::MIN_POSITIVE),
            }
        });
        let score = if fits {
            gain.time + 0.01 * gain.memory
        } else {
            gain.memory + gain.time
        };
        // What gains nothing here may do so later.
        let score = if gain.is_any() { score } else { score - 1e6 };
        if best.is_none_or(|(most, _)| score > most) {
            best = Some((score, *edit));
        }
    }
    best.map(|(_, edit)| edit)
}
