//! Sums by index, which sort their indices first.

use super::super::super::Tensor;
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
                let (whole, indices) = (self.inputs.first()?, self.shadows.get(1)?);
                let values = self.shadows.last()?;
                summed_by_index(values, indices, whole.size(0));
                Some(results)
            }
            _ => None,
        }
    }
}
