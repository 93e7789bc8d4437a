//! `F.pad` with zeros behind the end of dimensions.

use super::super::{Dims, Layout, Tensor, borrowing, grads};

impl Tensor {
    /// `F.pad` of one dimension by `count` zeros at its end: a copy even where nothing is added
    /// (`constant_pad_nd` in PadNd.cpp), forth and back.
    pub fn padded_at_end(&self, dim: isize, count: u64) -> Tensor {
        let Some(at) = self.dim(dim) else {
            return self.clone();
        };
        let whole = self.shape().with(at, self.size(dim).saturating_add(count));
        self.zero_padded_to(whole)
    }

    /// The same of a plane's height and width at once.
    pub fn padded_plane_at_end(&self, [down, across]: [u64; 2]) -> Tensor {
        let side = |axis: isize, count| self.size(axis).saturating_add(count);
        let whole = self.shape().with(2, side(2, down)).with(3, side(3, across));
        self.zero_padded_to(whole)
    }

    fn zero_padded_to(&self, whole: Dims) -> Tensor {
        let copy = |t: &Tensor| t.copied("constant_pad_nd", t.layout().preserved());
        let from = *self.shape();
        let out = if whole == from {
            copy(self)
        } else {
            let tape = self.tape();
            let out = tape.empty_as("constant_pad_nd", Layout::contiguous(whole), self.dtype());
            let moved = self.bytes().saturating_add(out.bytes()) as f64;
            tape.kernel("constant_pad_nd", self.dtype(), 0.0, moved);
            out
        };
        out.from_op(&[self], |_| {
            borrowing(move |g| {
                let part = (0..from.len()).fold(g.detach(), |part, axis| {
                    part.narrow(axis as isize, from[axis])
                });
                grads([Some(part.pipe(copy))])
            })
        })
    }
}
