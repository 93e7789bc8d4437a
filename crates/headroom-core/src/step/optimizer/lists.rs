//! Tensors like the parameters.

use std::rc::Rc;

use crate::tape::{Param, Tape, Tensor};

/// A tensor of the parameter's shape and type.
pub(crate) fn like(param: &Param) -> Tensor {
    param.data.empty_like("zeros_like", param.data.dtype())
}

/// The result of a `_foreach_*` function that is not in place: one tensor a parameter, all alive together.
pub(crate) fn list(tape: &Tape, op: &'static str, params: &[Rc<Param>]) -> Vec<Tensor> {
    let mut all = Vec::with_capacity(params.len());
    tape.each(params, |param| {
        all.push(param.data.empty_like(op, param.data.dtype()));
    });
    all
}

/// The same a chunk at a time, as timm's `_foreach_chunked` does it: chunks fill a quarter of the level-2 cache,
/// where that is at least four million elements; a larger tensor is a chunk of its own.
pub(crate) fn chunked_list(tape: &Tape, op: &'static str, params: &[Rc<Param>]) {
    const WORTH_CHUNKING: u64 = 1 << 22;
    let element = params.first().map_or(1, |param| param.data.dtype().bytes());
    let budget = tape.machine().level2_cache() / (4 * element);
    if budget < WORTH_CHUNKING {
        drop(list(tape, op, params));
        return;
    }
    let mut chunk: Vec<Tensor> = Vec::new();
    let mut filled: u64 = 0;
    tape.each(params, |param| {
        let size = param.data.numel();
        if !chunk.is_empty() && filled.saturating_add(size) > budget {
            chunk.clear();
            filled = 0;
        }
        chunk.push(param.data.empty_like(op, param.data.dtype()));
        filled = filled.saturating_add(size);
    });
}
