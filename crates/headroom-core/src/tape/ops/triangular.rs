//! Systems with a triangular matrix, and running sums along a dimension.

use super::super::{DType, Layout, Saved, Tensor, borrowing, grads};

impl Tensor {
    /// `torch.linalg.solve_triangular(self, other, upper=..)` for batches of row-major matrices: the result is written over a
    /// column-major copy of `other` (`linalg_solve_triangular_out` in BatchLinearAlgebra.cpp).
    pub fn solve_triangular(&self, other: &Tensor) -> Tensor {
        let result = self.solved(other);
        let kept_result = result.clone();
        result.from_op(&[self, other], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            let kept = [self, &kept_result].map(Tensor::save);
            borrowing(move |g| {
                let [matrix, result] = kept.each_ref().map(Saved::unpack);
                let for_other = matrix.solved(g);
                // -tril(for_other @ result.mH)
                let for_matrix = needs[0].then(|| {
                    let negative = {
                        let product = for_other
                            .detach()
                            .matmul(&result.detach().transpose(-2, -1));
                        product.map("neg")
                    };
                    negative.map("tril")
                });
                grads([for_matrix, needs[1].then_some(for_other)])
            })
        })
    }

    fn solved(&self, other: &Tensor) -> Tensor {
        let n = other.shape().len();
        let columns: Vec<u64> = (0..n)
            .map(|i| match i {
                _ if i + 2 == n => other.size(-1),
                _ if i + 1 == n => other.size(-2),
                _ => other.size(i as isize),
            })
            .collect();
        let tape = self.tape();
        let flat = Layout::contiguous(columns.as_slice());
        let out = tape.empty_as(
            "solve_triangular",
            flat.transposed(n - 2, n - 1),
            other.dtype(),
        );
        // The addresses of the matrices, for the batched kernel.
        let batch = self.numel() / (self.size(-1) * self.size(-2)).max(1);
        let pointers = [0; 2].map(|_| tape.empty("arange", [batch], DType::I64));
        tape.cublas_workspace();
        let work = out.numel() as f64 * self.size(-1) as f64;
        tape.kernel(
            "solve_triangular",
            out.dtype(),
            work,
            2.0 * out.bytes() as f64,
        );
        drop(pointers);
        out
    }

    /// `self.cumsum(dim)`: dense, of a dense copy where need be; backward sums the flipped gradient and flips it back.
    pub fn cumsum(&self, dim: isize) -> Tensor {
        let summed = |x: &Tensor, op| {
            let dense = x.contiguous_in(false);
            let out = x.tape().empty(op, *x.shape(), x.dtype());
            let moved = x.bytes().saturating_add(out.bytes()) as f64;
            x.tape().kernel(op, x.dtype(), 0.0, moved);
            drop(dense);
            out
        };
        let single = self.size(dim) == 1;
        let input = self.autocast_to_fp32();
        summed(&input, "cumsum").from_op(&[&input], |_| {
            borrowing(move |g| {
                if single {
                    return grads([Some(g.clone())]);
                }
                let flipped = g.map("flip");
                let sums = summed(&flipped, "cumsum");
                drop(flipped);
                grads([Some(sums.map("flip"))])
            })
        })
    }
}
