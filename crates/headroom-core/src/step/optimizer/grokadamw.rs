//! GrokAdamW, which keeps its states on the host.

use std::rc::Rc;

use super::lists::like;
use crate::tape::{Param, Tape, Tensor};

/// `_update_group` of grokadamw.py: three states come to the device for a parameter's turn, whose names hold the last
/// parameter's until then.
pub(crate) fn step(tape: &Tape, params: &[Rc<Param>]) {
    let mut moments: Option<[Tensor; 2]> = None;
    let mut averages: Option<Tensor> = None;
    let mut gradient: Option<Tensor> = None;
    tape.each(params, |param| {
        drop(moments.replace([like(param), like(param)]));
        drop(averages.replace(like(param)));
        // `grad + lamb * grok_ema`.
        let scaled = like(param);
        let sum = like(param);
        drop(scaled);
        drop(gradient.replace(sum));
        drop(like(param));
    });
}

/// Bytes of a parameter's three states.
pub(crate) fn on_host(param: &Param) -> u64 {
    param.data.bytes().saturating_mul(3)
}
