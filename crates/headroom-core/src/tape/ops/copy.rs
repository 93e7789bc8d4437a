//! Copies: to another type, to another layout, and as they are.

use super::super::{DType, Layout, Tensor, borrowing, consuming, grads};

impl Tensor {
    /// `self.to(dtype)`; the same tensor where nothing changes.
    pub fn to(&self, dtype: DType) -> Tensor {
        if self.dtype() == dtype {
            return self.clone();
        }
        if let Some(same) = self.cast_before(dtype) {
            return same;
        }
        let from = self.dtype();
        let cast = self
            .map_to("to", dtype)
            .from_op(&[self], |_| borrowing(move |g| grads([Some(g.to(from))])));
        self.remember_cast(&cast);
        cast
    }

    /// `self.to(dtype, memory_format=torch.contiguous_format)`: a cast is dense; without one the tensor stays as it lies, for only
    /// layouts with channels last would be another format.
    pub fn to_dense(&self, dtype: DType) -> Tensor {
        if self.dtype() == dtype {
            return self.clone();
        }
        let from = self.dtype();
        let dense = Layout::contiguous(*self.shape());
        let out = self.tape().empty_as("to", dense, dtype);
        let moved = self.bytes().saturating_add(out.bytes()) as f64;
        self.tape().kernel("to", dtype, 0.0, moved);
        out.from_op(&[self], |_| borrowing(move |g| grads([Some(g.to(from))])))
    }

    /// A copy in another layout, without history.
    pub(in crate::tape) fn copied(&self, op: &'static str, layout: Layout) -> Tensor {
        self.core().generates();
        let out = self.tape().empty_as(
            op,
            Layout {
                shape: *self.shape(),
                ..layout
            },
            self.dtype(),
        );
        self.tape()
            .kernel(op, self.dtype(), 0.0, 2.0 * self.bytes() as f64);
        out
    }

    /// `self.contiguous()`: the same tensor where it is so already.
    pub fn contiguous(&self) -> Tensor {
        if self.is_contiguous() {
            return self.clone();
        }
        self.copied("contiguous", Layout::contiguous(*self.shape()))
            .from_op(&[self], |_| consuming(|g| grads([Some(g)])))
    }

    /// `self.clone(memory_format=torch.contiguous_format)`: a copy even of a dense tensor.
    pub fn cloned_dense(&self) -> Tensor {
        self.copied("clone", Layout::contiguous(*self.shape()))
            .from_op(&[self], |_| consuming(|g| grads([Some(g)])))
    }

    /// `self.clone()`.
    pub fn cloned(&self) -> Tensor {
        self.copied("clone", self.layout().preserved())
            .from_op(&[self], |_| consuming(|g| grads([Some(g)])))
    }
}
