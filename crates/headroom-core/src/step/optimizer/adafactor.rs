//! Adafactor: torch's and transformers'.

use std::rc::Rc;

use super::rule::Step;
use super::rule::as_states;
use crate::tape::{Category, DType, Dims, Layout, Param, Tape, Tensor};

/// The states of torch/optim/_adafactor.py: a row and a column where there are two dimensions, else everything.
pub(crate) fn factors(tape: &Tape, param: &Param) -> Vec<Tensor> {
    let dtype = param.data.dtype();
    if param.data.shape().len() > 1 {
        vec![
            tape.empty_as("row_var", reduced(param, 1), dtype),
            tape.empty_as("col_var", reduced(param, 2), dtype),
        ]
    } else {
        vec![param.data.empty_like("variance", dtype)]
    }
}

/// `_single_tensor_adafactor`, which is the default: names of one round live into the next.
pub(crate) fn torch(tape: &Tape, params: &[Rc<Param>], states: &[Vec<Tensor>]) {
    let mut row_mean = None;
    let mut column_mean = None;
    let mut square = None;
    let mut update: Option<Tensor> = None;
    // A norm reduces as a mean does.
    let norm = |of: &Tensor| drop(of.mean_all());
    let mut at = 0;
    tape.each(params, |param| {
        let (data, dtype) = (&param.data, param.data.dtype());
        norm(data);
        let estimate = if data.shape().len() > 1 {
            drop(row_mean.replace(data.mean(&[-1])));
            drop(column_mean.replace(data.mean(&[-2])));
            let product = data.empty_like("matmul", dtype);
            tape.cublas_workspace();
            let rows = states.get(at).and_then(|all| all.first());
            drop(rows.map(|rows| rows.mean(&[-2])));
            product
        } else {
            drop(square.replace(data.empty_like("mul", dtype)));
            data.empty_like("clone", dtype)
        };
        // `update` is `var_estimate` changed in place: the old one is freed when both names are rebound.
        norm(update.insert(estimate));
        at += 1;
    });
}

/// The states of transformers/optimization.py, in fp32.
fn transformers_states(tape: &Tape, param: &Param) -> Vec<Tensor> {
    let layout = *param.data.layout();
    if layout.shape.len() >= 2 {
        vec![
            tape.empty("exp_avg_sq_row", without(&layout.shape, 1), DType::F32),
            tape.empty("exp_avg_sq_col", without(&layout.shape, 2), DType::F32),
        ]
    } else {
        vec![tape.empty_as("adafactor", layout, DType::F32)]
    }
}

/// The states as they are after a step.
pub(crate) fn states_after_a_step(tape: &Tape, param: &Param) -> Vec<Tensor> {
    let mut states = transformers_states(tape, param);
    states.push(scalar(tape));
    states
}

/// The loop of transformers/optimization.py, which keeps everything in fp32.
pub(crate) fn transformers(step: &mut Step) {
    let (tape, first) = (step.tape, step.first);
    let states = &mut *step.states;
    let mut gradient: Option<Tensor> = None;
    let mut weight: Option<Tensor> = None;
    let mut update: Option<Tensor> = None;
    let mut at = 0;
    tape.each(step.params, |param| {
        let data = &param.data;
        let layout = *data.layout();
        let whole = || tape.empty_as("adafactor", layout, DType::F32);
        let half = data.dtype().is_half();
        // `grad = p.grad` lets the last copy go before the next is made.
        gradient.take();
        if half {
            gradient = Some(whole());
        }
        if first {
            states.push(as_states(transformers_states(tape, param)));
        }
        weight.take();
        if half {
            weight = Some(whole());
        }
        // `state["RMS"]` stays on the device.
        let size = root_mean_square(weight.as_ref().unwrap_or(data));
        size.set_category(Category::OptimizerStates);
        if let Some(state) = states.get_mut(at) {
            state.retain(|kept| !kept.shape().is_empty());
            state.push(size);
        }
        let square = whole();
        let shifted = whole();
        drop(square);
        drop(update.replace(shifted));
        let product = if layout.shape.len() >= 2 {
            if let Some(update) = &update {
                drop(update.mean(&[-1]));
                drop(update.mean(&[-2]));
            }
            // `_approx_sq_grad`: the rows over their mean, then the columns' roots.
            let mean = states
                .get(at)
                .and_then(|state| state.first())
                .map(|row| row.mean(&[-1]));
            let rows = tape.empty("r_factor", without(&layout.shape, 1), DType::F32);
            drop(mean);
            let columns = tape.empty("c_factor", without(&layout.shape, 2), DType::F32);
            let product = whole();
            drop((rows, columns));
            product
        } else {
            whole()
        };
        update = Some(product);
        if let Some(update) = &update {
            // Held against the clip threshold, by `clamp_` in place.
            drop(root_mean_square(update).pipe(|size| scalar(&size.tape())));
        }
        // `-update`.
        drop(whole());
        at += 1;
    });
}

/// `_rms`: a norm, which reduces as a mean of everything does, and its quotient.
fn root_mean_square(of: &Tensor) -> Tensor {
    let norm = of.mean_all();
    let size = scalar(&of.tape());
    drop(norm);
    size
}

fn without(shape: &Dims, from_end: usize) -> Dims {
    shape.removed(shape.len().saturating_sub(from_end))
}

/// A scalar on the device.
fn scalar(tape: &Tape) -> Tensor {
    tape.empty("scalar", [0; 0], DType::F32)
}

/// The layout of a factor: the last dimension, or the one before it, reduced to one.
fn reduced(param: &Param, from_end: usize) -> Layout {
    let shape = *param.data.shape();
    Layout::contiguous(shape.with(shape.len().saturating_sub(from_end), 1))
}
