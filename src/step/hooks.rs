//! Hooks that run inside backward as soon as a parameter's gradient is complete
//! (`register_post_accumulate_grad_hook`).

use std::cell::RefCell;
use std::rc::Rc;

use super::optimizer::{KEPT_ON_DEVICE, OptimizerState};
use super::wrapper::Wrapper;
use crate::nets::Model;
use crate::scenario::{Optimizer, Training};
use crate::tape::PostAccumulateGradHook;

/// The run's hooks on each trained parameter, if any.
pub enum Hooks {
    /// Each parameter has an optimizer of its own, which steps and lets the gradient go.
    OptimizerInBackward { kind: Optimizer, warm: bool },
    /// The gradient goes to the host (`offload_gradients=True` of torchao's `CPUOffloadOptimizer`).
    GradientOffload,
}

impl Hooks {
    pub fn of(training: &Training, warm: bool) -> Option<Self> {
        let kind = training.optimizer;
        if training.optimizer_in_backward {
            Some(Self::OptimizerInBackward { kind, warm })
        } else {
            (kind == Optimizer::AdamWOffloadGradients).then_some(Self::GradientOffload)
        }
    }
}

impl Wrapper for Hooks {
    fn wrap(&mut self, model: &Model) {
        for param in model.trainable() {
            let hook: Rc<PostAccumulateGradHook> = match *self {
                Self::OptimizerInBackward { kind, warm } => {
                    let optimizer = RefCell::new(OptimizerState::new(kind, warm));
                    let tape = model.tape.clone();
                    Rc::new(move |param| {
                        let params = std::slice::from_ref(param);
                        optimizer.borrow_mut().step(&tape, params);
                        param.grad.take();
                    })
                }
                Self::GradientOffload => Rc::new(|param| {
                    if param.data.numel() >= KEPT_ON_DEVICE {
                        param.grad.take();
                    }
                }),
            };
            param.post_accumulate_grad.replace(Some(hook));
        }
    }
}
