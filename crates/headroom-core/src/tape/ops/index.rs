//! Look-ups by index tensors.

use super::super::{DType, Layout, Saved, Tensor, borrowing, consuming, grads};
use super::embedding::radix_sort_workspace;

impl Tensor {
    /// `self.index_add_(0, rows, other)`: the same memory. Backward takes the rows from the gradient, and their shape from
    /// what was added, which it saves (derivatives.yaml: `expand_as(source)`).
    pub fn index_add_(&self, other: &Tensor, rows: &Tensor) -> Tensor {
        let b = other.meta();
        self.detached_edge().from_op(&[self, other], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            let kept = [other.save(), rows.save()];
            consuming(move |g| {
                let unpacked = kept.map(|kept| kept.unpack());
                let for_other = needs[1].then(|| {
                    g.tape()
                        .empty("index_select", *unpacked[0].shape(), g.dtype())
                        .conform(b)
                });
                grads([needs[0].then_some(g), for_other])
            })
        })
    }

    /// `self[rows, columns]` with one index each a row: saves the indices; the gradient is put into zeros of the full shape.
    pub fn picked(&self, rows: &Tensor, columns: &Tensor) -> Tensor {
        let tape = self.tape();
        let (whole, dtype) = (*self.shape(), self.dtype());
        let width = self.size(-1);
        let out = tape.empty("index", [rows.numel(), width], dtype);
        tape.kernel("index", dtype, 0.0, 2.0 * out.bytes() as f64);
        out.from_op(&[self], |_| {
            let kept = [rows.save(), columns.save()];
            borrowing(move |g| {
                let _indices = kept.each_ref().map(Saved::unpack);
                let out = g.tape().empty("index_put", whole, dtype);
                g.tape()
                    .kernel("index_put", dtype, 0.0, 2.0 * g.bytes() as f64);
                grads([Some(out)])
            })
        })
    }

    /// `self[indices]`: full rows; the gradient is put into zeros of the full shape.
    pub fn rows(&self, indices: &Tensor) -> Tensor {
        let tape = self.tape();
        let (whole, dtype) = (*self.shape(), self.dtype());
        let out = tape.empty("index", whole.with(0, indices.numel()), dtype);
        tape.kernel("index", dtype, 0.0, 2.0 * out.bytes() as f64);
        out.from_op(&[self], |_| {
            let kept = indices.save();
            borrowing(move |g| {
                let indices = kept.unpack();
                let out = g.tape().empty("index_put", whole, dtype);
                summed_by_index(g, indices.numel(), whole.first().copied().unwrap_or(0));
                g.tape()
                    .kernel("index_put", dtype, 0.0, 2.0 * g.bytes() as f64);
                grads([Some(out)])
            })
        })
    }

    /// `self[indices]` with indices of a shape on the host, which are copied each time they are used.
    pub fn rows_from_host(&self, indices: &[u64]) -> Tensor {
        let tape = self.tape();
        let count = indices.iter().copied().fold(1, u64::saturating_mul);
        let (whole, dtype) = (*self.shape(), self.dtype());
        let row = whole.get(1..).unwrap_or_default();
        let shape = [indices, row].concat();
        let indices = tape.empty("index_to_device", [count], DType::I64);
        let out = tape.empty("index", &shape[..], dtype);
        drop(indices);
        tape.kernel("index", dtype, 0.0, 2.0 * out.bytes() as f64);
        out.from_op(&[self], |_| {
            borrowing(move |g| {
                let tape = g.tape();
                let out = tape.empty("index_put", whole, dtype);
                // They are joined to one index on the host.
                let linear = tape.empty("index_to_device", [count], DType::I64);
                sorted_by_index(g, linear, whole.first().copied().unwrap_or(0));
                tape.kernel("index_put", dtype, 0.0, 2.0 * g.bytes() as f64);
                grads([Some(out)])
            })
        })
    }

    /// These columns among `width` others that are zero: `index_copy` into zeros, which may copy them first. Its backward
    /// takes the source's shape from the source, and so keeps it (derivatives.yaml: `expand_as(source)`).
    pub fn index_copy_into_zeros(&self, width: u64, copies: bool) -> Tensor {
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
            out = out.pipe(|zeros| zeros.constant("index_copy", zeros.shape(), dtype));
        }
        out.from_op(&[&source], |_| {
            let kept = source.save();
            borrowing(move |g| {
                let source = kept.unpack();
                let out = g.tape().empty("index_select", columns, dtype);
                drop(source);
                grads([Some(out)])
            })
        })
    }

    /// `self.index_copy(0, index, rows)` of a frozen table: a full copy. The rows are saved, for their shape.
    pub fn with_rows(&self, rows: &Tensor) -> Tensor {
        let out = self.copied("index_copy", Layout::contiguous(*self.shape()));
        let shape = *rows.shape();
        out.from_op(&[rows], |_| {
            let kept = rows.save();
            borrowing(move |g| {
                let _rows = kept.unpack();
                grads([Some(g.tape().empty("index_select", shape, g.dtype()))])
            })
        })
    }

    /// `matrix[..., rows, columns] = self` into zeros of this shape: the gradient is picked out again.
    pub fn scattered_into(&self, op: &'static str, shape: &[u64]) -> Tensor {
        let tape = self.tape();
        let out = tape.empty(op, shape, self.dtype());
        let own = *self.shape();
        out.from_op(&[self], |_| {
            borrowing(move |g| grads([Some(g.tape().empty("index", own, g.dtype()))]))
        })
    }

    /// `self.index_select(-1, torch.arange(count))`: a copy; the gradient is added into zeros of the full shape.
    pub fn first_columns(&self, count: u64) -> Tensor {
        let tape = self.tape();
        let whole = *self.shape();
        let last = whole.len().saturating_sub(1);
        let index = self.constant("arange", &[count], DType::I64);
        let out = tape.empty("index_select", whole.with(last, count), self.dtype());
        tape.kernel("index_select", self.dtype(), 0.0, 2.0 * out.bytes() as f64);
        out.from_op(&[self], |_| {
            let kept = index.save();
            borrowing(move |g| {
                let _index = kept.unpack();
                let out = g.tape().empty("index_add_", whole, g.dtype());
                let moved = 2.0 * g.bytes() as f64 + out.bytes() as f64;
                g.tape().kernel("index_add_", g.dtype(), 0.0, moved);
                grads([Some(out)])
            })
        })
    }

    /// `self[:, indices]` of a table: saves the indices; the gradient is put into zeros of the full shape.
    pub fn columns(&self, indices: &Tensor) -> Tensor {
        let tape = self.tape();
        let (whole, dtype) = (*self.shape(), self.dtype());
        let shape = [&[self.size(0)], &indices.shape()[..]].concat();
        let out = tape.empty("index", &shape[..], dtype);
        tape.kernel("index", dtype, 0.0, 2.0 * out.bytes() as f64);
        out.from_op(&[self], |_| {
            let kept = indices.save();
            borrowing(move |g| {
                let indices = kept.unpack();
                let out = g.tape().empty("index_put", whole, dtype);
                summed_by_index(g, indices.numel(), out.numel());
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
            borrowing(move |g| {
                let out = g.tape().empty("slice_backward", whole, g.dtype());
                let bytes = g.bytes() as f64 + out.bytes() as f64;
                g.tape().kernel("slice_backward", g.dtype(), 0.0, bytes);
                grads([Some(out)])
            })
        })
    }
}

/// The scratch memory of `index_put_` with accumulation (`index_put_with_sort_kernel` in Indexing.cu): indices are sorted to
/// sum equal ones in order.
pub(super) fn summed_by_index(gradient: &Tensor, count: u64, different: u64) {
    let index = || gradient.constant("index_put", &[count], DType::I64);
    let linear = index();
    drop(index());
    sorted_by_index(gradient, linear, different);
}

/// The same from one index for each place on.
fn sorted_by_index(gradient: &Tensor, linear: Tensor, different: u64) {
    /// cub sorts fewer in one block of 256 threads, nine pairs of 64 bits each (`SingleTilePolicy`).
    const ONE_TILE: u64 = 2304;
    let tape = linear.tape();
    let count = linear.numel();
    let index = || linear.constant("index_put", &[count], DType::I64);
    let copied = (!gradient.layout().is_contiguous())
        .then(|| tape.empty("contiguous", *gradient.shape(), gradient.dtype()));
    let (sorted, original, range) = (index(), index(), index());
    let scratch = if count <= ONE_TILE {
        1
    } else {
        radix_sort_workspace(count, different.saturating_sub(1))
    };
    tape.workspace("index_put", scratch);
    drop((range, original, sorted, copied, linear));
}
