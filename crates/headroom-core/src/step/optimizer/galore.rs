//! GaLore and APOLLO: matrices projected to a low rank.

use std::rc::Rc;

use super::bitsandbytes;
use super::lists::like;
use super::rule::Step;
use super::rule::as_states;
use crate::tape::{DType, Layout, Param, Tape, Tensor};

/// The rank GaLore's README projects to.
pub(crate) const RANK: u64 = 128;
/// The ranks APOLLO's README projects to.
pub(crate) const APOLLO: u64 = 256;
pub(crate) const APOLLO_MINI: u64 = 1;

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

/// The projector of a gradient of this type: a copy in 16 bits, but of fp32 a view of all singular vectors, which it keeps.
fn decomposed_projector(tape: &Tape, param: &Param, gradient: DType) -> Tensor {
    let least = param.data.size(0).min(param.data.size(1));
    if gradient == DType::F32 {
        return tape.empty("ortho_matrix", [least, least], gradient);
    }
    projector(tape, param, RANK, gradient)
}

/// A projector that is a tensor of its own.
fn projector(tape: &Tape, param: &Param, rank: u64, dtype: DType) -> Tensor {
    let [_, layout] = low_rank(param, rank);
    tape.empty_as("ortho_matrix", layout, dtype)
}

/// Parameters that are projected, and the others, which their groups have first.
fn groups(step: &Step) -> [Vec<Rc<Param>>; 2] {
    let params = step.params.iter().cloned();
    let (low, plain) = params.partition(|param| projected(step.tape, param));
    [low, plain]
}

/// The layout that a parameter is stepped in.
fn stepped_in(tape: &Tape, param: &Param) -> Layout {
    if projected(tape, param) {
        low_rank(param, RANK)[0]
    } else {
        *param.data.layout()
    }
}

/// Two moments; those of a projected parameter are of low rank, and follow its projector.
fn moments(
    tape: &Tape,
    param: &Param,
    rank: u64,
    projector: impl FnOnce(DType) -> Tensor,
) -> Vec<Tensor> {
    if !projected(tape, param) {
        return vec![like(param), like(param)];
    }
    let dtype = param.data.dtype();
    let [low, _] = low_rank(param, rank);
    vec![
        projector(dtype),
        tape.empty_as("exp_avg", low, dtype),
        tape.empty_as("exp_avg_sq", low, dtype),
    ]
}

/// The states of APOLLO, whose projector is drawn by chance.
pub(crate) fn states(tape: &Tape, param: &Param, rank: u64) -> Vec<Tensor> {
    moments(tape, param, rank, |dtype| {
        projector(tape, param, rank, dtype)
    })
}

/// A product of matrices: its result, and cuBLAS's workspace while it is made. `torch.matmul` of galore_projector.py takes it while
/// the names of the last parameter still hold what they held, of a plain one as large as the vocabulary.
fn product(tape: &Tape, layout: Layout, dtype: DType) -> Tensor {
    let result = tape.empty_as("matmul", layout, dtype);
    tape.cublas_workspace();
    result
}

/// `get_orthogonal_matrix` in the first step: what it decomposes in fp32, and the parts; what cuSOLVER takes is not counted.
fn decomposed(tape: &Tape, param: &Param) {
    let (m, n) = (param.data.size(0), param.data.size(1));
    let half = param.data.dtype().is_half();
    let whole = half.then(|| param.data.empty_like("to", DType::F32));
    let left = tape.empty("svd", [m, m.min(n)], DType::F32);
    let right = tape.empty("svd", [m.min(n), n], DType::F32);
    unused_half(tape, param);
    drop((whole, left, right));
}

/// The other factor, which is made and never used.
fn unused_half(tape: &Tape, param: &Param) {
    let most = param.data.size(0).max(param.data.size(1));
    let scales = tape.empty("diag", [RANK, RANK], DType::F32);
    let half = tape.empty("matmul", [most, RANK], DType::F32);
    tape.cublas_workspace();
    drop((scales, half));
}

/// The states of `GaLoreAdamW`.
pub(crate) fn decomposed_states(tape: &Tape, param: &Param) -> Vec<Tensor> {
    moments(tape, param, RANK, |dtype| {
        decomposed_projector(tape, param, dtype)
    })
}

