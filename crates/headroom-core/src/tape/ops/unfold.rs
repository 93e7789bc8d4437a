//! Squares of pixels as columns.

use super::super::{Layout, Tensor, borrowing, grads};

impl Tensor {
    /// A copy of windows that overlap, as a product of `as_strided` reads them: `as_strided_backward` sums what lies on one another
    /// and counts how often.
    pub fn overlapping(&self, shape: &[u64]) -> Tensor {
        let own = *self.shape();
        let tape = self.tape();
        let out = tape.empty("clone", shape, self.dtype());
        let moved = self.bytes().saturating_add(out.bytes()) as f64;
        tape.kernel("clone", self.dtype(), 0.0, moved);
        out.from_op(&[self], |_| {
            borrowing(move |g| {
                let tape = g.tape();
                let sum = tape.empty("index_add_", own, g.dtype());
                tape.kernel("index_add_", g.dtype(), 0.0, 2.0 * g.bytes() as f64);
                drop((
                    tape.empty("count", own, g.dtype()),
                    tape.empty("ones_like", *g.shape(), g.dtype()),
                ));
                grads([Some(sum)])
            })
        })
    }

    /// `F.unfold(self, side, stride=side)` of `[1, C, H, W]`: `[1, C * side^2, squares]` (`im2col_out_cuda_template` in Im2Col.cu, which
    /// makes its input contiguous). Saves nothing.
    pub fn unfold(&self, side: u64) -> Tensor {
        let side = side.max(1);
        let from = *self.shape();
        let squares = (self.size(2) / side).saturating_mul(self.size(3) / side);
        let rows = self.size(1).saturating_mul(side * side);
        let tape = self.tape();
        let dense = self.contiguous_in(false);
        let out = tape.empty("im2col", [self.size(0), rows, squares], self.dtype());
        let bytes = self.bytes() as f64 + out.bytes() as f64;
        tape.kernel("im2col", self.dtype(), 0.0, bytes);
        drop(dense);
        out.from_op(&[self], |_| {
            borrowing(move |g| {
                let dense = g.contiguous_in(false);
                let out = g
                    .tape()
                    .empty_as("col2im", Layout::contiguous(from), g.dtype());
                g.tape().kernel("col2im", g.dtype(), 0.0, bytes);
                drop(dense);
                grads([Some(out)])
            })
        })
    }
}
