//! Sums and means.

use smallvec::SmallVec;

use super::super::kernels::{Accumulator, Reduction, aligned};
use super::super::{DType, Dims, Layout, Tensor, borrowing, grads};

/// The numbers of some dimensions.
type Axes = SmallVec<[usize; 8]>;

impl Tensor {
    /// A sum over `dims` that keeps them as ones, without history.
    fn reduced(&self, op: &'static str, dims: &[usize], dtype: DType) -> Tensor {
        let mut shape = *self.shape();
        for &d in dims {
            shape = shape.with(d, 1);
        }
        let tape = self.tape();
        self.core().generates();
        let out = tape.empty_as(op, Layout::contiguous(shape), dtype);
        let outputs = out.numel().max(1);
        let innermost = self
            .layout()
            .innermost()
            .is_none_or(|last| dims.contains(&last));
        tape.reduce_workspace(Reduction {
            outputs,
            inputs_per_output: self.numel() / outputs,
            innermost,
            flat: outputs == 1,
            dtype,
            accumulator: Accumulator::Value,
            aligned: aligned(self.layout()),
        });
        tape.kernel(
            op,
            dtype,
            self.numel() as f64,
            self.bytes() as f64 + out.bytes() as f64,
        );
        out
    }

    /// `at::sum_to`: undoes broadcasting, without history.
    pub(in crate::tape) fn sum_to(&self, shape: Dims) -> Tensor {
        let lead = self.shape().len().saturating_sub(shape.len());
        let dims: Axes = (0..self.shape().len())
            .filter(|&i| i < lead || (shape[i - lead] == 1 && self.shape()[i] != 1))
            .collect();
        if dims.is_empty() {
            return self.clone();
        }
        let summed = self.reduced("sum", &dims, self.dtype());
        if lead == 0 {
            summed
        } else {
            summed.alias(Layout::contiguous(shape))
        }
    }

    fn resolved(&self, dims: &[isize]) -> Axes {
        dims.iter().filter_map(|&d| self.dim(d)).collect()
    }

    /// `self.sum(dims, keepdim=True)`. Autocast makes the result fp32 (`fp32_set_opt_dtype`), which the kernel makes of
    /// halves without a copy; the gradient is cast back as one tensor.
    pub fn sum(&self, dims: &[isize]) -> Tensor {
        let meta = self.meta();
        let raises = self.tape().autocast_dtype().is_some() && self.dtype().is_half();
        let dtype = if raises { DType::F32 } else { self.dtype() };
        self.reduced("sum", &self.resolved(dims), dtype)
            .from_op(&[self], |_| {
                borrowing(move |g| {
                    let wide = g.alias(g.layout().expanded(*meta.shape()));
                    grads([Some(wide.conform(meta))])
                })
            })
    }

    /// `self.mean(dims, keepdim=True)`: backward divides the expanded gradient, which materializes it.
    pub fn mean(&self, dims: &[isize]) -> Tensor {
        let shape = *self.shape();
        self.reduced("mean", &self.resolved(dims), self.dtype())
            .from_op(&[self], |_| {
                borrowing(move |g| {
                    let wide = g.alias(g.layout().expanded(shape));
                    grads([Some(wide.map("div"))])
                })
            })
    }

    /// The mean of everything, as losses take it.
    pub fn mean_all(&self) -> Tensor {
        let dims: Vec<isize> = (0..self.shape().len() as isize).collect();
        let kept = self.mean(&dims);
        kept.view(&[])
    }
}
