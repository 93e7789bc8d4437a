//! Lion as lion-pytorch steps it.

use std::rc::Rc;

use super::lists::like;
use crate::tape::{Param, Tape};

/// `update_fn` of lion_pytorch.py: a copy of the average and its sum with the gradient.
pub(crate) fn for_loop(tape: &Tape, params: &[Rc<Param>]) {
    tape.each(params, |param| {
        let copy = like(param);
        let update = like(param);
        drop((copy, update));
    });
}
