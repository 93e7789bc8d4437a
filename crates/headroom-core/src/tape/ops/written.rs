//! Writing into slices of a tensor, and turning by complex numbers.

use super::super::{DType, Dims, Layout, Saved, Tensor, borrowing, consuming, grads};

impl Tensor {
    /// `self[..., a:b].copy_(part)` along the last dimension: the same memory with another history.
    ///
    /// Follows `CopySlices::apply` (torch/csrc/autograd/functions/tensor.cpp): the gradient is copied whole, the slice
    /// once more, and zeros for what was written over are made where the base has a history.
    pub fn copy_into_slice_(&self, part: &Tensor) -> Tensor {
        let base_layout = *self.layout();
        let shape = *part.shape();
        let meta = part.meta();
        self.tape()
            .kernel("copy_", self.dtype(), 0.0, 2.0 * part.bytes() as f64);
        self.detached_edge().from_op(&[self, part], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            consuming(move |g| {
                let result = g.copied("new_empty_strided", base_layout);
                let piece = g.tape().empty("clone", shape, g.dtype());
                let zeros = needs[0].then(|| piece.map("zeros_like"));
                let for_part = needs[1].then(|| piece.clone().conform(meta));
                drop((piece, zeros, g));
                grads([needs[0].then_some(result), for_part])
            })
        })
    }

    /// `torch.view_as_complex(self.float().reshape(.., -1, 2)) * table`, seen as real numbers again; `table` holds pairs too.
    pub fn mul_complex(&self, table: &Tensor) -> Tensor {
        let whole = *self.shape();
        let pairs = |x: &Tensor| {
            let mut shape: Vec<u64> = x.shape().to_vec();
            if let Some(last) = shape.last_mut() {
                *last /= 2;
            }
            shape.push(2);
            x.reshape(&shape)
        };
        let numbers = pairs(self);
        let meta = numbers.meta();
        let product = numbers.zip(table, "complex_mul").from_op(&[&numbers], |_| {
            let kept = table.save();
            consuming(move |g| {
                // Pairs must be adjacent, and the conjugate is made for the product.
                let dense = g.contiguous();
                drop(g);
                let conjugate = kept.unpack().pipe(|table| table.map("conj"));
                let product = dense.zip(&conjugate, "complex_mul");
                drop((dense, conjugate));
                grads([Some(product.conform(meta))])
            })
        });
        product.reshape(&whole)
    }

    /// `self.gather(1, index)`: the gradient is added into zeros; the input is saved for its shape.
    pub fn gathered(&self, index: &Tensor) -> Tensor {
        let whole = *self.shape();
        let tape = self.tape();
        tape.empty("gather", *index.shape(), self.dtype())
            .from_op(&[self], |_| {
                let kept = [self, index].map(Self::save);
                borrowing(move |g| {
                    let _inputs = kept.each_ref().map(Saved::unpack);
                    grads([Some(g.tape().empty("scatter_add", whole, g.dtype()))])
                })
            })
    }

    /// `self.max(dim=-1).values`: saves the indices.
    pub fn max_values(&self) -> Tensor {
        let whole = *self.shape();
        let shape = Dims::new(whole.split_last().map_or(&[][..], |(_, lead)| lead));
        let tape = self.tape();
        let values = tape.empty("max", shape, self.dtype());
        let indices = tape.empty("max", shape, DType::I64);
        values.from_op(&[self], |_| {
            let kept = indices.save();
            borrowing(move |g| {
                let _places = kept.unpack();
                let out = g
                    .tape()
                    .empty_as("scatter", Layout::contiguous(whole), g.dtype());
                grads([Some(out)])
            })
        })
    }
}
