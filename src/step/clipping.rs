//! `torch.nn.utils.clip_grad_norm_`.

use std::rc::Rc;

use crate::tape::{DType, Param, Tape, Tensor};

/// The norms of all gradients, their norm, and a product in place.
pub fn clip_by_norm(tape: &Tape, params: &[Rc<Param>]) {
    let scalar = || tape.empty("clip_grad_norm", [0; 0], DType::F32);
    let norms: Vec<Tensor> = params
        .iter()
        .filter(|param| param.grad.borrow().is_some())
        .map(|_| scalar())
        .collect();
    let stacked = tape.empty("stack", [norms.len() as u64], DType::F32);
    let total = scalar();
    drop((stacked, norms));
    let shifted = scalar();
    let coefficient = scalar();
    drop(shifted);
    let clamped = scalar();
    drop((clamped, coefficient, total));
}
