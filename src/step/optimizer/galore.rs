//! GaLore and APOLLO: matrices projected to a low rank.

use std::rc::Rc;

use super::lists::like;
use crate::tape::{Layout, Param, Tape, Tensor};

/// The rank GaLore's README projects to.
pub const RANK: u64 = 128;
/// The ranks APOLLO's README projects to.
pub const APOLLO: u64 = 256;
pub const APOLLO_MINI: u64 = 1;

/// Whether GaLore projects it: the matrices of attention and feed-forward layers, as its example script lists.
fn projected(tape: &Tape, param: &Param) -> bool {
    let path = tape.path(param.scope);
    param.data.shape().len() == 2 && (path.contains("attn") || path.contains("mlp"))
}

/// The layout of a projected gradient and of its projector (galore_projector.py, `std`).
fn low_rank(param: &Param, rank: u64) -> [Layout; 2] {
    let (m, n) = (param.data.size(0), param.data.size(1));
    if m >= n {
        [[m, rank.min(n)], [rank.min(n), n]].map(Layout::contiguous)
    } else {
        [[rank.min(m), n], [m, rank.min(m)]].map(Layout::contiguous)
    }
}

pub fn states(tape: &Tape, param: &Param, rank: u64) -> Vec<Tensor> {
    if !projected(tape, param) {
        return vec![like(param), like(param)];
    }
    let dtype = param.data.dtype();
    let [low, projector] = low_rank(param, rank);
    vec![
        tape.empty_as("ortho_matrix", projector, dtype),
        tape.empty_as("exp_avg", low, dtype),
        tape.empty_as("exp_avg_sq", low, dtype),
    ]
}

/// `GaLoreAdamW.step`: plain tensors first, as its parameter groups stand.
pub fn step(tape: &Tape, params: &[Rc<Param>]) {
    let (low, plain): (Vec<_>, Vec<_>) = params
        .iter()
        .cloned()
        .partition(|param| projected(tape, param));
    let mut names: [Option<Tensor>; 3] = [None, None, None];
    tape.each(&plain, |param| {
        drop(names[0].replace(like(param)));
        drop(names[1].replace(like(param)));
    });
    tape.each(&low, |param| {
        let dtype = param.data.dtype();
        let [layout, _] = low_rank(param, RANK);
        drop(names[2].replace(tape.empty_as("matmul", layout, dtype)));
        drop(names[0].replace(tape.empty_as("sqrt", layout, dtype)));
        drop(names[1].replace(tape.empty_as("div", layout, dtype)));
        let full = like(param);
        drop(names[1].replace(like(param)));
        drop(full);
    });
}

/// `AdamW.step` of APOLLO: the gradient's scale is found in the low rank, and the whole gradient scaled by it.
pub fn apollo(tape: &Tape, params: &[Rc<Param>], rank: u64) {
    let (low, plain): (Vec<_>, Vec<_>) = params
        .iter()
        .cloned()
        .partition(|param| projected(tape, param));
    let mut names: [Option<Tensor>; 4] = [None, None, None, None];
    tape.each(&plain, |param| {
        drop(names[0].replace(like(param)));
        drop(names[1].replace(like(param)));
    });
    tape.each(&low, |param| {
        let dtype = param.data.dtype();
        let [layout, _] = low_rank(param, rank);
        drop(names[2].replace(tape.empty_as("matmul", layout, dtype)));
        drop(names[0].replace(tape.empty_as("sqrt", layout, dtype)));
        drop(names[1].replace(tape.empty_as("div", layout, dtype)));
        // The limiter divides into a new tensor; the first is let go with its name.
        drop(names[3].replace(like(param)));
        let limited = like(param);
        drop(names[3].replace(limited.clone()));
        drop(names[1].replace(limited));
    });
}
