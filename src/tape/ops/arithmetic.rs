//! Element-wise operations.

use super::super::{DType, Layout, Saved, Tensor, borrowing, broadcast, consuming, grads};

impl Tensor {
    /// One element-wise kernel over this tensor: a result of the same shape.
    pub(in crate::tape) fn map(&self, op: &'static str) -> Tensor {
        self.map_to(op, self.dtype())
    }

    pub(in crate::tape) fn map_to(&self, op: &'static str, dtype: DType) -> Tensor {
        let out = if self.is_dense() {
            self.another(op, dtype)
        } else {
            self.core().empty(op, self.layout().preserved(), dtype)
        };
        let moved = self.bytes() as f64 + out.bytes() as f64;
        let core = self.core();
        core.kernel(op, dtype, [self.numel() as f64, moved], 1);
        out
    }

    /// One element-wise kernel over two tensors with broadcasting and type promotion.
    pub(in crate::tape) fn zip(&self, other: &Tensor, op: &'static str) -> Tensor {
        self.zip_to(other, op, self.result_type(other))
    }

    pub(in crate::tape) fn zip_to(&self, other: &Tensor, op: &'static str, dtype: DType) -> Tensor {
        let core = self.core();
        let alike = *self.shape() == *other.shape();
        let out = if alike && self.is_row_major() {
            self.another(op, dtype)
        } else {
            let shape = broadcast(self.shape(), other.shape());
            let layout = match () {
                () if *self.shape() == shape && !self.is_contiguous() => self.layout().like(shape),
                () if !alike && *other.shape() == shape => other.layout().like(shape),
                () => Layout::contiguous(shape),
            };
            core.empty(op, layout, dtype)
        };
        let moved = self.bytes() as f64 + other.bytes() as f64 + out.bytes() as f64;
        core.kernel(op, dtype, [out.numel() as f64, moved], 1);
        out
    }

    /// A tensor without dimensions does not widen one with dimensions of the same kind.
    fn result_type(&self, other: &Tensor) -> DType {
        match (self.shape().is_empty(), other.shape().is_empty()) {
            (true, false) if self.dtype().is_floating() == other.dtype().is_floating() => {
                other.dtype()
            }
            (false, true) if self.dtype().is_floating() == other.dtype().is_floating() => {
                self.dtype()
            }
            _ => self.dtype().promote(other.dtype()),
        }
    }

    /// `self += other` on memory nobody else holds; for the engine's sums.
    pub(in crate::tape) fn add_in_place(self, other: &Tensor) -> Tensor {
        self.tape().kernel(
            "add_",
            self.dtype(),
            self.numel() as f64,
            2.0 * self.bytes() as f64 + other.bytes() as f64,
        );
        self
    }

    /// A sum without history.
    pub(in crate::tape) fn plus(&self, other: &Tensor) -> Tensor {
        self.zip(other, "add")
    }

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

