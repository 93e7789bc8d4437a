//! Adam and AdamW (torch/optim/adam.py).

use crate::order::Map;
use std::rc::Rc;

use super::lists::{list, same};
use crate::tape::{DType, Param, Tape, Tensor};

/// `_multi_tensor_adam`: `exp_avg_sq_sqrt` of all parameters of one type exists at once.
pub fn foreach(tape: &Tape, params: &[Rc<Param>]) {
    let mut groups: Map<DType, Vec<Rc<Param>>> = Map::new();
    for param in params {
        groups.or_default(param.data.dtype()).push(param.clone());
    }
    let mut roots: Vec<Tensor> = Vec::new();
    for group in groups.values() {
        // The name is bound again only once the next group's list exists.
        let next = list(tape, "_foreach_sqrt", group);
        drop(std::mem::replace(&mut roots, next));
    }
}

/// The same in torch 2.0: `denom` exists beside the roots.
pub fn two_lists(tape: &Tape, params: &[Rc<Param>]) {
    let roots = list(tape, "_foreach_sqrt", params);
    drop((list(tape, "_foreach_add", params), roots));
}

/// `_single_tensor_adam`: `denom` is a root and its quotient, and lives until the next parameter's takes its name.
pub fn for_loop(tape: &Tape, params: &[Rc<Param>]) {
    let mut denominator: Option<Tensor> = None;
    tape.each(params, |param| {
        let root = same(param);
        let quotient = same(param);
        drop(root);
        drop(denominator.replace(quotient));
    });
}
