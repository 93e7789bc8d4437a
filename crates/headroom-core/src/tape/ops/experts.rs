//! What mixtures of experts are made of: choosing, sorting and grouped products.

use super::super::{DType, Grads, Saved, Tensor, borrowing, grads};
use super::embedding::radix_sort_workspace;
use super::index::summed_by_index;

impl Tensor {
    /// `torch.topk(self, k, -1)`: values and indices; the gradient is scattered into zeros.
    pub fn topk(&self, k: u64) -> (Tensor, Tensor) {
        let whole = *self.shape();
        let shape = whole.with(whole.len().saturating_sub(1), k);
        let tape = self.tape();
        let values = tape.empty("topk", shape, self.dtype());
        let indices = tape.empty("topk", shape, DType::I64);
        let values = values.from_op(&[self], |_| {
            let kept = indices.save();
            borrowing(move |g| {
                let _places = kept.unpack();
                grads([Some(g.tape().empty("scatter", whole, g.dtype()))])
            })
        });
        (values, indices)
    }

    /// `torch.sort(self)` of indices: values and where they came from (`sort_stable` in Sort.cpp).
    pub fn sorted(&self) -> (Tensor, Tensor) {
        /// Longer ones are sorted by cub, shorter ones in a block's shared memory.
        const IN_A_BLOCK: u64 = 4096;
        let tape = self.tape();
        let values = self.map("sort");
        let places = tape.empty("sort", *self.shape(), DType::I64);
        let range = tape.empty("sort", *self.shape(), DType::I64);
        if self.numel() > IN_A_BLOCK {
            let all_bits = u64::MAX;
            tape.workspace("sort", radix_sort_workspace(self.numel(), all_bits));
        }
        drop(range);
        (values, places)
    }

    /// `self[places]`: rows by index; the gradient is summed into zeros, row after row.
    pub fn rows_at(&self, places: &Tensor) -> Tensor {
        let whole = *self.shape();
        let tape = self.tape();
        let shape = whole.with(0, places.numel());
        let history = Tensor::history(&[self], |_| {
            let kept = places.save();
            borrowing(move |g| {
                let places = kept.unpack();
                let out = g.tape().empty("new_zeros", whole, g.dtype());
                summed_by_index(g, places.numel(), whole.first().copied().unwrap_or(0));
                grads([Some(out)])
            })
        });
        tape.empty("index", shape, self.dtype())
            .with_history(history)
    }

    /// The same by `count` indices on the host, which are copied to the device forth and back.
    pub fn rows_by_list(&self, count: u64) -> Tensor {
        let whole = *self.shape();
        let history = Tensor::history(&[self], |_| {
            borrowing(move |g| {
                let out = g.tape().empty("new_zeros", whole, g.dtype());
                let places = g.tape().empty("index_put", [count], DType::I64);
                summed_by_index(g, places.numel(), whole.first().copied().unwrap_or(0));
                grads([Some(out)])
            })
        });
        let places = self.tape().empty("index", [count], DType::I64);
        let shape = whole.with(0, count);
        let out = self.tape().empty("index", shape, self.dtype());
        drop(places);
        out.with_history(history)
    }

    /// `self[..., [n], ...]`: one slice of a dimension by a list of one index, which is copied to the device.
    pub fn one_of(&self, dim: isize) -> Tensor {
        let whole = *self.shape();
        let tape = self.tape();
        let Some(at) = self.dim(dim) else {
            return self.clone();
        };
        let places = tape.empty("index", [1], DType::I64);
        let rows = whole.get(at).copied().unwrap_or(1);
        let history = Tensor::history(&[self], |_| {
            let kept = places.save();
            borrowing(move |g| {
                let places = kept.unpack();
                let out = g.tape().empty("new_zeros", whole, g.dtype());
                summed_by_index(g, places.numel(), rows);
                grads([Some(out)])
            })
        });
        tape.empty("index", whole.with(at, 1), self.dtype())
            .with_history(history)
    }

