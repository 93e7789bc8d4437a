//! Tensors that a network only declares: kept beside what flows, or taken and given back on its way.

use super::super::{DType, Dims, Saved, Tensor, consuming, grads};

impl Tensor {
    /// This tensor, with others kept until its gradient comes.
    pub fn keeping(&self, others: &[Tensor]) -> Tensor {
        self.alias(*self.layout()).from_op(&[self], |_| {
            let kept: Vec<_> = others.iter().map(Tensor::save).collect();
            consuming(move |g| {
                let held: Vec<Tensor> = kept.iter().map(Saved::unpack).collect();
                drop(held);
                grads([Some(g)])
            })
        })
    }

    /// This tensor; when its gradient comes, others are made and let go.
    pub fn with_scratch_in_backward(&self, others: Vec<(Dims, DType)>) -> Tensor {
        self.alias(*self.layout()).from_op(&[self], |_| {
            consuming(move |g| {
                let tape = g.tape();
                let scratch: Vec<Tensor> = others
                    .iter()
                    .map(|(shape, dtype)| tape.empty("declared", *shape, *dtype))
                    .collect();
                drop(scratch);
                grads([Some(g)])
            })
        })
    }
}
