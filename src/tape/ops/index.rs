//! Look-ups by index tensors.

use super::super::{Grads, Layout, Tensor, grads};

impl Tensor {
    /// `self[rows, columns]` with one index each a row: keeps the indices; the gradient is put into zeros of the whole shape.
    pub fn picked(&self, rows: &Tensor, columns: &Tensor) -> Tensor {
        let tape = self.tape();
        let (whole, dtype) = (*self.shape(), self.dtype());
        let width = self.size(-1);
        let out = tape.empty("index", [rows.numel(), width], dtype);
        tape.kernel("index", dtype, 0.0, 2.0 * out.bytes() as f64);
        out.from_op(&[self], |_| {
            let kept = [rows.save(), columns.save()];
            Box::new(move |incoming| {
                let Some(g) = incoming[0].as_ref() else {
                    return Grads::new();
                };
                let _indices = kept.each_ref().map(super::super::Saved::unpack);
                let out = g.tape().empty("index_put", whole, dtype);
                g.tape()
                    .kernel("index_put", dtype, 0.0, 2.0 * g.bytes() as f64);
                grads([Some(out)])
            })
        })
    }

    /// `self[indices]`: whole rows; the gradient is put into zeros of the whole shape.
    pub fn rows(&self, indices: &Tensor) -> Tensor {
        let tape = self.tape();
        let (whole, dtype) = (*self.shape(), self.dtype());
        let out = tape.empty("index", whole.with(0, indices.numel()), dtype);
        tape.kernel("index", dtype, 0.0, 2.0 * out.bytes() as f64);
        out.from_op(&[self], |_| {
            let kept = indices.save();
            Box::new(move |incoming| {
                let Some(g) = incoming[0].as_ref() else {
                    return Grads::new();
                };
                let _indices = kept.unpack();
                let out = g.tape().empty("index_put", whole, dtype);
                g.tape()
                    .kernel("index_put", dtype, 0.0, 2.0 * g.bytes() as f64);
                grads([Some(out)])
            })
        })
    }

    /// These columns among `width` others that are zero: `index_copy` into zeros, which may copy them first. Its backward
    /// takes the source's shape from the source, and so keeps it (derivatives.yaml: `expand_as(source)`).
    pub fn in_zeros(&self, width: u64, copies: bool) -> Tensor {
        let columns = *self.shape();
        let dtype = self.dtype();
        let last = columns.len().saturating_sub(1);
        let mut out = self.constant("new_zeros", &columns.with(last, width), dtype);
        let source = if copies {
            self.contiguous()
        } else {
            self.clone()
        };
        if copies {
            out = out.then(|zeros| zeros.constant("index_copy", zeros.shape(), dtype));
        }
        out.from_op(&[&source], |_| {
            let kept = source.save();
            Box::new(move |incoming| {
                let Some(g) = incoming[0].as_ref() else {
                    return Grads::new();
                };
                let source = kept.unpack();
                let out = g.tape().empty("index_select", columns, dtype);
                drop(source);
                grads([Some(out)])
            })
        })
    }

    /// `self[:, indices]` of a table: keeps the indices; the gradient is put into zeros of the whole shape.
    pub fn columns(&self, indices: &Tensor) -> Tensor {
        let tape = self.tape();
        let (whole, dtype) = (*self.shape(), self.dtype());
        let shape = [&[self.size(0)], &indices.shape()[..]].concat();
        let out = tape.empty("index", &shape[..], dtype);
        tape.kernel("index", dtype, 0.0, 2.0 * out.bytes() as f64);
        out.from_op(&[self], |_| {
            let kept = indices.save();
            Box::new(move |incoming| {
                let Some(g) = incoming[0].as_ref() else {
                    return Grads::new();
                };
                let _indices = kept.unpack();
                let out = g.tape().empty("index_put", whole, dtype);
                g.tape()
                    .kernel("index_put", dtype, 0.0, 2.0 * g.bytes() as f64);
                grads([Some(out)])
            })
        })
    }

    /// `self[..., ::2, ...]` along one dimension: a view; backward puts the gradient into zeros.
    pub fn every_second(&self, dim: isize) -> Tensor {
        let Some(at) = self.dim(dim) else {
            return self.clone();
        };
        let whole = *self.shape();
        let Layout { shape, strides } = *self.layout();
        let layout = Layout {
            shape: shape.with(at, self.size(dim).div_ceil(2)),
            strides: strides.with(at, strides.get(at).map_or(1, |step| step.saturating_mul(2))),
        };
        self.alias(layout).from_op(&[self], |_| {
            Box::new(move |incoming| {
                let Some(g) = incoming[0].as_ref() else {
                    return Grads::new();
                };
                let out = g.tape().empty("slice_backward", whole, g.dtype());
                let bytes = g.bytes() as f64 + out.bytes() as f64;
                g.tape().kernel("slice_backward", g.dtype(), 0.0, bytes);
                grads([Some(out)])
            })
        })
    }
}