    /// `all_to_all_single_autograd` of rows, as many to each GPU: the gradient goes the same way back.
    pub fn exchanged_rows(&self) -> Tensor {
        let exchange = |rows: &Tensor| {
            let rows = rows.contiguous_in(false);
            let tape = rows.tape();
            let received = tape.empty("all_to_all", *rows.shape(), rows.dtype());
            tape.kernel("all_to_all", rows.dtype(), 0.0, rows.bytes() as f64);
            received
        };
        exchange(self).from_op(&[self], |_| borrowing(move |g| grads([Some(exchange(g))])))
    }

    /// `out = torch.empty_like(self); out[places] = self`: the gradient is taken from those places.
    pub fn put_at(&self, places: &Tensor) -> Tensor {
        self.map("index_put").from_op(&[self], |_| {
            let kept = places.save();
            borrowing(move |g| {
                let places = kept.unpack();
                let rows = g.map("index");
                drop(places);
                grads([Some(rows)])
            })
        })
    }

    /// `F.grouped_mm(self, weight, offs)`: rows `[S, K]`, sorted by expert, with each expert's `[K, N]` of `weight`, or with
    /// the transpose of its `[N, K]`. Autocast does not know it: both have one type.
    pub fn grouped_product(&self, weight: &Tensor, offsets: &Tensor, transposed: bool) -> Tensor {
        let rows = self.to(weight.dtype());
        let tape = self.tape();
        let n = weight.size(if transposed { 1 } else { 2 });
        let (count, k) = (rows.size(0), rows.size(-1));
        let experts = *weight.shape();
        let dtype = weight.dtype();
        let flops = 2.0 * count as f64 * k as f64 * n as f64;
        let moved = rows.bytes() as f64 + weight.bytes() as f64;
        let history = Tensor::history(&[&rows, weight], |needs| {
            let kept_weight = needs.input(0).then(|| weight.save());
            let kept_rows = needs.input(1).then(|| rows.save());
            let kept_offsets = offsets.save();
            borrowing(move |g| {
                let tape = g.tape();
                let unpacked =
                    [&kept_rows, &kept_weight].map(|saved| saved.as_ref().map(Saved::unpack));
                let offsets = kept_offsets.unpack();
                let [rows, weight] = &unpacked;
                let product = |shape: &[u64]| {
                    tape.kernel("grouped_mm", dtype, flops, moved);
                    tape.empty("grouped_mm", shape, dtype)
                };
                let for_weight = rows.as_ref().map(|_| {
                    let gradient = product(&experts);
                    if transposed {
                        gradient.detach()
                    } else {
                        gradient
                    }
                });
                let for_rows = weight.as_ref().map(|_| product(&[count, k]));
                drop((unpacked, offsets));
                grads([for_rows, for_weight])
            })
        });
        tape.kernel("grouped_mm", dtype, flops, moved);
        tape.empty("grouped_mm", [count, n], dtype)
            .with_history(history)
    }

    /// `self /= other`: the quotient's gradient for `other` needs what was there before, so it is cloned first.
    pub fn div_(&self, other: &Tensor) -> Tensor {
        let original = other.requires_grad().then(|| self.map("clone"));
        let (own, meta) = (self.meta(), other.meta());
        self.detached_edge().from_op(&[self, other], |needs| {
            let needs_self = needs.input(0);
            let kept = [original.as_ref().map(Tensor::save), Some(other.save())];
            borrowing(move |g| {
                let [original, other] =
                    kept.each_ref().map(|kept| kept.as_ref().map(Saved::unpack));
                let Some(other) = other else {
                    return Grads::new();
                };
                let for_other = original.as_ref().map(|original| {
                    let once = original.zip(&other, "div");
                    let quotient = once.zip(&other, "div");
                    let negative = g.map("neg");
                    let product = negative.zip(&quotient, "mul");
                    drop((once, quotient, negative));
                    product
                });
                let for_self = needs_self.then(|| g.zip(&other, "div"));
                drop((original, other));
                grads([
                    for_self.map(|g| g.conform(own)),
                    for_other.map(|g| g.conform(meta)),
                ])
            })
        })
    }
}
