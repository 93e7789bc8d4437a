//! Writing into parts of a tensor, and the variance that hand-written norms take.

use super::super::{DType, Layout, Saved, Tensor, borrowing, consuming, grads};

impl Tensor {
    /// `self[..., a:b] = value`: the same memory, a new history. Backward copies the full gradient, takes the part's
    /// and leaves zeros there (`CopySlices`).
    pub fn put(&self, value: &Tensor) -> Tensor {
        let (base, part) = (self.meta(), value.meta());
        let bytes = 2.0 * value.bytes() as f64;
        self.tape().kernel("copy_", self.dtype(), 0.0, bytes);
        self.detached_edge().from_op(&[self, value], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            consuming(move |g| {
                let whole = g.copied("new_empty_strided", Layout::contiguous(*base.shape()));
                drop(g);
                let taken = whole.constant("clone", part.shape(), base.dtype);
                let for_part = needs[1].then(|| taken.conform(part));
                grads([needs[0].then_some(whole), for_part])
            })
        })
    }

    /// `self[1:] += value` for a part of so many rows: the same memory, a new history. Backward copies the full gradient and takes
    /// the part's of it (`CopySlices` around the sum).
    pub fn add_to_part(&self, value: &Tensor, rows: u64) -> Tensor {
        let (base, added) = (self.meta(), value.meta());
        let part = self.shape().with(0, rows);
        let bytes = 3.0 * value.bytes() as f64;
        self.tape().kernel("add_", self.dtype(), 0.0, bytes);
        self.detached_edge().from_op(&[self, value], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            consuming(move |g| {
                let whole = g.copied("new_empty_strided", Layout::contiguous(*base.shape()));
                drop(g);
                let taken = whole.constant("clone", &part, base.dtype);
                let for_value = needs[1].then(|| taken.clone().conform(added));
                drop(taken);
                grads([needs[0].then_some(whole), for_value])
            })
        })
    }

    /// `self[mask] = rows` of `[B, S, H]` with a Boolean mask `[B, S]` that is true for as many places as there are rows: the same
    /// memory, a new history. The mask is saved; the gradient is copied with zeros in those places, and taken from them.
    pub fn put_where(&self, mask: &Tensor, rows: &Tensor) -> Tensor {
        let (shape, taken) = (*self.shape(), *rows.shape());
        let places = [rows.size(0), mask.shape().len() as u64];
        drop(self.constant("nonzero", &places, DType::I64));
        let bytes = 2.0 * rows.bytes() as f64;
        self.tape().kernel("index_put", self.dtype(), 0.0, bytes);
        self.detached_edge().from_op(&[self, rows], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            let kept = mask.save();
            borrowing(move |g| {
                let mask = kept.unpack();
                let for_self = needs[0].then(|| {
                    let zeros = g.constant("zeros", &taken, g.dtype());
                    let whole = g.copied("index_put", Layout::contiguous(shape));
                    drop(g.constant("nonzero", &places, DType::I64));
                    drop(zeros);
                    whole
                });
                let for_rows = needs[1].then(|| {
                    let places = g.constant("nonzero", &places, DType::I64);
                    let rows = g.constant("index", &taken, g.dtype());
                    drop(places);
                    rows
                });
                drop(mask);
                grads([for_self, for_rows])
            })
        })
    }

    /// `self.var(-1, keepdim=True, unbiased=False)`: saves its input.
    pub fn variance(&self) -> Tensor {
        let input = self.clone();
        self.tape()
            .no_grad(|| self.detach().mean(&[-1]).detach())
            .from_op(&[self], |_| {
                let kept = input.save();
                borrowing(move |g| {
                    // 2 / n * grad * (self - self.mean())
                    let input = kept.unpack();
                    let scaled = g.map("mul");
                    let mean = input.detach().mean(&[-1]);
                    let centred = input.zip(&mean, "sub");
                    drop(mean);
                    let out = scaled.zip(&centred, "mul");
                    drop((centred, scaled, input));
                    grads([Some(out)])
                })
            })
    }

    /// `torch.linalg.vector_norm(self, dim=-1, keepdim=True)` of a tensor without history.
    pub fn length(&self) -> Tensor {
        self.tape().no_grad(|| self.detach().mean(&[-1]).detach())
    }

    /// `self.norm(2, -1, keepdim=True)`: saves its input and its result (`norm_backward` in FunctionsManual.cpp).
    pub fn vector_length(&self) -> Tensor {
        self.vector_length_over(&[-1])
    }

    /// The same over other dimensions.
    pub fn vector_length_over(&self, dims: &[isize]) -> Tensor {
        let input = self.clone();
        // Autocast makes the result fp32, as a sum's.
        let out = self.tape().no_grad(|| self.detach().sum(dims).detach());
        let result = out.clone();
        out.from_op(&[self], |_| {
            let kept = [&input, &result].map(Tensor::save);
            borrowing(move |g| {
                let [input, length] = kept.each_ref().map(Saved::unpack);
                let unit = input.zip(&length, "div");
                let is_zero = length.map_to("eq", DType::Bool);
                let out = unit.zip(g, "mul");
                drop((unit, is_zero));
                grads([Some(out)])
            })
        })
    }
}
