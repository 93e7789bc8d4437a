//! CAME as pytorch-optimizer steps it.

use std::rc::Rc;

use super::lists::{like, list};
use crate::tape::{Param, Tape, Tensor};

/// The states of pytorch_optimizer/optimizer/came.py: a moment, and rows and columns of squares and of residuals.
pub(crate) fn states(tape: &Tape, param: &Param) -> Vec<Tensor> {
    let dtype = param.data.dtype();
    let shape = *param.data.shape();
    let n = shape.len();
    if n < 2 {
        return vec![like(param), like(param)];
    }
    let row = || tape.empty("row", shape.removed(n - 1), dtype);
    let column = || tape.empty("column", shape.removed(n - 2), dtype);
    vec![like(param), row(), column(), row(), column()]
}

/// `_step_foreach` of came.py: vectors first, then matrices with their updates and residuals all at once.
pub(crate) fn step(tape: &Tape, params: &[Rc<Param>]) {
    let (matrices, vectors): (Vec<_>, Vec<_>) = params
        .iter()
        .cloned()
        .partition(|param| param.data.shape().len() >= 2);
    let squares = list(tape, "_foreach_mul", &vectors);
    drop((list(tape, "rsqrt", &vectors), squares));
    let updates = list(tape, "_foreach_mul", &matrices);
    means(&updates);
    let residuals = list(tape, "_foreach_sub", &matrices);
    means(&residuals);
    drop((updates, residuals));
}

/// The means over rows and over columns of all, as lists.
fn means(all: &[Tensor]) {
    for dim in [-1, -2] {
        drop(all.iter().map(|one| one.mean(&[dim])).collect::<Vec<_>>());
    }
}
