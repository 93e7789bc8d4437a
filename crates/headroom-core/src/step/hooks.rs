//! Hooks that run inside backward as soon as a parameter's gradient is complete
//! (`register_post_accumulate_grad_hook`).

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use super::optimizer::{KEPT_ON_DEVICE, OptimizerState};
use super::wrapper::Wrapper;
use crate::nets::Model;
use crate::tape::{Param, PostAccumulateGradHook};
use headroom_scenario::{Optimizer, Training};

/// The run's hooks on each trained parameter, if any.
pub(crate) enum Hooks {
    /// Each parameter has its own optimizer, which steps and frees the gradient.
    OptimizerInBackward { kind: Optimizer, warm: bool },
    /// The gradient that was made before this one is used up (`Lomo.fused_backward`); the last one, when backward is over.
    GradientsUsedUp { kind: Optimizer, warm: bool },
    /// The gradient goes to the host (`offload_gradients=True` of torchao's `CPUOffloadOptimizer`).
    GradientOffload,
}

/// A parameter with a gradient, and the optimizer that will consume it.
struct PendingStep {
    param: Weak<Param>,
    optimizer: Rc<RefCell<OptimizerState>>,
}

impl Hooks {
    pub(crate) fn of(training: &Training, warm: bool) -> Option<Self> {
        let kind = training.optimizer;
        if training.optimizer_in_backward {
            Some(Self::OptimizerInBackward { kind, warm })
        } else if kind.consumes_gradients() {
            Some(Self::GradientsUsedUp { kind, warm })
        } else {
            (kind == Optimizer::AdamWOffloadGradients).then_some(Self::GradientOffload)
        }
    }
}

impl Wrapper for Hooks {
    fn wrap(&mut self, model: &Model) {
        let waiting: Rc<RefCell<Option<PendingStep>>> = Rc::default();
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
                Self::GradientsUsedUp { kind, warm } => {
                    let own = Rc::new(RefCell::new(OptimizerState::new(kind, warm)));
                    let tape = model.tape.clone();
                    let waiting = waiting.clone();
                    Rc::new(move |param| {
                        let next = PendingStep {
                            param: Rc::downgrade(param),
                            optimizer: own.clone(),
                        };
                        let before = waiting.borrow_mut().replace(next);
                        let Some(PendingStep { param, optimizer }) = before else {
                            return;
                        };
                        // That of the step before was used up when its backward was over.
                        if let Some(param) = param.upgrade() {
                            let params = std::slice::from_ref(&param);
                            optimizer.borrow_mut().step(&tape, params);
                        }
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