    /// `self.index_add_(0, rows, other)`: the same memory. Backward takes the rows from the gradient, and their shape from
    /// what was added, which it keeps (derivatives.yaml: `expand_as(source)`).
    pub fn add_rows_(&self, other: &Tensor, rows: &Tensor) -> Tensor {
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

    /// `self * other`: each is kept for the other's gradient.
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
        self.zip(other, op).made_by(history)
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

    /// Multiplication by, or division by, a Python number.
    pub fn scale(&self) -> Tensor {
        self.linear_map("mul")
    }

    /// `self /= number`: the same memory.
    pub fn scale_(&self) -> Tensor {
        self.detached_edge()
            .from_op(&[self], |_| borrowing(move |g| grads([Some(g.map("div"))])))
    }

    /// Addition of a Python number: the gradient passes through.
    pub fn shift(&self) -> Tensor {
        self.map("add")
            .from_op(&[self], |_| consuming(|g| grads([Some(g)])))
    }

    pub fn neg(&self) -> Tensor {
        self.linear_map("neg")
    }

    /// `self.pow(n)` for a Python number.
    pub fn pow(&self) -> Tensor {
        let input = self.raised();
        input.map("pow").from_op(&[&input], |_| {
            let kept = input.save();
            borrowing(move |g| {
                // grad * (exponent * self.pow(exponent - 1))
                let input = kept.unpack();
                // The parts of a C++ expression live to its end.
                let power = input.map("pow");
                let factor = power.map("mul");
                let product = g.zip(&factor, "mul");
                drop((factor, power, input));
                grads([Some(product)])
            })
        })
    }

    pub fn rsqrt(&self) -> Tensor {
        let input = self.raised();
        // -0.5 * grad * result.pow(3)
        input.from_result("rsqrt", |g, result| {
            let power = result.map("pow");
            let half = g.map("mul");
            half.zip(&power, "mul")
        })
    }

    pub fn sqrt(&self) -> Tensor {
        self.from_result("sqrt", |g, result| {
            let twice = result.map("mul");
            g.zip(&twice, "div")
        })
    }

    pub fn exp(&self) -> Tensor {
        self.raised()
            .from_result("exp", |g, result| g.zip(result, "mul"))
    }

    pub fn tanh(&self) -> Tensor {
        self.from_result("tanh", |g, result| g.zip(result, "tanh_backward"))
    }

    pub fn sigmoid(&self) -> Tensor {
        self.from_result("sigmoid", |g, result| g.zip(result, "sigmoid_backward"))
    }

    pub fn relu(&self) -> Tensor {
        self.from_result("relu", |g, result| g.zip(result, "threshold_backward"))
    }

    pub fn silu(&self) -> Tensor {
        self.from_input("silu", |g, input| g.zip(input, "silu_backward"))
    }

    /// `F.gelu`, either form: one kernel, its input kept.
    pub fn gelu(&self) -> Tensor {
        self.from_input("gelu", |g, input| g.zip(input, "gelu_backward"))
    }

    pub fn erf(&self) -> Tensor {
        // 2 / sqrt(pi) * exp(-self²) * grad
        self.from_input("erf", |g, input| {
            let square = input.map("pow");
            let negative = square.map("neg");
            let bell = negative.map("exp");
            let scaled = bell.map("mul");
            scaled.zip(g, "mul")
        })
    }

    pub fn log(&self) -> Tensor {
        self.raised()
            .from_input("log", |g, input| g.zip(input, "div"))
    }

    pub fn cos(&self) -> Tensor {
        self.from_input("cos", |g, input| {
            let sine = input.map("sin");
            let negative = sine.map("neg");
            g.zip(&negative, "mul")
        })
    }

    pub fn sin(&self) -> Tensor {
        self.from_input("sin", |g, input| {
            let cosine = input.map("cos");
            g.zip(&cosine, "mul")
        })
    }

    /// `F.softplus(self)`; autocast runs it in fp32.
    pub fn softplus(&self) -> Tensor {
        self.raised()
            .from_input("softplus", |g, input| g.zip(input, "softplus_backward"))
    }

    /// `clamp` with Python numbers: the input is kept for its mask.
    pub fn clamp(&self) -> Tensor {
        self.from_input("clamp", |g, input| {
            let mask = input.map_to("clamp_mask", DType::Bool);
            g.zip_to(&mask, "where", g.dtype())
        })
    }

    /// The same with a bound on either side.
    pub fn clamp_between(&self) -> Tensor {
        self.from_input("clamp", |g, input| {
            let masks = [0; 2].map(|_| input.map_to("clamp_mask", DType::Bool));
            let [mask, _] = &masks;
            g.zip_to(mask, "where", g.dtype())
        })
    }

    /// A comparison: a Boolean result, no gradient.
    pub fn compare(&self, other: &Tensor, op: &'static str) -> Tensor {
        self.zip_to(other, op, DType::Bool)
    }

    /// `self.masked_fill(mask, value)`: the mask is kept.
    pub fn masked_fill(&self, mask: &Tensor) -> Tensor {
        let meta = self.meta();
        self.zip_to(mask, "masked_fill", self.dtype())
            .from_op(&[self], |_| {
                let mask = mask.save();
                borrowing(move |g| {
                    grads([Some(
                        g.zip_to(&mask.unpack(), "masked_fill", g.dtype())
                            .conform(meta),
                    )])
                })
            })
    }

    /// `torch.where(mask, self, number)`: the mask is kept; the number becomes a tensor each time.
    pub fn where_mask(&self, mask: &Tensor) -> Tensor {
        let choose = |it: &Tensor, mask: &Tensor| {
            let number = it.constant("scalar_tensor", &[0; 0], it.dtype());
            let out = it.zip_to(mask, "where", it.dtype());
            drop(number);
            out
        };
        let meta = self.meta();
        choose(self, mask).from_op(&[self], |_| {
            let kept = mask.save();
            borrowing(move |g| {
                let mask = kept.unpack();
                let chosen = choose(g, &mask);
                drop(mask);
                grads([Some(chosen.conform(meta))])
            })
        })
    }

    /// `self.to(dtype)`; the same tensor where nothing changes.
    pub fn to(&self, dtype: DType) -> Tensor {
        if self.dtype() == dtype {
            return self.clone();
        }
        let from = self.dtype();
        self.map_to("to", dtype)
            .from_op(&[self], |_| borrowing(move |g| grads([Some(g.to(from))])))
    }

    /// A copy in another layout, without history.
    pub(in crate::tape) fn copied(&self, op: &'static str, layout: Layout) -> Tensor {
        let out = self.tape().empty_as(
            op,
            Layout {
                shape: *self.shape(),
                ..layout
            },
            self.dtype(),
        );
        self.tape()
            .kernel(op, self.dtype(), 0.0, 2.0 * self.bytes() as f64);
        out
    }

    /// The same memory as a value of its own, for operations that write into their input.
    pub(in crate::tape) fn detached_edge(&self) -> Tensor {
        self.with_edge(None)
    }

    /// An element-wise operation whose gradient is one kernel over the incoming one: nothing is kept.
    fn linear_map(&self, op: &'static str) -> Tensor {
        self.map(op)
            .from_op(&[self], |_| borrowing(move |g| grads([Some(g.map(op))])))
    }

    /// An element-wise operation that keeps its input.
    pub(in crate::tape) fn from_input(
        &self,
        op: &'static str,
        backward: fn(&Tensor, &Tensor) -> Tensor,
    ) -> Tensor {
        // Inputs are kept before the kernel runs: a segment that is run again ends there.
        let history = Tensor::history(&[self], |_| {
            let kept = self.save();
            borrowing(move |g| grads([Some(backward(g, &kept.unpack()))]))
        });
        self.map(op).made_by(history)
    }

    /// An element-wise operation that keeps its result.
    pub(in crate::tape) fn from_result(
        &self,
        op: &'static str,
        backward: fn(&Tensor, &Tensor) -> Tensor,
    ) -> Tensor {
        let out = self.map(op);
        let result = out.clone();
        out.from_op(&[self], move |_| {
            let kept = result.save();
            borrowing(move |g| grads([Some(backward(g, &kept.unpack()))]))
        })
    }
}
