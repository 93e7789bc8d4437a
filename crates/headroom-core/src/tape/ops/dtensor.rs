//! What `DTensor` does where it lays a tensor out anew over a group of GPUs: collectives and the copies around them
//! (torch/distributed/tensor/placement_types.py, torch/distributed/_functional_collectives.py).

use super::super::core::SelectableOp;
use super::super::{Layout, Tensor, borrowing, consuming, grads};

impl Tensor {
    /// `Partial` to `Replicate`: an all-reduce into a new tensor. The gradient is complete already.
    pub fn all_reduce(&self) -> Tensor {
        self.summed_over_group()
            .from_op(&[self], |_| consuming(|g| grads([Some(g)])))
    }

    /// `DTensor.from_local(self, [Replicate()])`: its gradient comes in partial sums, which are all-reduced.
    pub fn replicate(&self) -> Tensor {
        self.detach().from_op(&[self], |_| {
            borrowing(|g| grads([Some(g.summed_over_group())]))
        })
    }

    /// `Partial` to `Shard(dim)` over `group` GPUs: a reduce-scatter. The gradient is gathered.
    pub fn reduce_scatter(&self, group: u64, dim: isize) -> Tensor {
        self.scattered_to_group(group, dim).from_op(&[self], |_| {
            borrowing(move |g| grads([Some(g.gathered_from_group(group, dim))]))
        })
    }

    /// `Shard(dim)` to `Replicate`: an all-gather. The gradient comes in partial sums, which are reduce-scattered; it is a
    /// `DTensor`, whose sums the engine never takes in place.
    pub fn all_gather(&self, group: u64, dim: isize) -> Tensor {
        self.gathered_from_group(group, dim)
            .from_op(&[self], |_| {
                borrowing(move |g| grads([Some(g.scattered_to_group(group, dim))]))
            })
            .summed_out_of_place()
    }

    /// The same where what follows is local and its gradient complete: each GPU copies its part.
    pub fn all_gather_replicated(&self, group: u64, dim: isize) -> Tensor {
        let part = *self.shape();
        self.gathered_from_group(group, dim).from_op(&[self], |_| {
            borrowing(move |g| grads([Some(g.copied_part(Layout::contiguous(part)))]))
        })
    }

    /// `Replicate` to `Shard(0)`: each GPU copies its rows. The gradient is gathered.
    pub fn own_rows(&self, group: u64) -> Tensor {
        let part = self.shape().with(0, self.size(0) / group.max(1));
        self.copied_part(Layout::contiguous(part))
            .from_op(&[self], |_| {
                borrowing(move |g| grads([Some(g.gathered_from_group(group, 0))]))
            })
    }

    fn summed_over_group(&self) -> Tensor {
        let out = self.copied("all_reduce", Layout::contiguous(*self.shape()));
        self.tape().kernel("all_reduce", self.dtype(), 0.0, 0.0);
        out
    }

    fn copied_part(&self, layout: Layout) -> Tensor {
        let out = self.tape().empty_as("split", layout, self.dtype());
        let moved = 2.0 * out.bytes() as f64;
        self.tape().kernel("split", self.dtype(), 0.0, moved);
        out
    }

    /// `all_gather_single`: the parts come one after the other, and are joined unless they lie so already
    /// (`_maybe_view_chunk_cat` in torch/_utils.py).
    fn gathered_from_group(&self, group: u64, dim: isize) -> Tensor {
        let tape = self.tape();
        let Some(at) = self.dim(dim) else {
            return self.detach();
        };
        let before: u64 = self.shape().iter().take(at).product();
        let whole = self.shape().with(at, self.size(dim).saturating_mul(group));
        let gathered = tape.empty("all_gather", whole, self.dtype());
        tape.kernel("all_gather", self.dtype(), 0.0, gathered.bytes() as f64);
        if before <= 1 {
            return gathered;
        }
        gathered.pipe(|gathered| gathered.copied("cat", Layout::contiguous(whole)))
    }

    /// `reduce_scatter_single`: parts of any dimension but the first are put one after the other before.
    fn scattered_to_group(&self, group: u64, dim: isize) -> Tensor {
        let tape = self.tape();
        let Some(at) = self.dim(dim) else {
            return self.detach();
        };
        let joined = (at > 0).then(|| self.copied("cat", Layout::contiguous(*self.shape())));
        let part = self.shape().with(at, self.size(dim) / group.max(1));
        let scatter = || {
            let out = tape.empty("reduce_scatter", part, self.dtype());
            tape.kernel("reduce_scatter", self.dtype(), 0.0, self.bytes() as f64);
            [out]
        };
        let [out] = self.core().selective(SelectableOp::ReduceScatter, scatter);
        drop(joined);
        out
    }

    /// Rows of a table of which this GPU has a part (`MaskPartial`): ids of other rows are masked. `rows` are those of the whole
    /// table, of which the gradient is complete on each GPU.
    pub fn embedding_part(&self, indices: &Tensor, rows: u64) -> Tensor {
        let masked = Self::masked_indices(indices);
        let found = self.embedding_of(indices, rows);
        drop(masked);
        found
    }
}
