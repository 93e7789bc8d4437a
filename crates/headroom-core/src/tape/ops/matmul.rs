//! Matrix products.

use smallvec::SmallVec;

use super::super::core::SelectableOp;
use super::super::{Dims, Layout, Saved, Tensor, borrowing, broadcast, grads};

impl Tensor {
    /// `F.linear(self, weight, bias)`: one `addmm` or `mm` over all leading dimensions.
    ///
    /// Saves the input where the weight needs a gradient and the weight where the input does (derivatives.yaml: `addmm`, `mm`).
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        // Arguments are cast from the last to the first: C++ evaluates them so on the compilers PyTorch is built with.
        let bias = bias.map(Tensor::autocast);
        let weight = weight.autocast();
        let out = weight.size(0);
        let input = self.autocast();
        // Rows that are not adjacent are multiplied first; the bias is added in place (`linear` in Linear.cpp).
        let scattered = input.shape().len() > 2 && !input.is_contiguous();
        // Without a bias in the product the transposed weight's node is older than that of the flattened input: it runs after it.
        let weight = if (bias.is_none() || scattered) && weight.requires_grad() {
            weight.with_own_node()
        } else {
            weight
        };
        match bias {
            Some(bias) if !scattered => affine(&input, &weight, Some(&bias), out),
            bias => {
                let product = input
                    .unfolded(&weight, true)
                    .unwrap_or_else(|| affine(&input, &weight, None, out));
                match bias {
                    Some(bias) => product.pipe(|product| product.add_(&bias)),
                    None => product,
                }
            }
        }
    }

    /// `torch.matmul(self, weight)` with a weight of `[in, out]`.
    pub fn matmul_by(&self, weight: &Tensor) -> Tensor {
        let weight = weight.autocast();
        let input = self.autocast();
        input
            .unfolded(&weight, false)
            .unwrap_or_else(|| affine(&input, &weight, None, weight.size(1)))
    }

    /// Rows that are not adjacent are not joined where that spares a copy and no gradient of the weight
    /// would be made for each of them (`should_fold` in LinearAlgebra.cpp): the product with the weight, or its transpose.
    fn unfolded(&self, weight: &Tensor, transposed: bool) -> Option<Tensor> {
        let flat = [self.numel() / self.size(-1).max(1), self.size(-1)];
        let apart = self.shape().len() > 2
            && !weight.requires_grad()
            && self.layout().viewed(Dims::from(flat)).is_none();
        if !apart {
            return None;
        }
        Some(if transposed {
            self.matmul(&weight.transpose(0, 1))
        } else {
            self.matmul(weight)
        })
    }

    /// `torch.addmm(bias, self, weight)` with a weight of `[in, out]`: the `Conv1D` of GPT-2.
    pub fn addmm(&self, weight: &Tensor, bias: &Tensor) -> Tensor {
        let weight = weight.autocast();
        let input = self.autocast();
        let out = weight.size(1);
        affine(&input, &weight, Some(&bias.autocast()), out)
    }

    /// All leading dimensions as one: a view, or a copy where the layout allows none.
    pub(super) fn flattened(&self) -> Tensor {
        if self.shape().len() == 2 {
            return self.clone();
        }
        let last = self.size(-1);
        self.reshape(&[self.numel() / last.max(1), last])
    }

    /// The memory and work of an `n×k` by `k×m` product, without history.
    pub(super) fn product_of(
        &self,
        op: &'static str,
        n: u64,
        k: u64,
        m: u64,
        with_bias: bool,
    ) -> Tensor {
        let tape = self.tape();
        let out = tape.empty(op, [n, m], self.dtype());
        if with_bias {
            tape.cublaslt_workspace();
        } else {
            tape.cublas_workspace();
        }
        let (nf, kf, mf) = (n as f64, k as f64, m as f64);
        tape.kernel(
            op,
            self.dtype(),
            2.0 * nf * kf * mf,
            (nf * kf + kf * mf + nf * mf) * self.dtype().bytes() as f64,
        );
        out
    }

    /// `torch.matmul(self, vector)` with a vector that has no gradient: one `mv` over all leading dimensions, whose gradient is an
    /// outer product.
    pub fn times_vector(&self, vector: &Tensor) -> Tensor {
        let (input, vector) = (self.autocast(), vector.autocast());
        let tape = input.tape();
        let flat = input.flattened();
        let out = tape.empty("mv", [flat.size(0)], input.dtype());
        tape.cublas_workspace();
        let moved = input.bytes().saturating_add(out.bytes()) as f64;
        tape.kernel("mv", input.dtype(), 2.0 * input.numel() as f64, moved);
        let lead = Dims::new(&input.shape()[..input.shape().len().saturating_sub(1)]);
        out.from_op(&[&flat], |_| {
            let kept = vector.save();
            borrowing(move |g| {
                let vector = kept.unpack();
                grads([Some(g.unsqueeze(1).zip(&vector, "mul"))])
            })
        })
        .view(&lead)
    }

    /// `torch.matmul` of tensors with three dimensions or more: a batched product of their last two.
    pub fn matmul(&self, other: &Tensor) -> Tensor {
        let other = other.autocast();
        let this = self.autocast();
        let lead = |t: &Tensor| Dims::new(&t.shape()[..t.shape().len().saturating_sub(2)]);
        let batch = broadcast(&lead(&this), &lead(&other));
        let (n, k, m) = (this.size(-2), this.size(-1), other.size(-1));
        let count = batch.product();
        // Operands are expanded to the batch and folded into one batch dimension, which copies what cannot be viewed.
        let fold = |t: &Tensor, rows: u64, columns: u64| {
            let full = [&batch[..], &[rows, columns]].concat();
            t.expand(&full).reshape(&[count, rows, columns])
        };
        let left = fold(&this, n, k);
        let right = fold(&other, k, m);
        let out = left.bmm(&right);
        out.view(&[&batch[..], &[n, m]].concat())
    }

    /// `torch.bmm`.
    pub fn bmm(&self, other: &Tensor) -> Tensor {
        let other = other.autocast();
        let this = self.autocast();
        let (b, n, k, m) = (this.size(0), this.size(1), this.size(2), other.size(2));
        Tensor::materialize(&[&this, &other]);
        this.batched_product(b, n, k, m)
            .from_op(&[&this, &other], |needs| {
                let kept_other = needs.input(0).then(|| other.save());
                let kept_this = needs.input(1).then(|| this.save());
                borrowing(move |g| {
                    let (this, other) =
                        (unpacked(kept_this.as_ref()), unpacked(kept_other.as_ref()));
                    let for_other = this.as_ref().map(|_| g.batched_product(b, k, n, m));
                    let for_this = other.as_ref().map(|_| g.batched_product(b, n, m, k));
                    grads([for_this, for_other])
                })
            })
    }

    /// `bias.baddbmm(self, other, alpha=..)` with a bias that has no gradient: it is copied into the result before the
    /// product, and the gradients are multiplied by the factor.
    pub fn baddbmm(&self, other: &Tensor, bias: &Tensor) -> Tensor {
        let other = other.autocast();
        let this = self.autocast();
        let _bias = bias.autocast();
        let (b, n, k, m) = (this.size(0), this.size(1), this.size(2), other.size(2));
        Tensor::materialize(&[&this, &other]);
        this.batched_product(b, n, k, m)
            .from_op(&[&this, &other], |needs| {
                let kept_other = needs.input(0).then(|| other.save());
                let kept_this = needs.input(1).then(|| this.save());
                borrowing(move |g| {
                    let (this, other) =
                        (unpacked(kept_this.as_ref()), unpacked(kept_other.as_ref()));
                    let scaled = |product: Tensor| product.pipe(|product| product.map("mul"));
                    let for_this = other
                        .as_ref()
                        .map(|_| scaled(g.batched_product(b, n, m, k)));
                    let for_other = this.as_ref().map(|_| scaled(g.batched_product(b, k, n, m)));
                    grads([for_this, for_other])
                })
            })
    }

    fn batched_product(&self, b: u64, n: u64, k: u64, m: u64) -> Tensor {
        let tape = self.tape();
        let out = tape.empty_as("bmm", Layout::contiguous([b, n, m]), self.dtype());
        tape.cublas_workspace();
        let (bf, nf, kf, mf) = (b as f64, n as f64, k as f64, m as f64);
        tape.kernel(
            "bmm",
            self.dtype(),
            2.0 * bf * nf * kf * mf,
            bf * (nf * kf + kf * mf + nf * mf) * self.dtype().bytes() as f64,
        );
        out
    }
}

