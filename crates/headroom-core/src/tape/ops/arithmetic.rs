//! Sums, products and quotients of tensors.

use super::super::{DType, Saved, Tensor, borrowing, consuming, grads};

impl Tensor {
    /// `self + other`.
    pub fn add(&self, other: &Tensor) -> Tensor {
        let (a, b) = (self.meta(), other.meta());
        self.zip(other, "add").from_op(&[self, other], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            consuming(move |g| {
                // Both inputs get the same tensor; only shapes and types that differ make new ones.
                let [for_self, for_other] = [needs[0].then(|| g.clone()), needs[1].then_some(g)];
                grads([
                    for_self.map(|g| g.conform(a)),
                    for_other.map(|g| g.conform(b)),
                ])
            })
        })
    }

    /// `self += other`: the same memory, a new history.
    pub fn add_(&self, other: &Tensor) -> Tensor {
        if self.tape().compiles() {
            // A traced graph has no operations in place.
            return self.add(other);
        }
        let b = other.meta();
        self.tape().kernel(
            "add_",
            self.dtype(),
            self.numel() as f64,
            2.0 * self.bytes() as f64 + other.bytes() as f64,
        );
        self.detached_edge().from_op(&[self, other], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            consuming(move |g| {
                let for_self = needs[0].then(|| g.clone());
                grads([for_self, needs[1].then_some(g).map(|g| g.conform(b))])
            })
        })
    }

    /// `self -= other`: the same memory, a new history.
    pub fn sub_(&self, other: &Tensor) -> Tensor {
        if self.tape().compiles() {
            return self.sub(other);
        }
        let b = other.meta();
        let bytes = 2.0 * self.bytes() as f64 + other.bytes() as f64;
        self.tape()
            .kernel("sub_", self.dtype(), self.numel() as f64, bytes);
        self.detached_edge().from_op(&[self, other], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            borrowing(move |g| {
                let for_other = needs[1].then(|| g.map("neg"));
                grads([needs[0].then(|| g.clone()), for_other.map(|g| g.conform(b))])
            })
        })
    }

    /// `self - other`.
    pub fn sub(&self, other: &Tensor) -> Tensor {
        let (a, b) = (self.meta(), other.meta());
        self.zip(other, "sub").from_op(&[self, other], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            borrowing(move |g| {
                let for_other = needs[1].then(|| g.map("neg"));
                grads([
                    needs[0].then(|| g.clone().conform(a)),
                    for_other.map(|g| g.conform(b)),
                ])
            })
        })
    }

    /// `self * other`: each is saved for the other's gradient.
    pub fn mul(&self, other: &Tensor) -> Tensor {
        self.product(other, "mul")
    }

    fn product(&self, other: &Tensor, op: &'static str) -> Tensor {
        let (a, b) = (self.meta(), other.meta());
        let history = Tensor::history(&[self, other], |needs| {
            let kept_other = needs.input(0).then(|| other.save());
            let kept_self = needs.input(1).then(|| self.save());
            borrowing(move |g| {
                let factors =
                    [&kept_self, &kept_other].map(|kept| kept.as_ref().map(Saved::unpack));
                let [for_other, for_self] =
                    [0, 1].map(|i: usize| factors[i].as_ref().map(|factor| g.zip(factor, "mul")));
                drop(factors);
                grads([
                    for_self.map(|g| g.conform(a)),
                    for_other.map(|g| g.conform(b)),
                ])
            })
        });
        self.zip(other, op).with_history(history)
    }

    /// `self / other` between tensors.
    pub fn div(&self, other: &Tensor) -> Tensor {
        let (a, b) = (self.meta(), other.meta());
        self.zip(other, "div").from_op(&[self, other], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            let kept_self = needs[1].then(|| self.save());
            let kept_other = other.save();
            borrowing(move |g| {
                let other = kept_other.unpack();
                let this = kept_self.as_ref().map(Saved::unpack);
                // -grad * ((self / other) / other)
                let for_other = this.as_ref().map(|this| {
                    let once = this.zip(&other, "div");
                    let quotient = once.zip(&other, "div");
                    let negative = g.map("neg");
                    negative.zip(&quotient, "mul")
                });
                let for_self = needs[0].then(|| g.zip(&other, "div"));
                drop((this, other));
                grads([
                    for_self.map(|g| g.conform(a)),
                    for_other.map(|g| g.conform(b)),
                ])
            })
        })
    }

    /// `torch.minimum(self, other)` or `maximum`: both are saved for the mask of where each counts.
    pub fn extreme(&self, other: &Tensor) -> Tensor {
        let (a, b) = (self.meta(), other.meta());
        self.zip(other, "maximum").from_op(&[self, other], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            let kept = [self.save(), other.save()];
            borrowing(move |g| {
                let [this, other] = kept.each_ref().map(Saved::unpack);
                // grad.masked_fill(self >= other, 0), of equal ones half.
                let part = |needed: bool| {
                    needed.then(|| {
                        let half = g.map("div");
                        let mask = this.zip_to(&other, "ge", DType::Bool);
                        let out = g.zip_to(&mask, "masked_fill", g.dtype());
                        drop((half, mask));
                        out
                    })
                };
                let [for_self, for_other] = needs.map(part);
                grads([
                    for_self.map(|g| g.conform(a)),
                    for_other.map(|g| g.conform(b)),
                ])
            })
        })
    }

    /// Multiplication by, or division by, a Python number.
    pub fn mul_scalar(&self) -> Tensor {
        self.linear_map("mul")
    }

    /// `self *= factor` by a tensor without a gradient, which is saved: the same memory, a new history.
    pub fn mul_buffer_(&self, factor: &Tensor) -> Tensor {
        if self.tape().compiles() {
            return self.mul(factor);
        }
        let bytes = 2.0 * self.bytes() as f64;
        self.tape()
            .kernel("mul_", self.dtype(), self.numel() as f64, bytes);
        self.detached_edge().from_op(&[self], |_| {
            let kept = factor.save();
            borrowing(move |g| grads([Some(g.zip(&kept.unpack(), "mul"))]))
        })
    }

    /// `self /= number`: the same memory.
    pub fn div_scalar_(&self) -> Tensor {
        self.detached_edge()
            .from_op(&[self], |_| borrowing(move |g| grads([Some(g.map("div"))])))
    }

    /// Addition of a Python number: the gradient passes through.
    pub fn add_scalar(&self) -> Tensor {
        self.map("add")
            .from_op(&[self], |_| consuming(|g| grads([Some(g)])))
    }

    /// `-self`: saves nothing.
    pub fn neg(&self) -> Tensor {
        self.linear_map("neg")
    }
}
