//! Moving rows by index: what message passing is made of.

use super::super::{Layout, Tensor, borrowing, grads};

impl Tensor {
    /// `self.index_select(0, index)` with `count` indices: saves the indices.
    pub fn index_select(&self, index: &Tensor, count: u64) -> Tensor {
        let whole = *self.shape();
        let out = self.moved("index_select", count);
        out.from_op(&[self], |_| {
            let kept = index.save();
            borrowing(move |g| {
                let index = kept.unpack();
                // `grad.new_zeros(sizes).index_add_(0, index, grad)`.
                let out = g.tape().empty("index_add_", whole, g.dtype());
                let bytes = 2.0 * g.bytes() as f64 + out.bytes() as f64;
                g.tape()
                    .kernel("index_add_", g.dtype(), g.numel() as f64, bytes);
                drop(index);
                grads([Some(out)])
            })
        })
    }

    /// `zeros.scatter_add_(0, index, self)` into `rows` rows: saves the indices.
    pub fn scatter_add(&self, index: &Tensor, rows: u64) -> Tensor {
        let count = self.size(0);
        let out = self.moved("scatter_add_", rows);
        out.from_op(&[self], |_| {
            let kept = index.save();
            borrowing(move |g| {
                let index = kept.unpack();
                let out = g.moved("gather", count);
                drop(index);
                grads([Some(out)])
            })
        })
    }

    /// `torch_geometric.utils.scatter(self, index, reduce="mean")` into `rows` rows: how many there are of each is counted, and
    /// kept where the sums are divided by it.
    pub fn scatter_mean(&self, index: &Tensor, rows: u64) -> Tensor {
        let zeros = self.constant("zeros", &[rows, 1], self.dtype());
        drop(self.constant("ones", &[self.size(0)], self.dtype()));
        let counted = self.constant("clamp", &[rows, 1], self.dtype());
        drop(zeros);
        let sums = self.scatter_add(index, rows);
        let out = sums.div(&counted);
        drop(counted);
        out
    }

    /// `scatter(self.detach(), index, reduce="max")` into `rows` rows.
    pub fn scatter_max(&self, rows: u64) -> Tensor {
        self.moved("scatter_reduce_", rows)
    }

    /// New memory for `rows` rows like this tensor's.
    fn moved(&self, op: &'static str, rows: u64) -> Tensor {
        let shape = self.shape().with(0, rows);
        let out = self
            .tape()
            .empty_as(op, Layout::contiguous(shape), self.dtype());
        let bytes = self.bytes() as f64 + out.bytes() as f64;
        self.tape().kernel(op, self.dtype(), 0.0, bytes);
        out
    }
}
