//! Optimizers of their own packages: lion-pytorch, Adam-mini, schedule-free, ADOPT, CAME, GaLore.

use std::rc::Rc;

use super::lists::{list, same};
use crate::tape::{Layout, Param, Tape, Tensor};

/// `update_fn` of lion_pytorch.py: a copy of the average and its sum with the gradient.
pub fn lion(tape: &Tape, params: &[Rc<Param>]) {
    tape.each(params, |param| {
        let copy = same(param);
        let update = same(param);
        drop((copy, update));
    });
}

/// The group of a parameter in adam_mini.py, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    /// Biases: Adam.
    Plain,
    /// Queries and keys: one second moment for each head.
    Head,
    /// Matrices: one for each row.
    Row,
    /// Norms: one.
    Whole,
}

fn block(tape: &Tape, param: &Param) -> Block {
    let path = format!("{}.{}", tape.path(param.scope), param.name).to_lowercase();
    let any = |names: &[&str]| names.iter().any(|name| path.contains(name));
    if any(&["bias"]) {
        Block::Plain
    } else if any(&["k_proj", "q_proj", "wq", "wk", "query", "key"]) {
        Block::Head
    } else if any(&[
        "embed",
        "embd",
        "wte",
        "lm_head",
        "output",
        "final_layer",
        "v_proj",
        "wv",
        "value",
        "o_proj",
        "wo",
        "attn.proj",
        "feed_forward",
        "linear",
        "mlp",
    ]) {
        Block::Row
    } else {
        Block::Whole
    }
}

/// Rows of the second moment: one for each head (of the usual width: a few numbers), row or tensor.
fn rows(tape: &Tape, param: &Param) -> u64 {
    const HEAD: u64 = 64;
    match block(tape, param) {
        Block::Plain => param.data.numel(),
        Block::Whole => 1,
        Block::Head => param.data.size(0).div_ceil(HEAD),
        Block::Row => param.data.size(0),
    }
}

/// The states of Adam-mini: a moment like the parameter and a mean square for each block.
pub fn adam_mini_states(tape: &Tape, param: &Param) -> Vec<Tensor> {
    let means = tape.empty("vmean", [rows(tape, param)], param.data.dtype());
    vec![same(param), means]
}

/// `Adam_mini.step`: squares, then an update and its negative; the last names of a round live into the next.
pub fn adam_mini(tape: &Tape, params: &[Rc<Param>]) {
    let mut means: [Option<Tensor>; 3] = [None, None, None];
    let mut update: Option<Tensor> = None;
    tape.each(params, |param| {
        let small = || tape.empty("mean", [rows(tape, param)], param.data.dtype());
        match block(tape, param) {
            Block::Head | Block::Row => {
                let squares = same(param);
                drop(means[0].replace(small()));
                drop(squares);
                let root = small();
                drop(means[1].replace(small()));
                drop(root);
                let inverse = small();
                drop(means[2].replace(small()));
                drop(inverse);
                drop(update.replace(same(param)));
                // `p.add_(-update)`.
                drop(same(param));
            }
            Block::Plain | Block::Whole => {
                let squares = same(param);
                drop(squares);
                drop(update.replace(same(param)));
            }
        }
    });
}

/// `AdamWScheduleFree.step` with foreach: `denom` of all parameters exists at once.
pub fn schedule_free(tape: &Tape, params: &[Rc<Param>]) {
    drop(list(tape, "_foreach_div", params));
}

/// `_step_foreach` of pytorch_optimizer/optimizer/adopt.py: roots and normed gradients; its first step only squares.
pub fn adopt(tape: &Tape, params: &[Rc<Param>], first: bool) {
    if first {
        return;
    }
    let roots = list(tape, "_foreach_sqrt", params);
    drop((list(tape, "_foreach_div", params), roots));
}

/// The states of pytorch_optimizer/optimizer/came.py: a moment, and rows and columns of squares and of residuals.
pub fn came_states(tape: &Tape, param: &Param) -> Vec<Tensor> {
    let dtype = param.data.dtype();
    let shape = *param.data.shape();
    let n = shape.len();
    if n < 2 {
        return vec![same(param), same(param)];
    }
    let row = || tape.empty("row", shape.removed(n - 1), dtype);
    let column = || tape.empty("column", shape.removed(n - 2), dtype);
    vec![same(param), row(), column(), row(), column()]
}

/// `_step_foreach` of came.py: vectors first, then matrices with their updates and residuals all at once.
pub fn came(tape: &Tape, params: &[Rc<Param>]) {
    let (matrices, vectors): (Vec<_>, Vec<_>) = params
        .iter()
        .cloned()
        .partition(|param| param.data.shape().len() >= 2);
    let squares = list(tape, "_foreach_mul", &vectors);
    drop((list(tape, "rsqrt", &vectors), squares));
    let updates = list(tape, "_foreach_mul", &matrices);
    means(&updates);
    let residuals = list(tape, "_foreach_sub", &matrices);
    means(&residuals);
    drop((updates, residuals));
}

/// The means over rows and over columns of all, as lists.
fn means(all: &[Tensor]) {
    for dim in [-1, -2] {
        drop(all.iter().map(|one| one.mean(&[dim])).collect::<Vec<_>>());
    }
}

/// The rank GaLore's README projects to.
const RANK: u64 = 128;

/// Whether GaLore projects it: the matrices of attention and feed-forward layers, as its example script lists.
fn projected(tape: &Tape, param: &Param) -> bool {
    let path = tape.path(param.scope);
    param.data.shape().len() == 2 && (path.contains("attn") || path.contains("mlp"))
}

/// The layout of a projected gradient and of its projector (galore_projector.py, `std`).
fn low_rank(param: &Param) -> [Layout; 2] {
    let (m, n) = (param.data.size(0), param.data.size(1));
    if m >= n {
        [[m, RANK.min(n)], [RANK.min(n), n]].map(Layout::contiguous)
    } else {
        [[RANK.min(m), n], [m, RANK.min(m)]].map(Layout::contiguous)
    }
}

pub fn galore_states(tape: &Tape, param: &Param) -> Vec<Tensor> {
    if !projected(tape, param) {
        return vec![same(param), same(param)];
    }
    let dtype = param.data.dtype();
    let [low, projector] = low_rank(param);
    vec![
        tape.empty_as("ortho_matrix", projector, dtype),
        tape.empty_as("exp_avg", low, dtype),
        tape.empty_as("exp_avg_sq", low, dtype),
    ]
}

/// `GaLoreAdamW.step`: plain tensors first, as its parameter groups stand.
pub fn galore(tape: &Tape, params: &[Rc<Param>]) {
    let (low, plain): (Vec<_>, Vec<_>) = params
        .iter()
        .cloned()
        .partition(|param| projected(tape, param));
    let mut names: [Option<Tensor>; 3] = [None, None, None];
    tape.each(&plain, |param| {
        drop(names[0].replace(same(param)));
        drop(names[1].replace(same(param)));
    });
    tape.each(&low, |param| {
        let dtype = param.data.dtype();
        let [layout, _] = low_rank(param);
        drop(names[2].replace(tape.empty_as("matmul", layout, dtype)));
        drop(names[0].replace(tape.empty_as("sqrt", layout, dtype)));
        drop(names[1].replace(tape.empty_as("div", layout, dtype)));
        let full = same(param);
        drop(names[1].replace(same(param)));
        drop(full);
    });
}
