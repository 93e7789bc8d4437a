//! `torch.nn.utils.clip_grad_norm_`.

use std::rc::Rc;

use crate::tape::{DType, Param, Tape, Tensor};

/// The norms of all gradients, their norm, and a product in place.
pub(crate) fn clip_by_norm(tape: &Tape, params: &[Rc<Param>]) {
    let scalar = || tape.empty("clip_grad_norm", [0; 0], DType::F32);
    let params = params.iter().filter(|param| param.grad.borrow().is_some());
    let mut norms: Vec<Tensor> = Vec::new();
    let (mut count, mut bytes) = (0, 0.0);
    tape.each(params, |param| {
        norms.push(scalar());
        count += param.copies();
        bytes += (param.data.bytes().saturating_mul(param.copies())) as f64;
    });
    // Gradients are read for their norms, then read and written where they are scaled; tensors go in lists.
    tape.launches("clip_grad_norm", DType::F32, [0.0, 3.0 * bytes], 8);
    let stacked = tape.empty("stack", [count], DType::F32);
    let total = scalar();
    drop((stacked, norms));
    let shifted = scalar();
    let coefficient = scalar();
    drop(shifted);
    let clamped = scalar();
    drop((clamped, coefficient, total));
}
