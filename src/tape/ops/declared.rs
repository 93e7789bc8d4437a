//! Tensors that a network only declares: kept beside what flows, or taken and given back on its way.

use super::super::{DType, Dims, Tensor};

impl Tensor {
    /// This tensor, with others kept until its gradient comes.
    pub fn keeping(&self, others: &[Tensor]) -> Tensor {
        self.alias(*self.layout()).from_op(&[self], |_| {
            let kept: Vec<_> = others.iter().map(Tensor::save).collect();
            Box::new(move |incoming| {
                let held: Vec<Tensor> = kept.iter().map(super::super::Saved::unpack).collect();
                drop(held);
                incoming
            })
        })
    }

    /// This tensor; when its gradient comes, others are made and let go.
    pub fn with_scratch_in_backward(&self, others: Vec<(Dims, DType)>) -> Tensor {
        self.alias(*self.layout()).from_op(&[self], |_| {
            Box::new(move |incoming| {
                if let Some(tape) = incoming.first().and_then(Option::as_ref).map(Tensor::tape) {
                    let made: Vec<Tensor> = others
                        .iter()
                        .map(|(shape, dtype)| tape.empty("declared", *shape, *dtype))
                        .collect();
                    drop(made);
                }
                incoming
            })
        })
    }
}
