//! Pipeline parallelism: which stage of a model runs, and what crosses its borders.

use std::ops::Range;

use super::{Cx, Stage};
use crate::tape::{Scope, Tensor};

impl Cx {
    /// Runs one stage's part of `forward`: the rest only computes shapes.
    pub fn stage<T>(&self, stage: Stage, forward: impl FnOnce(&Self) -> T) -> T {
        if stage == Stage::WHOLE {
            return forward(self);
        }
        let stages = &self.env.groups.stages;
        stages.running.set(stage);
        let outer = self.tape.set_shapes_only(!stage.is_first());
        let result = if stages.own.len() > 1 {
            self.list_item("stages", stage.index as usize, forward)
        } else {
            forward(self)
        };
        self.tape.set_shapes_only(outer);
        result
    }

    /// The scope of a stage's model.
    pub fn stage_scope(&self, stage: usize) -> Scope {
        let root = self.root().scope;
        if self.env.groups.stages.own.len() > 1 {
            let index = u32::try_from(stage).unwrap_or(u32::MAX);
            self.tape.scope_in(root, "stages", Some(index))
        } else {
            root
        }
    }

    /// A tensor of the batch that only the first stage takes.
    pub(in crate::nets) fn for_first_stage<T>(&self, make: impl FnOnce() -> T) -> T {
        self.where_had(self.env.groups.stages.have(Stage::is_first), make)
    }

    /// The same for the last stage.
    pub(in crate::nets) fn for_last_stage<T>(&self, make: impl FnOnce() -> T) -> T {
        self.where_had(self.env.groups.stages.have(Stage::is_last), make)
    }

    /// What each stage makes for itself, such as tables of positions.
    pub(in crate::nets) fn for_every_stage<T>(&self, make: impl FnOnce() -> T) -> T {
        self.where_had(true, make)
    }

    fn where_had<T>(&self, had: bool, make: impl FnOnce() -> T) -> T {
        let outer = self.tape.set_shapes_only(!had);
        let made = make();
        self.tape.set_shapes_only(outer);
        made
    }

    /// Enters the list of layers: returns those of the running stage, and their input state.
    /// `alike`: all layers do the same.
    pub(super) fn enter_layers(
        &self,
        layers: u64,
        alike: bool,
        state: Vec<Tensor>,
    ) -> (Range<u64>, Vec<Tensor>) {
        let stages = &self.env.groups.stages;
        if !alike {
            stages.unlike.set(true);
        }
        let stage = stages.running.get();
        let range = stage.layers(layers);
        stages.first.set(range.start);
        if stage.is_first() {
            return (range, state);
        }
        if self.tape.declaring() {
            let crossing = state.iter().map(|of| (*of.shape(), of.dtype())).collect();
            stages.crossing.replace(crossing);
        }
        self.tape.set_shapes_only(false);
        let received = stages.received.take();
        (range, if received.is_empty() { state } else { received })
    }

    /// Leaves the layers with what the next stage takes.
    pub(super) fn leave_layers(&self, state: Vec<Tensor>) -> Vec<Tensor> {
        let stages = &self.env.groups.stages;
        if stages.running.get().is_last() {
            return state;
        }
        if self.tape.declaring() {
            let crossing = state.iter().map(|of| (*of.shape(), of.dtype())).collect();
            stages.crossing.replace(crossing);
        }
        self.tape.set_shapes_only(true);
        let shapes = state.iter().map(|of| {
            let shape: &[u64] = of.shape();
            of.constant("elsewhere", shape, of.dtype())
        });
        let shapes = shapes.collect();
        stages.sent.replace(state);
        shapes
    }
}
