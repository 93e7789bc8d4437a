//! SOAP and Shampoo as pytorch-optimizer steps them: preconditioners of rows and of columns.
//!
//! Eigenvectors and singular vectors come from cuSOLVER, whose workspace is not counted.

use std::rc::Rc;

use super::lists::like;
use super::rule::Step;
use crate::tape::{Param, Tape, Tensor};

/// SOAP leaves larger dimensions as they are (`max_precondition_dim`).
const WIDEST: u64 = 10_000;

fn square(tape: &Tape, param: &Param, size: u64) -> Tensor {
    tape.empty("matmul", [size, size], param.data.dtype())
}

/// The dimensions that SOAP has a preconditioner of: none of a vector's (`precondition_1d`).
fn dimensions(param: &Param) -> Vec<u64> {
    let shape = *param.data.shape();
    let all = shape.iter().copied();
    if shape.len() < 2 {
        return Vec::new();
    }
    all.filter(|size| *size <= WIDEST).collect()
}

/// The states of soap.py: two moments, and of each dimension a preconditioner and its eigenvectors.
pub(crate) fn states(tape: &Tape, param: &Param) -> Vec<Tensor> {
    let mut states = vec![like(param), like(param)];
    for size in dimensions(param) {
        states.extend([square(tape, param, size), square(tape, param, size)]);
    }
    states
}

/// `SOAP.step`, which the first step of a run only prepares.
pub(crate) fn soap(step: &mut Step) {
    let tape = step.tape;
    let mut names: [Option<Tensor>; 4] = [None, None, None, None];
    let first = step.first;
    tape.each(step.params, |param| {
        let dimensions = dimensions(param);
        if first {
            for size in dimensions {
                outer_product(tape, param, size);
                // `m + 1e-30 * eye`, its eigenvectors, and these the other way round.
                drop([(); 4].map(|()| square(tape, param, size)));
            }
            return;
        }
        let matrix = param.data.shape().len() > 1;
        let projected = || {
            let mut result: Option<Tensor> = None;
            for _ in &dimensions {
                let next = like(param);
                tape.cublas_workspace();
                drop(result.replace(next));
            }
            result
        };
        bind(&mut names[0], projected());
        drop(like(param));
        bind(&mut names[1], Some(like(param)));
        bind(&mut names[2], projected());
        let quotient = like(param);
        let update = if matrix { projected() } else { None };
        bind(&mut names[3], update.or_else(|| Some(quotient.clone())));
        drop(quotient);
        for size in &dimensions {
            outer_product(tape, param, *size);
        }
        for size in dimensions {
            // `get_orthogonal_matrix_qr`, every tenth step: products, the sorted one in fp32, and its factors.
            let sorted = like(param);
            drop([(); 4].map(|()| square(tape, param, size)));
            drop(sorted);
        }
    });
}

/// Rebinding a name frees its old value.
fn bind(name: &mut Option<Tensor>, to: Option<Tensor>) {
    drop(std::mem::replace(name, to));
}

fn outer_product(tape: &Tape, param: &Param, size: u64) {
    let product = square(tape, param, size);
    tape.cublas_workspace();
    drop(product);
}

/// The states of shampoo.py: of every dimension a preconditioner and its inverse root.
pub(crate) fn preconditioners(tape: &Tape, param: &Param) -> Vec<Tensor> {
    let sizes = param.data.shape().iter().copied();
    sizes
        .flat_map(|size| [square(tape, param, size), square(tape, param, size)])
        .collect()
}

/// `Shampoo.step`; the last product stays as `momentum_buffer`.
pub(crate) fn shampoo(tape: &Tape, params: &[Rc<Param>]) {
    let mut gradient: Option<Tensor> = None;
    tape.each(params, |param| {
        let sizes: Vec<u64> = param.data.shape().iter().copied().collect();
        for size in sizes {
            let unfolded = like(param);
            let transposed = like(param);
            tape.cublas_workspace();
            // `compute_power_svd`: both sides' vectors, the roots on a diagonal, and the products.
            drop([(); 5].map(|()| square(tape, param, size)));
            let product = like(param);
            tape.cublas_workspace();
            drop((unfolded, transposed));
            drop(gradient.replace(product));
        }
    });
}
