//! Adam-mini.

use std::rc::Rc;

use super::lists::like;
use crate::tape::{Param, Tape, Tensor};

/// The group of a parameter in adam_mini.py, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    /// Biases: Adam.
    Plain,
    /// Queries and keys: one second moment for each head.
    Head,
    /// Matrices: one for each row.
    Row,
    /// Norms: one.
    Whole,
}

fn group(tape: &Tape, param: &Param) -> Group {
    let path = format!("{}.{}", tape.path(param.scope), param.name).to_lowercase();
    let any = |names: &[&str]| names.iter().any(|name| path.contains(name));
    if any(&["bias"]) {
        Group::Plain
    } else if any(&["k_proj", "q_proj", "wq", "wk", "query", "key"]) {
        Group::Head
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
        Group::Row
    } else {
        Group::Whole
    }
}

/// Rows of the second moment: one for each head (of the usual width: a few numbers), row or tensor.
fn rows(tape: &Tape, param: &Param) -> u64 {
    const HEAD: u64 = 64;
    match group(tape, param) {
        Group::Plain => param.data.numel(),
        Group::Whole => 1,
        Group::Head => param.data.size(0).div_ceil(HEAD),
        Group::Row => param.data.size(0),
    }
}

/// The states of Adam-mini: a moment like the parameter and a mean square for each group.
pub(crate) fn states(tape: &Tape, param: &Param) -> Vec<Tensor> {
    let means = tape.empty("vmean", [rows(tape, param)], param.data.dtype());
    vec![like(param), means]
}

/// `Adam_mini.step`: squares, then an update and its negative; the last names of a round live into the next.
pub(crate) fn step(tape: &Tape, params: &[Rc<Param>]) {
    let mut means: [Option<Tensor>; 3] = [None, None, None];
    let mut update: Option<Tensor> = None;
    tape.each(params, |param| {
        let small = || tape.empty("mean", [rows(tape, param)], param.data.dtype());
        match group(tape, param) {
            Group::Head | Group::Row => {
                let squares = like(param);
                drop(means[0].replace(small()));
                drop(squares);
                let root = small();
                drop(means[1].replace(small()));
                drop(root);
                let inverse = small();
                drop(means[2].replace(small()));
                drop(inverse);
                drop(update.replace(like(param)));
                // `p.add_(-update)`.
                drop(like(param));
            }
            Group::Plain | Group::Whole => {
                let squares = like(param);
                drop(squares);
                drop(update.replace(like(param)));
            }
        }
    });
}
