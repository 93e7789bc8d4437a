//! Tensors like the parameters.

use std::rc::Rc;

use crate::tape::{Param, Tape, Tensor};

/// A tensor of the parameter's shape and type.
pub fn same(tape: &Tape, param: &Param) -> Tensor {
    tape.empty_as("zeros_like", *param.data.layout(), param.data.dtype())
}

/// The result of a `_foreach_*` function that is not in place: one tensor a parameter, all alive together.
pub fn list(tape: &Tape, op: &'static str, params: &[Rc<Param>]) -> Vec<Tensor> {
    let mut all = Vec::with_capacity(params.len());
    tape.each(params, |param| {
        all.push(tape.empty_as(op, *param.data.layout(), param.data.dtype()));
    });
    all
}
