//! The approximation of GELU by tanh in Python, with a backward function of its own that computes it once more.

use super::super::{Saved, Tensor, borrowing, grads};

impl Tensor {
    /// `GeLUFunction` of BLOOM.
    pub fn gelu_tanh_saving_input(&self) -> Tensor {
        gelu(self).from_op(&[self], |_| {
            let kept = self.save();
            borrowing(move |g| {
                let x = kept.unpack();
                grads([Some(gradient(&x, g))])
            })
        })
    }

    /// `GeLUFunction` of Megatron-Core: a bias is added first; its gradient goes to both.
    pub fn bias_gelu_saving_input(&self, bias: &Tensor) -> Tensor {
        let out = bias.zip(self, "add").pipe(gelu);
        let meta = bias.meta();
        out.from_op(&[self, bias], |_| {
            let kept = [self, bias].map(Tensor::save);
            borrowing(move |g| {
                let [input, bias] = kept.each_ref().map(Saved::unpack);
                let x = bias.zip(&input, "add");
                let gradient = gradient(&x, g);
                drop((x, input, bias));
                let for_bias = gradient.clone().conform(meta);
                grads([Some(gradient), Some(for_bias)])
            })
        })
    }
}

/// `x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))`.
fn gelu(x: &Tensor) -> Tensor {
    let half = x.map("mul");
    let sum = tanh(x).pipe(|tanh| tanh.map("add"));
    half.zip(&sum, "mul")
}

/// `torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x))`.
fn tanh(x: &Tensor) -> Tensor {
    let outer = x.map("mul");
    let cubic = x.map("mul").pipe(|cubic| cubic.zip(x, "mul"));
    let inner = cubic.pipe(|cubic| cubic.map("add"));
    let product = inner.pipe(|inner| outer.zip(inner, "mul"));
    drop(outer);
    product.pipe(|product| product.map("tanh"))
}

fn gradient(x: &Tensor, g: &Tensor) -> Tensor {
    let tanh = tanh(x);
    let half = x.map("mul");
    let rest = tanh.zip(&tanh, "mul").pipe(|square| square.map("rsub"));
    let slope = x.map("mul").pipe(|scaled| scaled.zip(x, "mul"));
    let slope = slope.pipe(|slope| slope.map("add"));
    let product = rest.zip(&slope, "mul");
    drop((rest, slope));
    let left = half.zip(&product, "mul");
    drop((half, product));
    let right = tanh.map("add").pipe(|sum| sum.map("mul"));
    let factor = left.zip(&right, "add");
    drop((left, right));
    factor.zip(g, "mul")
}
