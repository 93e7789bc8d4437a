//! LOMO and AdaLOMO (lomo_optim/lomo.py, adalomo.py), which use each gradient up while backward runs.

use std::rc::Rc;

use crate::tape::{DType, Param, Tape, Tensor};

/// A tensor as it is in fp32: a copy of it, unless it is that already.
fn in_fp32(of: &Tensor) -> Option<Tensor> {
    (of.dtype() != DType::F32).then(|| of.empty_like("to", DType::F32))
}

/// The gradient, cast to fp32 before it is freed.
fn taken(param: &Param) -> Option<Tensor> {
    let gradient = param.grad.take()?;
    Some(in_fp32(&gradient).unwrap_or(gradient))
}

/// `fuse_update` of LOMO: gradient and weight in fp32.
pub(crate) fn lomo(tape: &Tape, params: &[Rc<Param>]) {
    tape.each(params, |param| {
        let gradient = taken(param);
        let weight = in_fp32(&param.data);
        drop((gradient, weight));
    });
}

/// The states of AdaLOMO, in fp32: a row and a column of each matrix, else everything.
pub(crate) fn factors(tape: &Tape, param: &Param) -> Vec<Tensor> {
    let zeros = |size: u64| tape.empty("zeros", [size], DType::F32);
    let shape = *param.data.shape();
    if shape.len() > 1 {
        vec![zeros(param.data.size(0)), zeros(param.data.size(1))]
    } else {
        vec![zeros(param.data.numel())]
    }
}

/// `fuse_update` of AdaLOMO.
pub(crate) fn adalomo(tape: &Tape, params: &[Rc<Param>]) {
    tape.each(params, |param| {
        let gradient = taken(param);
        let whole = || param.data.empty_like("update", DType::F32);
        let square = whole();
        let shifted = whole();
        drop(square);
        let update = if param.data.shape().len() > 1 {
            drop(shifted.mean(&[-1]));
            drop(shifted.mean(&[-2]));
            whole()
        } else {
            whole()
        };
        // The name is bound again once the new tensor exists.
        drop(shifted);
        drop(update.mean_all());
        let weight = in_fp32(&param.data);
        drop(weight.as_ref().unwrap_or(&param.data).mean_all());
        drop((gradient, update, weight));
    });
}