/// `GaLoreAdamW.step`: plain tensors first, in the order of its parameter groups.
pub(crate) fn step(step: &mut Step) {
    let tape = step.tape;
    let [low, plain] = groups(step);
    let mut names: [Option<Tensor>; 3] = [None, None, None];
    tape.each(&plain, |param| {
        if step.first {
            step.states.push(as_states(decomposed_states(tape, param)));
        }
        drop(names[0].replace(like(param)));
        drop(names[1].replace(like(param)));
    });
    tape.each(&low, |param| {
        let dtype = param.data.dtype();
        let [layout, _] = low_rank(param, RANK);
        // `grad` is the full one again.
        drop(names[2].take());
        if step.first {
            decomposed(tape, param);
            step.states.push(as_states(decomposed_states(tape, param)));
        }
        drop(names[2].replace(product(tape, layout, dtype)));
        drop(names[0].replace(tape.empty_as("sqrt", layout, dtype)));
        drop(names[1].replace(tape.empty_as("div", layout, dtype)));
        let full = product(tape, *param.data.layout(), dtype);
        drop(names[1].replace(like(param)));
        drop(full);
    });
}

/// `get_orthogonal_matrix` of APOLLO: what is projected is copied in fp32, for its shape alone, and the projector drawn and scaled
/// in that type (apollo_torch/random_projector.py).
fn drawn(tape: &Tape, param: &Param, rank: u64) -> Tensor {
    let dtype = param.data.dtype();
    if !dtype.is_half() {
        drop(projector(tape, param, rank, dtype));
        return projector(tape, param, rank, dtype);
    }
    let whole = param.data.empty_like("to", DType::F32);
    let random = projector(tape, param, rank, DType::F32);
    let scaled = projector(tape, param, rank, DType::F32);
    drop(random);
    let projector = projector(tape, param, rank, dtype);
    drop((whole, scaled));
    projector
}

/// `AdamW.step` of APOLLO: the gradient's scale is found in the low rank, and the full gradient scaled by it.
pub(crate) fn apollo(step: &mut Step, rank: u64) {
    let tape = step.tape;
    let [low, plain] = groups(step);
    let mut names: [Option<Tensor>; 4] = [None, None, None, None];
    tape.each(&plain, |param| {
        if step.first {
            step.states.push(as_states(vec![like(param), like(param)]));
        }
        drop(names[0].replace(like(param)));
        drop(names[1].replace(like(param)));
    });
    tape.each(&low, |param| {
        let dtype = param.data.dtype();
        let [layout, _] = low_rank(param, rank);
        let part = |op| tape.empty_as(op, layout, dtype);
        // `grad` is the full one again.
        drop(names[2].take());
        let projector = step.first.then(|| drawn(tape, param, rank));
        drop(names[2].replace(product(tape, layout, dtype)));
        if let Some(projector) = projector {
            let states = vec![projector, part("exp_avg"), part("exp_avg_sq")];
            step.states.push(as_states(states));
        }
        drop(names[0].replace(part("sqrt")));
        drop(names[1].replace(part("div")));
        let mut scaled = like(param);
        drop(names[3].replace(scaled.clone()));
        if !step.first {
            // The limiter divides into a new tensor; the first is freed with its name.
            scaled = like(param);
            drop(names[3].replace(scaled.clone()));
        }
        drop(names[1].replace(scaled));
    });
}

/// The states of `GaLoreAdamW8bit`: bytes like the projected gradient, and a scale for each 256 of them.
pub(crate) fn states_8bit(tape: &Tape, param: &Param) -> Vec<Tensor> {
    const SMALLEST: u64 = 4096;
    const BLOCK: u64 = 256;
    let layout = stepped_in(tape, param);
    let numel = layout.numel();
    let eight_bits = numel >= SMALLEST;
    let dtype = if eight_bits { DType::U8 } else { DType::F32 };
    let mut states = Vec::new();
    if projected(tape, param) {
        states.push(decomposed_projector(tape, param, param.data.dtype()));
    }
    for _ in 0..2 {
        states.push(tape.empty_as("state", layout, dtype));
        if eight_bits {
            states.push(tape.empty("absmax", [numel.div_ceil(BLOCK)], DType::F32));
        }
    }
    states
}

