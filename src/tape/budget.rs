//! How much one run may do: a short text can ask for more than a machine can give.

use std::cell::Cell;

use super::{Core, Tape};

/// The tensors that one run may make, counted as they are recorded: a folded row counts once. The largest listed models
/// make a tenth of it.
const MOST: u32 = 400_000;

/// What a run has done of what it may do.
#[derive(Debug, Default)]
pub(in crate::tape) struct Budget {
    made: Cell<u32>,
    spent: Cell<bool>,
}

impl Budget {
    /// Counts one more tensor; says whether it may be made.
    pub fn allows_one_more(&self) -> bool {
        let made = self.made.get().saturating_add(1);
        self.made.set(made);
        self.spent.set(self.spent.get() || made > MOST);
        !self.spent.get()
    }

    pub const fn is_spent(&self) -> bool {
        self.spent.get()
    }
}

impl Tape {
    /// Whether the run asks for more than it may do. Nothing is recorded from there on, so that it soon ends.
    pub fn spent(&self) -> bool {
        self.0.budget.is_spent()
    }

    /// Spends the budget now where what was declared, run this often, would: before the run, not in its midst.
    pub fn foresee(&self, often: u64) {
        let Core { budget, .. } = &*self.0;
        if u64::from(budget.made.get()).saturating_mul(often) > u64::from(MOST) {
            budget.spent.set(true);
        }
    }
}
