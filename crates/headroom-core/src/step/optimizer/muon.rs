//! Muon (torch/optim/_muon.py).

use std::rc::Rc;

use super::adam;
use super::lists::like;
use crate::tape::{DType, Param, Tape, Tensor};

/// `_single_tensor_muon` with its defaults: Nesterov momentum and five Newton–Schulz rounds in bf16.
pub(crate) fn single(tape: &Tape, params: &[Rc<Param>]) {
    const ROUNDS: usize = 5;
    let mut update: Option<Tensor> = None;
    tape.each(params, |param| {
        let momentum = like(param);
        // The previous `update` is freed when `grad.lerp` is bound to its name.
        drop(update.replace(momentum));
        let (n, m) = (param.data.size(0), param.data.size(1));
        let small = n.min(m);
        let mut orthogonal = param.data.empty_like("to", DType::BF16);
        let norm = orthogonal.mean_all();
        drop(norm.pipe(|norm| norm.constant("clamp", &[0; 0], DType::BF16)));
        let mut gram: Option<Tensor> = None;
        let mut gram_update: Option<Tensor> = None;
        for round in 0..ROUNDS {
            let product = tape.empty("matmul", [small, small], DType::BF16);
            tape.cublas_workspace();
            multiplied(tape, small, n.max(m), small);
            drop(gram.replace(product));
            let added = |columns, lies_across: bool| {
                let sum = tape.empty("addmm", [small, columns], DType::BF16);
                if lies_across {
                    tape.cublas_workspace();
                } else {
                    tape.cublaslt_workspace();
                }
                multiplied(tape, small, small, columns);
                sum
            };
            drop(gram_update.replace(added(small, false)));
            // A tall matrix is a transposed view until its first product.
            let next = added(n.max(m), n > m && round == 0);
            drop(std::mem::replace(&mut orthogonal, next));
        }
        drop((gram, gram_update));
        drop(update.replace(orthogonal));
    });
}

/// Whether the mixed recipe gives the parameter to Muon: a matrix of a layer.
fn is_layers_matrix(tape: &Tape, param: &Param) -> bool {
    let path = tape.path(param.scope);
    param.data.shape().len() == 2 && !path.contains("embed") && !path.contains("lm_head")
}

/// The states of the mixed recipe: momentum, or Adam's two.
pub(crate) fn states_with_adam(tape: &Tape, param: &Param) -> Vec<Tensor> {
    let count = if is_layers_matrix(tape, param) { 1 } else { 2 };
    (0..count).map(|_| like(param)).collect()
}

/// A step of Muon over the matrices of layers, and then one of AdamW over all else.
pub(crate) fn with_adam(tape: &Tape, params: &[Rc<Param>]) {
    let (matrices, others): (Vec<_>, Vec<_>) = params
        .iter()
        .cloned()
        .partition(|param| is_layers_matrix(tape, param));
    single(tape, &matrices);
    adam::foreach(tape, &others);
}

/// The work of an `n×k` by `k×m` product in bf16.
fn multiplied(tape: &Tape, n: u64, k: u64, m: u64) {
    let (n, k, m) = (n as f64, k as f64, m as f64);
    let moved = 2.0 * (n * k + k * m + n * m);
    tape.kernel("linear", DType::BF16, 2.0 * n * k * m, moved);
}
