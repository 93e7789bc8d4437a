//! Tensors that a declared network only names: saved for backward, or scratch memory of a pass.

use super::super::{DType, Dims, Saved, Tensor, consuming, grads};

impl Tensor {
    /// This tensor, with others saved for its backward.
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

    /// This tensor, whose backward allocates others and frees them.
    pub fn with_scratch_in_backward(&self, shape: Dims, dtype: DType, count: u64) -> Tensor {
        self.alias(*self.layout()).from_op(&[self], |_| {
            consuming(move |g| {
                let tape = g.tape();
                let scratch: Vec<Tensor> = (0..count)
                    .take_while(|_| !tape.is_over_budget())
                    .map(|_| tape.empty("declared", shape, dtype))
                    .collect();
                drop(scratch);
                grads([Some(g)])
            })
        })
    }
}
