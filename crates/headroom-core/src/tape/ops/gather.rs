//! Picking elements along a dimension by an index of the result's shape.

use super::super::{Saved, Tensor, borrowing, grads};

impl Tensor {
    /// `torch.gather(self, dim, index)`: saves both, though of itself only the shape is used; the gradient is scattered into zeros of the full shape, which
    /// for an expanded tensor is the expanded one (`gather_backward` in FunctionsManual.cpp).
    pub fn gather(&self, index: &Tensor) -> Tensor {
        let (whole, dtype) = (*self.shape(), self.dtype());
        let tape = self.tape();
        let out = tape.empty("gather", *index.shape(), dtype);
        tape.kernel("gather", dtype, 0.0, 2.0 * out.bytes() as f64);
        out.from_op(&[self], |_| {
            let kept = [self.save(), index.save()];
            borrowing(move |g| {
                let _kept = kept.each_ref().map(Saved::unpack);
                let tape = g.tape();
                let zeros = tape.empty("gather_backward", whole, g.dtype());
                let moved = zeros.bytes().saturating_add(g.bytes()) as f64;
                tape.kernel("scatter_add", g.dtype(), 0.0, moved);
                grads([Some(zeros)])
            })
        })
    }
}