/// One product over all leading dimensions, with a bias or without.
fn affine(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>, out: u64) -> Tensor {
    let weight_shape = (weight.size(0), weight.size(1));
    // `F.linear` transposes its weight, so the gradient comes back as a view of the product.
    let transposed = weight_shape.0 == out && weight_shape.1 == input.size(-1);
    let rows = input.flattened();
    let (n, k, m) = (rows.size(0), rows.size(1), out);
    let bias_meta = bias.map(Tensor::meta);
    let mut inputs: SmallVec<[&Tensor; 3]> = SmallVec::from_slice(&[&rows, weight]);
    inputs.extend(bias);
    Tensor::materialize(&inputs);
    let history = Tensor::history(&inputs, |needs| {
        let kept_weight = needs.input(0).then(|| weight.save());
        let kept_rows = needs.input(1).then(|| rows.save());
        let needs_bias = needs.input(2);
        let in_parts = kept_weight.is_some() && kept_rows.is_some();
        if in_parts {
            rows.core().reached_from_weight(2);
        }
        borrowing(move |g| {
            if in_parts && g.tape().defers_weight_gradients() {
                let weight = unpacked(kept_weight.as_ref());
                let for_rows = weight
                    .as_ref()
                    .map(|_| g.product_of("linear", n, m, k, false));
                let held = g.clone();
                g.tape().defer_weight_gradients(move || {
                    let rows = unpacked(kept_rows.as_ref());
                    let product =
                        held.product_of("linear", weight_shape.0, n, weight_shape.1, false);
                    let for_weight = if transposed {
                        product.detach()
                    } else {
                        product
                    };
                    drop(rows);
                    let for_bias = bias_meta
                        .filter(|_| needs_bias)
                        .map(|meta| held.clone().conform(meta));
                    grads([None, Some(for_weight), for_bias])
                });
                return grads([for_rows, None, None]);
            }
            let (rows, weight) = (unpacked(kept_rows.as_ref()), unpacked(kept_weight.as_ref()));
            let for_rows = || {
                weight
                    .as_ref()
                    .map(|_| g.product_of("linear", n, m, k, false))
            };
            let for_weight = || {
                rows.as_ref().map(|_| {
                    let product = g.product_of("linear", weight_shape.0, n, weight_shape.1, false);
                    if transposed {
                        product.detach()
                    } else {
                        product
                    }
                })
            };
            // `addmm` names its factors mat1 and mat2, `mm` self and mat2: that is the order.
            let (for_rows, for_weight) = if bias_meta.is_some() {
                let first = for_rows();
                (first, for_weight())
            } else {
                let first = for_weight();
                (for_rows(), first)
            };
            // What came back from a checkpoint goes before the engine sums the bias gradient.
            drop((rows, weight));
            let for_bias = bias_meta
                .filter(|_| needs_bias)
                .map(|meta| g.clone().conform(meta));
            grads([for_rows, for_weight, for_bias])
        })
    });
    let product = || rows.product_of("linear", n, k, m, bias.is_some() && k > 1 && m > 1);
    let product = if bias.is_some() {
        product()
    } else {
        let [product] = rows.core().selective(SelectableOp::Product, || [product()]);
        product
    };
    let out = product.with_history(history);
    let shape = *input.shape();
    out.view(&shape.with(shape.len().saturating_sub(1), m))
}

/// Backward unpacks everything it saved before it begins: under checkpointing this starts the recomputation.
fn unpacked(kept: Option<&Saved>) -> Option<Tensor> {
    kept.map(Saved::unpack)
}
