//! Pipeline parallelism: which stage of a model runs, and what crosses its borders.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use super::Cx;
use crate::tape::{DType, Dims, Scope, Tensor};

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

    /// Its layers of so many: the first stages have one more where they do not divide evenly.
    fn layers(self, layers: u64) -> Range<u64> {
        let (each, more) = (layers / self.count.max(1), layers % self.count.max(1));
        let start = |stage: u64| stage * each + stage.min(more);
        start(self.index)..start(self.index + 1)
    }
}

/// The stages of a model that this GPU has, and what passes between them and the others.
#[derive(Debug)]
pub struct Stages {
    pub own: Vec<Stage>,
    running: Cell<Stage>,
    /// What the stage before has sent, for the pass that begins.
    pub received: RefCell<Vec<Tensor>>,
    /// What the stage that has run hands to the next.
    pub sent: RefCell<Vec<Tensor>>,
    /// What crosses each border.
    pub crossing: RefCell<Vec<(Dims, DType)>>,
    /// Some layers are not like the others.
    unlike: Cell<bool>,
}

impl Stages {
    pub fn new(own: Vec<Stage>) -> Self {
        Self {
            running: Cell::new(own.first().copied().unwrap_or(Stage::WHOLE)),
            own,
            received: RefCell::default(),
            sent: RefCell::default(),
            crossing: RefCell::default(),
            unlike: Cell::default(),
        }
    }

    /// Whether all layers were alike so far, so that stages between the ends with as many do the same.
    pub fn have_like_layers(&self) -> bool {
        !self.unlike.get()
    }

    fn have(&self, wanted: impl Fn(Stage) -> bool) -> bool {
        self.own.is_empty() || self.own.iter().any(|stage| wanted(*stage))
    }
}

impl Default for Stages {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl Cx {
    /// Runs one stage's part of `forward`: what stands outside of it only gives shapes.
    pub fn stage<T>(&self, stage: Stage, forward: impl FnOnce(&Self) -> T) -> T {
        if stage == Stage::WHOLE {
            return forward(self);
        }
        let stages = &self.env.stages;
        stages.running.set(stage);
        let outer = self.tape.leave_out(!stage.is_first());
        let result = if stages.own.len() > 1 {
            self.list_item("stages", stage.index as usize, forward)
        } else {
            forward(self)
        };
        self.tape.leave_out(outer);
        result
    }

    /// The scope of a stage's model.
    pub fn stage_scope(&self, stage: usize) -> Scope {
        let root = self.root().scope;
        if self.env.stages.own.len() > 1 {
            let index = u32::try_from(stage).unwrap_or(u32::MAX);
            self.tape.scope_in(root, "stages", Some(index))
        } else {
            root
        }
    }

    /// A tensor of the batch that only the first stage takes.
    pub(in crate::nets) fn for_first_stage<T>(&self, make: impl FnOnce() -> T) -> T {
        self.where_had(self.env.stages.have(Stage::is_first), make)
    }

    /// The same of the last stage.
    pub(in crate::nets) fn for_last_stage<T>(&self, make: impl FnOnce() -> T) -> T {
        self.where_had(self.env.stages.have(Stage::is_last), make)
    }

    /// What each stage makes for itself, such as tables of positions.
    pub(in crate::nets) fn for_every_stage<T>(&self, make: impl FnOnce() -> T) -> T {
        self.where_had(true, make)
    }

    fn where_had<T>(&self, had: bool, make: impl FnOnce() -> T) -> T {
        let outer = self.tape.leave_out(!had);
        let made = make();
        self.tape.leave_out(outer);
        made
    }

    /// Comes to the layers: those of the stage that runs, and the state they begin with.
    /// `alike` says that each does what the others do.
    pub(super) fn enter_layers(
        &self,
        layers: u64,
        alike: bool,
        state: Vec<Tensor>,
    ) -> (Range<u64>, Vec<Tensor>) {
        let stages = &self.env.stages;
        if !alike {
            stages.unlike.set(true);
        }
        let stage = stages.running.get();
        let range = stage.layers(layers);
        if stage.is_first() {
            return (range, state);
        }
        if self.tape.declaring() {
            let crossing = state.iter().map(|of| (*of.shape(), of.dtype())).collect();
            stages.crossing.replace(crossing);
        }
        self.tape.leave_out(false);
        let received = stages.received.take();
        (range, if received.is_empty() { state } else { received })
    }

    /// Leaves the layers with what the next stage takes.
    pub(super) fn leave_layers(&self, state: Vec<Tensor>) -> Vec<Tensor> {
        let stages = &self.env.stages;
        if stages.running.get().is_last() {
            return state;
        }
        if self.tape.declaring() {
            let crossing = state.iter().map(|of| (*of.shape(), of.dtype())).collect();
            stages.crossing.replace(crossing);
        }
        self.tape.leave_out(true);
        let shapes = state.iter().map(|of| {
            let shape: &[u64] = of.shape();
            of.constant("elsewhere", shape, of.dtype())
        });
        let shapes = shapes.collect();
        stages.sent.replace(state);
        shapes
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
