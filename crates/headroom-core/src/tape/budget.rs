//! A limit on the work of one run: a short scenario can ask for more than any machine can do.

use std::cell::Cell;

/// The most tensors that one run may create, as recorded: a folded row counts once. The largest models of the catalogue
/// create a tenth of it, and a tape takes some 300 bytes and less than a microsecond for each.
pub(in crate::tape) const MOST_TENSORS: u32 = 600_000;

/// How much of its budget a run has spent.
#[derive(Debug, Default)]
pub(in crate::tape) struct Budget {
    pub made: Cell<u32>,
    pub spent: Cell<bool>,
}

impl Budget {
    /// Counts one more tensor; returns whether it is within the budget.
    pub(crate) fn allows_one_more(&self) -> bool {
        let made = self.made.get().saturating_add(1);
        self.made.set(made);
        self.spent.set(self.spent.get() || made > MOST_TENSORS);
        !self.spent.get()
    }

    pub(crate) const fn is_spent(&self) -> bool {
        self.spent.get()
    }
}
