//! Activation functions, those that write into their input, and noise.

use super::super::{Layout, Saved, Tensor, borrowing, grads};

impl Tensor {
    /// `torch.tanh(self)`: saves its result.
    pub fn tanh(&self) -> Tensor {
        self.from_result("tanh", |g, result| g.zip(result, "tanh_backward"))
    }

    /// `torch.sigmoid(self)`: saves its result.
    pub fn sigmoid(&self) -> Tensor {
        self.from_result("sigmoid", |g, result| g.zip(result, "sigmoid_backward"))
    }

    /// `torch.relu(self)`: saves its result.
    pub fn relu(&self) -> Tensor {
        self.from_result("relu", |g, result| g.zip(result, "threshold_backward"))
    }

    /// `F.silu(self)`: saves its input.
    pub fn silu(&self) -> Tensor {
        self.from_input("silu", |g, input| g.zip(input, "silu_backward"))
    }

    /// `F.gelu`, either form: one kernel, its input saved.
    pub fn gelu(&self) -> Tensor {
        self.from_input("gelu", |g, input| g.zip(input, "gelu_backward"))
    }

    /// `F.softplus(self)`; autocast runs it in fp32.
    pub fn softplus(&self) -> Tensor {
        self.autocast_to_fp32()
            .from_input("softplus", |g, input| g.zip(input, "softplus_backward"))
    }

    /// `F.relu_(self)`: the same memory; saves its result.
    pub fn relu_(&self) -> Tensor {
        let out = self.in_place("relu_");
        let result = out.clone();
        out.from_op(&[self], move |_| {
            let kept = result.save();
            borrowing(move |g| {
                let result = kept.unpack();
                // The kernel's operands are the result and the gradient, in this order: it decides the layout.
                let out = result.zip(g, "threshold_backward");
                drop(result);
                grads([Some(out)])
            })
        })
    }

    /// `F.relu6(self)`: saves its input (`hardtanh`).
    pub fn relu6(&self) -> Tensor {
        self.from_input("hardtanh", |g, input| g.zip(input, "hardtanh_backward"))
    }

    /// `F.relu6_(self)`: `hardtanh_`, whose formula takes the input, so autograd clones it first; before torch 1.11 the result.
    pub fn relu6_(&self) -> Tensor {
        if self.tape().machine().torch.hardtanh_keeps_result {
            return self.relu_();
        }
        self.overwritten("hardtanh_", |g, input| g.zip(input, "hardtanh_backward"))
    }

    /// `F.hardswish(self)`: saves its input.
    pub fn hardswish(&self) -> Tensor {
        self.from_input("hardswish", |g, input| g.zip(input, "hardswish_backward"))
    }

    /// `F.hardswish_(self)`: overwrites what backward needs, so autograd clones it first.
    pub fn hardswish_(&self) -> Tensor {
        self.overwritten("hardswish_", |g, input| g.zip(input, "hardswish_backward"))
    }

    /// `F.silu_(self)`: the same.
    pub fn silu_(&self) -> Tensor {
        self.overwritten("silu_", |g, input| g.zip(input, "silu_backward"))
    }

    /// `F.hardsigmoid(self)`: saves its input.
    pub fn hardsigmoid(&self) -> Tensor {
        self.from_input("hardsigmoid", |g, input| {
            g.zip(input, "hardsigmoid_backward")
        })
    }

    /// `F.leaky_relu(self, slope)`: saves its input.
    pub fn leaky_relu(&self) -> Tensor {
        self.from_input("leaky_relu", |g, input| input.zip(g, "leaky_relu_backward"))
    }

    /// `F.prelu(self, slope)` with a slope for each channel: saves both; backward makes the slope's gradient as large as the input's before
    /// it is summed (`_prelu_kernel_backward` in derivatives.yaml).
    pub fn prelu(&self, slope: &Tensor) -> Tensor {
        let channels = *slope.shape();
        let history = Tensor::history(&[self, slope], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            let kept = [self.save(), slope.save()];
            borrowing(move |g| {
                let [input, _slope] = kept.each_ref().map(Saved::unpack);
                let [for_input, wide] = [(), ()].map(|()| g.zip(&input, "prelu_backward"));
                drop(input);
                let kept = (0..g.shape().len()).fold(*g.shape(), |all, i| {
                    if i == 1 { all } else { all.with(i, 1) }
                });
                let for_slope = needs[1].then(|| {
                    let sum = wide.sum_to(kept);
                    sum.alias(Layout::contiguous(channels))
                });
                drop(wide);
                grads([needs[0].then_some(for_input), for_slope])
            })
        });
        self.map("prelu").with_history(history)
    }

    /// `F.dropout_(self, p)`: multiplies by noise of the input's own type, which it saves.
    pub fn dropout_(&self, p: f64) -> Tensor {
        if p <= 0.0 || self.tape().evaluating() {
            return self.clone();
        }
        let noise = self.map("bernoulli");
        self.in_place("mul_").from_op(&[self], |_| {
            let kept = noise.save();
            borrowing(move |g| grads([Some(g.zip(&kept.unpack(), "mul"))]))
        })
    }

    /// Stochastic depth (`torchvision.ops.stochastic_depth`, `timm.layers.drop_path`): one number a sample.
    pub fn drop_path(&self, p: f64) -> Tensor {
        if p <= 0.0 || self.tape().evaluating() {
            return self.clone();
        }
        let shape = (1..self.shape().len()).fold(*self.shape(), |all, i| all.with(i, 1));
        let noise = self.tape().empty("bernoulli", shape, self.dtype());
        self.mul(&noise)
    }

    /// The same memory as a new value.
    fn in_place(&self, op: &'static str) -> Tensor {
        if self.tape().compiles() {
            // A traced graph has no operations in place.
            return self.map(op);
        }
        let bytes = 2.0 * self.bytes() as f64;
        self.tape()
            .kernel(op, self.dtype(), self.numel() as f64, bytes);
        self.detached_edge()
    }

    /// An in-place operation whose gradient needs the value it overwrites.
    fn overwritten(&self, op: &'static str, backward: fn(&Tensor, &Tensor) -> Tensor) -> Tensor {
        let before = self
            .requires_grad()
            .then(|| self.tape().no_grad(|| self.cloned()));
        self.in_place(op).from_op(&[self], |_| {
            let kept = before.as_ref().map(Tensor::save);
            borrowing(move |g| {
                let kept = kept.as_ref().map(Saved::unpack);
                grads([kept.map(|before| backward(g, &before))])
            })
        })
    }
}
