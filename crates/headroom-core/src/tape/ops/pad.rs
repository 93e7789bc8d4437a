//! `F.pad` with zeros behind the end of a dimension.

use super::super::{Layout, Tensor, borrowing, grads};

impl Tensor {
    /// `F.pad` of one dimension by `count` zeros at its end: a copy even where nothing is added
    /// (`constant_pad_nd` in PadNd.cpp), forth and back.
    pub fn padded_at_end(&self, dim: isize, count: u64) -> Tensor {
        let Some(at) = self.dim(dim) else {
            return self.clone();
        };
        let copy = |t: &Tensor| t.copied("constant_pad_nd", t.layout().preserved());
        let whole = self.shape().with(at, self.size(dim).saturating_add(count));
        let out = if count == 0 {
            copy(self)
        } else {
            let tape = self.tape();
            let out = tape.empty_as("constant_pad_nd", Layout::contiguous(whole), self.dtype());
            let moved = self.bytes().saturating_add(out.bytes()) as f64;
            tape.kernel("constant_pad_nd", self.dtype(), 0.0, moved);
            out
        };
        let from = self.size(dim);
        out.from_op(&[self], |_| {
            borrowing(move |g| grads([Some(g.detach().narrow(dim, from).pipe(copy))]))
        })
    }
}
