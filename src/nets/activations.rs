//! Activations that transformers computes an operation at a time (transformers/activations.py).

use crate::tape::Tensor;

/// `NewGELUActivation`: `0.5 * x * (1 + tanh(sqrt(2/π) * (x + 0.044715 * x³)))`, an operation at a time.
pub(super) fn gelu_new(x: &Tensor) -> Tensor {
    let half = x.scale();
    let cube = x.pow().then(Tensor::scale);
    let inner = cube.then(|cube| x.add(cube)).then(Tensor::scale);
    inner
        .then(Tensor::tanh)
        .then(Tensor::shift)
        .then(|gate| half.mul(gate))
}
