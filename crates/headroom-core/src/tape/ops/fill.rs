//! Writing a number where a mask says so, in place.

use super::super::{Tensor, borrowing, grads};

impl Tensor {
    /// `self.masked_fill_(mask, value)`: the same memory; the mask is saved.
    pub fn masked_fill_(&self, mask: &Tensor) -> Tensor {
        let moved = 2.0 * self.bytes() as f64 + mask.bytes() as f64;
        self.tape().kernel("masked_fill_", self.dtype(), 0.0, moved);
        self.detached_edge().from_op(&[self], |_| {
            let mask = mask.save();
            borrowing(move |g| {
                let mask = mask.unpack();
                grads([Some(g.zip_to(&mask, "masked_fill", g.dtype()))])
            })
        })
    }
}
