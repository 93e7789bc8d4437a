//! Element-wise kernels: how a result lies in memory, and the histories that most of them share.

use super::super::{DType, Layout, Tensor, borrowing, broadcast, grads};

impl Tensor {
    /// One element-wise kernel over this tensor: a result of the same shape.
    pub(in crate::tape) fn map(&self, op: &'static str) -> Tensor {
        self.map_to(op, self.dtype())
    }

    pub(in crate::tape) fn map_to(&self, op: &'static str, dtype: DType) -> Tensor {
        self.core().generates();
        let out = if self.is_dense() {
            self.empty_like(op, dtype)
        } else {
            self.core().empty(op, self.layout().preserved(), dtype)
        };
        let moved = self.bytes() as f64 + out.bytes() as f64;
        let core = self.core();
        core.kernel(op, dtype, [self.numel() as f64, moved], 1);
        core.fused_from(&[self]);
        out
    }

    /// One element-wise kernel over two tensors with broadcasting and type promotion.
    pub(in crate::tape) fn zip(&self, other: &Tensor, op: &'static str) -> Tensor {
        self.zip_to(other, op, self.result_type(other))
    }

    pub(in crate::tape) fn zip_to(&self, other: &Tensor, op: &'static str, dtype: DType) -> Tensor {
        let core = self.core();
        let alike = *self.shape() == *other.shape();
        core.generates();
        let out = if alike && self.is_row_major() {
            self.empty_like(op, dtype)
        } else {
            let shape = broadcast(self.shape(), other.shape());
            let layout = match () {
                () if *self.shape() == shape && !self.is_contiguous() => self.layout().like(shape),
                () if !alike && *other.shape() == shape => other.layout().like(shape),
                () => Layout::contiguous(shape),
            };
            core.empty(op, layout, dtype)
        };
        let moved = self.bytes() as f64 + other.bytes() as f64 + out.bytes() as f64;
        core.kernel(op, dtype, [out.numel() as f64, moved], 1);
        core.fused_from(&[self, other]);
        out
    }

    /// A tensor without dimensions does not widen one with dimensions of the same kind.
    fn result_type(&self, other: &Tensor) -> DType {
        match (self.shape().is_empty(), other.shape().is_empty()) {
            (true, false) if self.dtype().is_floating() == other.dtype().is_floating() => {
                other.dtype()
            }
            (false, true) if self.dtype().is_floating() == other.dtype().is_floating() => {
                self.dtype()
            }
            _ => self.dtype().promote(other.dtype()),
        }
    }

    /// A sum without history.
    pub(in crate::tape) fn plus(&self, other: &Tensor) -> Tensor {
        self.zip(other, "add")
    }

    /// `self += other` on memory nobody else holds; for the engine's sums.
    pub fn add_in_place(self, other: &Tensor) -> Tensor {
        self.tape().kernel(
            "add_",
            self.dtype(),
            self.numel() as f64,
            2.0 * self.bytes() as f64 + other.bytes() as f64,
        );
        self
    }

    /// An element-wise operation whose gradient is one kernel over the incoming one: it saves nothing.
    pub(super) fn linear_map(&self, op: &'static str) -> Tensor {
        self.map(op)
            .from_op(&[self], |_| borrowing(move |g| grads([Some(g.map(op))])))
    }

    /// An element-wise operation that saves its input.
    pub(in crate::tape) fn from_input(
        &self,
        op: &'static str,
        backward: fn(&Tensor, &Tensor) -> Tensor,
    ) -> Tensor {
        // Inputs are saved before the kernel runs: a recomputation ends there.
        let history = Tensor::history(&[self], |_| {
            let kept = self.save();
            borrowing(move |g| grads([Some(backward(g, &kept.unpack()))]))
        });
        self.map(op).with_history(history)
    }

    /// An element-wise operation that saves its result.
    pub(in crate::tape) fn from_result(
        &self,
        op: &'static str,
        backward: fn(&Tensor, &Tensor) -> Tensor,
    ) -> Tensor {
        let out = self.map(op);
        let result = out.clone();
        out.from_op(&[self], move |_| {
            let kept = result.save();
            borrowing(move |g| grads([Some(backward(g, &kept.unpack()))]))
        })
    }

    /// The same memory as a value of its own, for operations that write into their input.
    pub(in crate::tape) fn detached_edge(&self) -> Tensor {
        self.with_edge(None)
    }
}
