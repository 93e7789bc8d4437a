//! Activations that transformers computes an operation at a time (transformers/activations.py).

use crate::tape::Tensor;

/// `NewGELUActivation`: `0.5 * x * (1 + tanh(sqrt(2/π) * (x + 0.044715 * x³)))`, an operation at a time.
pub(super) fn gelu_new(x: &Tensor) -> Tensor {
    let half = x.mul_scalar();
    let cube = x.pow().pipe(Tensor::mul_scalar);
    let inner = cube.pipe(|cube| x.add(cube)).pipe(Tensor::mul_scalar);
    inner
        .pipe(Tensor::tanh)
        .pipe(Tensor::add_scalar)
        .pipe(|gate| half.mul(gate))
}
