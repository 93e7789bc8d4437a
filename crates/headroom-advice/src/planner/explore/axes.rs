//! The axes on which every value is combined with every value of the others.

use super::super::edit::{Axis, Edit};
use super::super::evaluate::{Evaluator, Quick, with};

/// The choices on each axis; `None` leaves it as it is.
#[derive(Debug)]
pub(super) struct Axes {
    pub checkpointing: Vec<Option<Edit>>,
    pub losses: Vec<Option<Edit>>,
    pub optimizers: Vec<Option<Edit>>,
    pub in_backward: Option<Edit>,
    /// What every run has.
    pub always: Vec<Edit>,
}

impl Axes {
    pub(super) fn new(evaluator: &Evaluator, always: &[Edit]) -> Self {
        let space = &evaluator.space;
        Self {
            checkpointing: choices(always, space.checkpointing()),
            losses: choices(always, space.losses()),
            optimizers: choices(always, space.optimizers()),
            in_backward: space.in_backward(),
            always: always.to_vec(),
        }
    }

    pub(super) fn precisions(&self, evaluator: &Evaluator) -> Vec<Option<Edit>> {
        choices(&self.always, evaluator.space.precisions())
    }
}

/// Nothing, or one of those on axes that nothing is decided on: what is always changed is not undone.
fn choices(always: &[Edit], edits: Vec<Edit>) -> Vec<Option<Edit>> {
    let taken = |axis: Axis| always.iter().any(|edit| edit.axis() == axis);
    let free = edits.into_iter().filter(|edit| !taken(edit.axis()));
    std::iter::once(None).chain(free.map(Some)).collect()
}

pub(super) fn with_optional(edits: &[Edit], more: Option<Edit>) -> Vec<Edit> {
    more.map_or_else(|| edits.to_vec(), |edit| with(edits, edit))
}

/// The prefix with each change that costs neither memory nor time there.
pub(super) fn with_toggles(evaluator: &mut Evaluator, prefix: &[Edit]) -> Vec<Edit> {
    let mut all = prefix.to_vec();
    let spare = |quick: Quick| quick.room.get() as f64 - quick.peak.get() as f64;
    for toggle in evaluator.space.toggles() {
        if prefix.iter().any(|edit| edit.axis() == toggle.axis()) {
            continue;
        }
        let added = with(&all, toggle);
        let better = match (evaluator.quick(&all), evaluator.quick(&added)) {
            (Some(before), Some(after)) => {
                spare(after) >= spare(before) && after.seconds <= before.seconds * 1.000_001
            }
            (None, Some(_)) => true,
            _ => false,
        };
        if better {
            all = added;
        }
    }
    all
}
