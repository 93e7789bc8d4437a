//! The stages of a pipeline that a GPU has.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use crate::tape::{DType, Dims, Tensor};

/// One of the consecutive parts of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    pub index: u64,
    pub count: u64,
}

impl Stage {
    /// The whole model.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    pub const fn is_first(self) -> bool {
        self.index == 0
    }

    pub const fn is_last(self) -> bool {
        self.index + 1 >= self.count
    }

    /// Its share of `layers`: the first stages have one more where they do not divide evenly.
    pub(super) fn layers(self, layers: u64) -> Range<u64> {
        let (each, more) = (layers / self.count.max(1), layers % self.count.max(1));
        let start = |stage: u64| stage * each + stage.min(more);
        start(self.index)..start(self.index + 1)
    }
}

/// The stages of a model that this GPU has, and what passes between them and the others.
#[derive(Debug)]
pub struct Stages {
    pub own: Vec<Stage>,
    pub(super) running: Cell<Stage>,
    /// The first layer of the list that runs.
    pub(super) first: Cell<u64>,
    /// What the stage before has sent, for the pass that begins.
    pub received: RefCell<Vec<Tensor>>,
    /// What the stage that has run hands to the next.
    pub sent: RefCell<Vec<Tensor>>,
    /// What crosses each border.
    pub crossing: RefCell<Vec<(Dims, DType)>>,
    /// Some layers are not like the others.
    pub(super) unlike: Cell<bool>,
}

impl Stages {
    pub fn new(own: Vec<Stage>) -> Self {
        Self {
            running: Cell::new(own.first().copied().unwrap_or(Stage::WHOLE)),
            own,
            first: Cell::default(),
            received: RefCell::default(),
            sent: RefCell::default(),
            crossing: RefCell::default(),
            unlike: Cell::default(),
        }
    }

    /// Whether all layers so far were equal, so that inner stages with as many layers do the same.
    pub fn have_like_layers(&self) -> bool {
        !self.unlike.get()
    }

    pub(super) fn have(&self, wanted: impl Fn(Stage) -> bool) -> bool {
        self.own.is_empty() || self.own.iter().any(|stage| wanted(*stage))
    }
}

impl Default for Stages {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_have_all_layers_between_them() {
        let check = |layers, count, expected: &[u64]| {
            let sizes: Vec<u64> = (0..count)
                .map(|index| Stage { index, count }.layers(layers))
                .map(|range| range.end - range.start)
                .collect();
            assert_eq!(sizes, expected);
        };
        check(32, 1, &[32]);
        check(22, 4, &[6, 6, 5, 5]);
        check(3, 4, &[1, 1, 1, 0]);
    }
}
