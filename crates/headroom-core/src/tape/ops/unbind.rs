//! `unbind`: the slices of the first dimension.

use super::super::{Grads, Layout, Tensor, grads};

impl Tensor {
    /// `self.unbind(0)`: views; backward stacks the gradients (absent ones as zeros).
    pub fn unbind(&self) -> Vec<Tensor> {
        self.unbind_at(0)
    }

    /// The same along another dimension.
    pub fn unbind_at(&self, dim: usize) -> Vec<Tensor> {
        let whole = *self.shape();
        let count = self.tape().affordable(whole.get(dim).copied().unwrap_or(0));
        let Layout { shape, strides } = *self.layout();
        let slice = Layout {
            shape: shape.removed(dim),
            strides: strides.removed(dim),
        };
        let parts = (0..count).map(|_| self.alias(slice)).collect();
        let dtype = self.dtype();
        Tensor::from_op_with(parts, &[self], |_| {
            Box::new(move |incoming| {
                let Some(tape) = incoming.iter().flatten().next().map(Tensor::tape) else {
                    return Grads::new();
                };
                let zeros: Vec<Tensor> = incoming
                    .iter()
                    .filter(|g| g.is_none())
                    .map(|_| tape.empty("zeros", slice.shape, dtype))
                    .collect();
                let out = tape.empty("stack", whole, dtype);
                tape.kernel("stack", dtype, 0.0, 2.0 * out.bytes() as f64);
                drop(zeros);
                grads([Some(out)])
            })
        })
    }
}
