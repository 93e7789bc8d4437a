//! Dropout.

use super::super::{DType, Tensor, borrowing, grads};

impl Tensor {
    /// `F.dropout(self, p)` in training: the fused kernel, which saves a Boolean mask. Nothing at all for `p` of zero.
    pub fn dropout(&self, p: f64) -> Tensor {
        if p <= 0.0 || self.tape().evaluating() {
            return self.clone();
        }
        let mask = self
            .tape()
            .empty_as("dropout_mask", self.layout().preserved(), DType::Bool);
        let out = self.map("dropout");
        out.from_op(&[self], |_| {
            let kept = mask.save();
            borrowing(move |g| {
                grads([Some(g.zip_to(
                    &kept.unpack(),
                    "dropout_backward",
                    g.dtype(),
                ))])
            })
        })
    }
}
