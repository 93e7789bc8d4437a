//! A limit on the work of one run: a short scenario can ask for more than any machine can do.

use std::cell::Cell;

use super::Tape;

/// The most tensors that one run may create, as recorded: a folded row counts once. The largest models of the catalogue
/// create a tenth of it, and a tape takes some 300 bytes and less than a microsecond for each.
const MOST: u32 = 400_000;

/// How much of its budget a run has spent.
#[derive(Debug, Default)]
pub(in crate::tape) struct Budget {
    made: Cell<u32>,
    spent: Cell<bool>,
}

impl Budget {
    /// Counts one more tensor; returns whether it is within the budget.
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
    /// Whether the run exceeds its budget. Nothing more is recorded from there on, so it ends soon.
    pub fn spent(&self) -> bool {
        self.0.budget.is_spent()
    }

    /// The tensors that the run has made.
    pub fn made(&self) -> u64 {
        self.0.budget.made.get().into()
    }

    /// How many more it may make.
    pub fn may_make(&self) -> u64 {
        u64::from(MOST).saturating_sub(self.made())
    }

    /// Spends the budget at once, before the run, if this many passes over what was declared would exceed it.
    pub fn foresee(&self, often: u64) {
        if self.made().saturating_mul(often) > u64::from(MOST) {
            self.0.budget.spent.set(true);
        }
    }
}