/// `AdamW8bit.step` of GaLore: a projected parameter's weight is copied and a low one put in its place, as is its gradient.
pub(crate) fn step_8bit(step: &mut Step) {
    let tape = step.tape;
    let [low, plain] = groups(step);
    let mut gradient: Option<Tensor> = None;
    if step.first {
        step.states.push(as_states(bitsandbytes::tables(tape)));
    }
    tape.each(&plain, |param| {
        if step.first {
            step.states.push(as_states(states_8bit(tape, param)));
        }
    });
    tape.each(&low, |param| {
        let dtype = param.data.dtype();
        if step.first {
            decomposed(tape, param);
            step.states.push(as_states(states_8bit(tape, param)));
        }
        let [layout, _] = low_rank(param, RANK);
        let made = |op| tape.empty_as(op, layout, dtype);
        // `p.grad = grad` frees the full gradient, `p.data = grad.clone()` the weight whose copy takes its place.
        drop(gradient.replace(product(tape, layout, dtype)));
        let copy = like(param);
        let data = made("clone");
        drop(copy);
        drop(param.grad.take());
        param.grad.replace(gradient.clone());
        let full = product(tape, *param.data.layout(), dtype);
        let scaled = like(param);
        drop((full, scaled, data));
    });
}

/// The states of `GaLoreAdafactor` in fp32: the projector, a row and a column of the projected gradient, or everything.
pub(crate) fn factors(tape: &Tape, param: &Param) -> Vec<Tensor> {
    let mut states = Vec::new();
    let layout = stepped_in(tape, param);
    if projected(tape, param) {
        states.push(decomposed_projector(tape, param, DType::F32));
    }
    let ends = layout.shape.len();
    if ends >= 2 {
        let sizes = [ends - 1, ends - 2].map(|dim| layout.shape.removed(dim));
        states.extend(sizes.map(|size| tape.empty("exp_avg_sq", size, DType::F32)));
    } else {
        states.push(tape.empty_as("exp_avg_sq", layout, DType::F32));
    }
    states.push(tape.empty("RMS", [0; 0], DType::F32));
    states
}

/// `Adafactor.step` of GaLore, which is that of transformers around a projection. Plain tensors come first.
pub(crate) fn adafactor(step: &mut Step) {
    let tape = step.tape;
    let [low, plain] = groups(step);
    // `grad`, `p_data_fp32` and `update` live until they are bound again.
    let mut names: [Option<Tensor>; 3] = [None, None, None];
    for (group, is_projected) in [(plain, false), (low, true)] {
        tape.each(&group, |param| {
            let data = &param.data;
            let half = data.dtype().is_half();
            let whole = |op| data.empty_like(op, DType::F32);
            // An fp32 gradient is the parameter's own.
            drop(names[0].take());
            if half {
                names[0] = Some(whole("to"));
            }
            if step.first && is_projected {
                // The gradient is in fp32 already.
                let (m, n) = (data.size(0), data.size(1));
                let left = tape.empty("svd", [m, m.min(n)], DType::F32);
                let right = tape.empty("svd", [m.min(n), n], DType::F32);
                unused_half(tape, param);
                drop((left, right));
            }
            let layout = stepped_in(tape, param);
            let part = |op| tape.empty_as(op, layout, DType::F32);
            if step.first {
                step.states.push(as_states(factors(tape, param)));
            }
            if is_projected {
                drop(names[0].replace(product(tape, layout, DType::F32)));
            }
            drop(names[1].take());
            if half {
                names[1] = Some(whole("to"));
            }
            let square = part("pow");
            let shifted = part("add");
            drop(square);
            drop(names[2].replace(shifted));
            let scaled = part("mul");
            drop(names[2].replace(scaled));
            if is_projected {
                let back = whole("matmul");
                tape.cublas_workspace();
                let scaled = whole("mul");
                drop(back);
                drop(names[2].replace(scaled));
            }
            // `-update`.
            drop(whole("neg"));
        });
    }
}
