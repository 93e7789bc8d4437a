//! Stochastic depth as transformers' models have it (`…DropPath`).

use crate::tape::Tensor;

/// `hidden.div(keep) * floor(rand + keep)`: one random number for each sample.
pub(crate) fn drop_path(x: &Tensor, on: bool) -> Tensor {
    if !on || x.tape().evaluating() {
        return x.clone();
    }
    let shape = (1..x.shape().len()).fold(*x.shape(), |all, i| all.with(i, 1));
    let noise = x.constant("rand", &shape, x.dtype());
    let sum = x.constant("add", &shape, x.dtype());
    let kept = x.constant("floor", &shape, x.dtype());
    drop((noise, sum));
    let scaled = x.mul_scalar();
    scaled.mul(&kept)
}
