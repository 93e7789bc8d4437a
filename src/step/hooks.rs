//! What runs inside backward, as soon as a parameter's gradient is complete.

use std::cell::RefCell;
use std::rc::Rc;

use super::optimizer::OptimizerState;
use crate::nets::Model;
use crate::scenario::{Optimizer, Training};
use crate::tape::Hook;

/// Whether equal layers may be run once for all: not where what they do depends on which of them is run, or when.
pub fn foldable(training: &Training) -> bool {
    !training.optimizer_in_backward
        && training.checkpoint_every == 1
        && !matches!(
            training.optimizer,
            Optimizer::AdamWOffloadGradients
                | Optimizer::AdamMini
                | Optimizer::Came
                | Optimizer::GaLore
                | Optimizer::MuonAdamW
        )
}

/// Gives each trained parameter its hook, where the run has one: an optimizer of its own, or the gradient's way to the host.
pub fn install(model: &Model, training: &Training, warm: bool) {
    let offloads = training.optimizer == Optimizer::AdamWOffloadGradients;
    if !training.optimizer_in_backward && !offloads {
        return;
    }
    for param in model.trainable() {
        let hook: Rc<Hook> = if training.optimizer_in_backward {
            let state = RefCell::new(OptimizerState::new(training.optimizer, warm));
            let tape = model.tape.clone();
            Rc::new(move |param| {
                state.borrow_mut().step(&tape, std::slice::from_ref(param));
                param.grad.take();
            })
        } else {
            Rc::new(|param| {
                // torchao's `CPUOffloadOptimizer` leaves tensors of fewer than 4096 elements on the device.
                if param.data.numel() >= 4096 {
                    param.grad.take();
                }
            })
        };
        param.after.replace(Some(hook));
    }
}
