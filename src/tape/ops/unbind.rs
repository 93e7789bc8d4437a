//! `unbind`: the slices of the first dimension.

use super::super::{Grads, Layout, Tensor, grads};

impl Tensor {
    /// `self.unbind(0)`: views; backward stacks the gradients (absent ones as zeros).
    pub fn unbind(&self) -> Vec<Tensor> {
        let count = self.size(0);
        let whole = *self.shape();
        let Layout { shape, strides } = *self.layout();
        let slice = Layout {
            shape: shape.removed(0),
            strides: strides.removed(0),
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
