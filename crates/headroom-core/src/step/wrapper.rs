//! Wrappers applied to a model between its construction and its first pass.

use crate::nets::Model;

/// Something around a model: memory of its own, hooks on the parameters, and what it does at the model's passes.
pub(crate) trait Wrapper {
    /// Wraps the model before its first pass.
    fn wrap(&mut self, model: &Model);

    fn before_forward(&mut self, _model: &Model, _pass: Pass) {}

    fn before_backward(&mut self, _pass: Pass) {}

    /// Once the optimizer has stepped, before gradients are freed.
    fn after_step(&mut self, _model: &Model) {}

    /// Whether a step does what the one before it did, from the third on.
    fn repeats(&self) -> bool {
        true
    }
}

/// A pass through the model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    pub step: u32,
    /// The first micro-batch of the step.
    pub first: bool,
    /// The last one: its backward completes the gradients.
    pub last: bool,
}

impl Pass {
    /// The pass of the micro-batch at `place` among those of a step.
    pub(crate) const fn of(step: u32, place: usize, count: usize) -> Self {
        Self {
            step,
            first: place == 0,
            last: place + 1 == count,
        }
    }
}
