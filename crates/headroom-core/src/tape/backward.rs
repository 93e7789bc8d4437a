//! What a node does in backward, and how long its incoming gradient lives.

use super::{Backward, Grads, Tensor};

/// The list a backward returns.
pub(crate) fn grads<const N: usize>(all: [Option<Tensor>; N]) -> Grads {
    all.into_iter().collect()
}

/// A backward that reads the gradient of its one output, which lives until the backward has returned.
///
/// So do the functions that autograd generates (`apply(variable_list&& grads)` in generated/Functions.cpp): the engine's
/// `call_function` owns the list, and nothing they allocate can take the gradient's place.
pub(crate) fn borrowing(body: impl FnOnce(&Tensor) -> Grads + 'static) -> Backward {
    Box::new(|incoming| match incoming.first() {
        Some(Some(gradient)) => body(gradient),
        _ => Grads::new(),
    })
}

/// A backward that owns the gradient of its one output: it passes the gradient on, or frees it before it allocates, so
/// that the memory is reused at once.
///
/// So do functions that move out of their inputs (`CopySlices` in functions/tensor.cpp, which `copy_` into a view leaves),
/// and `torch.autograd.Function`s whose `backward` binds the name of its argument to something else.
pub(crate) fn consuming(body: impl FnOnce(Tensor) -> Grads + 'static) -> Backward {
    Box::new(|incoming| match incoming.into_iter().next().flatten() {
        Some(gradient) => body(gradient),
        None => Grads::new(),
    })
}
