//! Hooks that run in backward.

use super::super::Tensor;

impl Tensor {
    /// The same tensors as outputs of a function that does nothing but run `hook` in backward, once gradients have arrived at all
    /// of them that need one (`RegisterPostBackwardFunction` of FSDP, and tensors' own `register_hook`).
    pub fn hooked(tensors: Vec<Self>, hook: impl FnOnce() + 'static) -> Vec<Self> {
        let inputs: Vec<&Self> = tensors.iter().collect();
        let outputs = tensors.iter().map(|input| input.with_edge(None)).collect();
        Self::from_op_with(outputs, &inputs, |_| {
            Box::new(move |incoming| {
                hook();
                incoming
            })
        })
    }
}
