//! The cuts of recent graphs.

use std::collections::VecDeque;
use std::rc::Rc;

use super::budget;
use super::cut::Value;

/// The cuts of recent graphs: equal layers and passes have the same.
#[derive(Default)]
pub(in crate::tape) struct Cuts(VecDeque<Cut>);

/// A graph under a budget, and which of its values are kept.
struct Cut {
    budget: f64,
    values: Rc<[Value]>,
    kept: Rc<[bool]>,
}

impl Cuts {
    /// Which values of a graph are kept.
    pub(super) fn of(&mut self, values: &[Value], budget: f64) -> Rc<[bool]> {
        const RECENT: usize = 4;
        /// Larger graphs, of whole models, are not kept, to save memory.
        const MOST_VALUES: usize = 1 << 14;
        let Self(cuts) = self;
        let mut recent = cuts.iter();
        let known =
            recent.find(|cut| cut.budget.to_bits() == budget.to_bits() && *cut.values == *values);
        if let Some(known) = known {
            return known.kept.clone();
        }
        let kept: Rc<[bool]> = budget::kept(values, budget).into();
        if values.len() <= MOST_VALUES {
            cuts.push_back(Cut {
                budget,
                values: values.into(),
                kept: kept.clone(),
            });
            if cuts.len() > RECENT {
                cuts.pop_front();
            }
        }
        kept
    }
}
