//! What an optimizer's step does with gradients whose placements differ from their parameters'.

use std::rc::Rc;

use crate::tape::{Param, Tape, Tensor};

/// Gradients as the optimizer's operations take them: of a table that is split by rows each GPU has the full gradient, and
/// copies its part (`redistribute_local_tensor` in torch/distributed/tensor/_redistribute.py).
pub(crate) fn laid_out_as_parameters(tape: &Tape, params: &[Rc<Param>]) -> Vec<Tensor> {
    let is_whole = |param: &&Rc<Param>| {
        let gradient = param.grad.borrow();
        gradient
            .as_ref()
            .is_some_and(|gradient| gradient.numel() > param.data.numel())
    };
    let parts = params.iter().filter(is_whole);
    parts
        .map(|param| tape.empty("split", *param.data.shape(), param.data.dtype()))
        .collect()
}
