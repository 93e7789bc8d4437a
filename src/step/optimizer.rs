//! Optimizers: what each keeps and what its step takes besides.

use std::rc::Rc;

use super::persistent;
use crate::scenario::Optimizer;
use crate::tape::{Param, Tape, Tensor};

/// The states an optimizer keeps, made in its first step.
pub struct OptimizerState {
    kind: Optimizer,
    states: Vec<Vec<Tensor>>,
}

impl OptimizerState {
    pub fn new(kind: Optimizer) -> Self {
        Self {
            kind,
            states: Vec::new(),
        }
    }

    pub fn step(&mut self, tape: &Tape, params: &[Rc<Param>]) {
        if self.states.is_empty() {
            self.states = params.iter().map(|param| self.fresh(tape, param)).collect();
        }
        match self.kind {
            Optimizer::AdamW => {
                // `_multi_tensor_adamw`: `_foreach_sqrt` of all second moments exists at once.
                let temporaries: Vec<Tensor> =
                    params.iter().map(|param| like(tape, param)).collect();
                drop(temporaries);
            }
            Optimizer::AdamWLoop => {
                for param in params {
                    // `_single_tensor_adamw`: the denominator, as a square root and its quotient.
                    let root = like(tape, param);
                    drop(like(tape, param));
                    drop(root);
                }
            }
            _ => {}
        }
    }

    fn fresh(&self, tape: &Tape, param: &Param) -> Vec<Tensor> {
        let count = match self.kind {
            Optimizer::AdamW | Optimizer::AdamWFused | Optimizer::AdamWLoop => 2,
            Optimizer::SgdMomentum
            | Optimizer::Lion
            | Optimizer::LionForeach
            | Optimizer::Adagrad
            | Optimizer::RmsProp => 1,
            _ => 0,
        };
        (0..count)
            .map(|_| {
                let state = like(tape, param);
                persistent(&state);
                state
            })
            .collect()
    }
}

fn like(tape: &Tape, param: &Param) -> Tensor {
    tape.empty_as("zeros_like", *param.data.layout(), param.data.dtype())
}
