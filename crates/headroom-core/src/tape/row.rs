//! Rows of equal layers, of which one is run for all.

use std::num::NonZeroU32;

use super::Scope;

/// How much of a row of equal layers is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folding {
    /// Each layer is run by itself.
    Nothing,
    /// The layers between the first and the last.
    Between,
    /// All from the second on.
    FromSecond,
}

impl Folding {
    /// The next weaker folding, to try after a broken trace.
    pub const fn less(self) -> Option<Self> {
        match self {
            Self::FromSecond => Some(Self::Between),
            Self::Between => Some(Self::Nothing),
            Self::Nothing => None,
        }
    }
}

/// The id of one folded row, which its nodes and parameters carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    pub(super) id: NonZeroU32,
    pub(super) times: u32,
    /// How many layers make one repeat.
    pub(super) period: u32,
}

impl Fold {
    pub const fn times(self) -> u32 {
        self.times
    }
}

/// The group being recorded, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tape) struct Open(pub(super) Option<Position>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub fold: Fold,
    pub event: usize,
    pub setup: usize,
    pub storage: usize,
    pub scope: usize,
}

impl Open {
    pub(in crate::tape) fn fold(self) -> Option<Fold> {
        self.0.map(|mark| mark.fold)
    }
    pub(in crate::tape) fn times(self) -> u32 {
        self.0.map_or(1, |mark| mark.fold.times)
    }
    /// How many modules a scope inside `parent` represents: layers, not their children.
    pub(in crate::tape) fn times_of(self, parent: Scope) -> u32 {
        self.0
            .filter(|mark| (parent.0 as usize) < mark.scope)
            .map_or(1, |mark| (mark.fold.times - 1) * mark.fold.period + 1)
    }
}
