//! The order in which `parameters()` of a U-Net lists its modules, which is not the order they run in.

use crate::nets::Cx;
use crate::tape::Tensor;

/// Runs the model, and gives its parameters the order of `parameters()` the first time.
pub(crate) fn in_module_order(cx: &Cx, model: impl FnOnce(&Cx) -> Tensor) -> Tensor {
    let known = cx.tape.declared();
    let predicted = model(&cx.checkpointing_in_any_mode());
    if cx.tape.declared() > known {
        cx.tape.arrange_params(place_in_model);
    }
    predicted
}

/// The rank of a module: up blocks come before the middle block, and attentions before the residual blocks they follow.
fn place_in_model(path: &str) -> (usize, usize, usize) {
    let at = |names: &[&str], name: &str| {
        let found = names.iter().position(|known| *known == name);
        found.unwrap_or(names.len())
    };
    let mut parts = path.split('.');
    let mut next = || parts.next().unwrap_or_default();
    let first = next();
    let section = at(
        &[
            "conv_in",
            "time_embedding",
            "add_embedding",
            "down_blocks",
            "up_blocks",
            "mid_block",
            "conv_norm_out",
        ],
        first,
    );
    let index = if first == "mid_block" {
        0
    } else {
        next().parse().unwrap_or(0)
    };
    (section, index, at(&["attentions", "resnets"], next()))
}
