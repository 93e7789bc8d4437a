//! Sums by index, which sort their indices first.

use super::super::super::Tensor;
use super::super::super::layout::{Dims, broadcast};
use super::super::embedding::sorted_gradient;
use super::super::index::summed_by_index;
use super::RecordedCall;

impl RecordedCall<'_> {
    pub(super) fn by_index(&self) -> Option<Vec<Tensor>> {
        match self.call.name() {
            "embedding_dense_backward" => {
                let (gradient, indices) = (self.shadows.first()?, self.inputs.get(1)?);
                let table = self.made.first()?;
                let copy = gradient.contiguous();
                let count = indices.numel();
                Some(vec![sorted_gradient(
                    &copy,
                    count,
                    table.layout.shape,
                    table.dtype,
                )])
            }
            "index_put" if self.call.word => {
                let results = self.plainly();
                let whole = self.inputs.first()?;
                let values = self.shadows.last()?;
                // Indices are joined in the shape that all of them broadcast to (`makeLinearIndex` in Indexing.cu).
                let indices = self.inputs.get(1..self.inputs.len().checked_sub(1)?)?;
                let shape = indices.iter().fold(Dims::new(&[]), |shape, index| {
                    broadcast(&shape, &index.layout.shape)
                });
                let count = shape.iter().product::<u64>();
                let slice = (values.numel() / count.max(1)).max(1);
                summed_by_index(values, count, whole.numel() / slice);
                Some(results)
            }
            _ => None,
        }
    }
}
