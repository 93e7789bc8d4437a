//! BOFT (peft/tuners/boft/layer.py): the input is turned by a matrix as large as it is wide, made anew in each forward.

use super::vector;
use crate::nets::Cx;
use crate::tape::{DType, Tensor};
use headroom_scenario::Lora;

/// `x @ boft_rotation`, with one factor: without its own CUDA extension PEFT takes one.
pub(crate) fn turned(cx: &Cx, x: &Tensor, lora: &Lora) -> Tensor {
    let (inputs, dtype) = (x.size(-1), x.dtype());
    let size = lora.block().max(1);
    let blocks = (inputs / size).max(1);
    let vectors = vector(cx, "boft_R", &[1, blocks, size, size], lora);
    let identity = cx.tape.empty("eye", [inputs, inputs], dtype);
    // `cayley_batch`: the factors that solving saves are as large as what it is given.
    let data = vectors.view(&[blocks, size, size]);
    let skew = data.sub(&data.transpose(1, 2)).pipe(Tensor::mul_scalar);
    let (plus, minus) = (skew.add_scalar(), skew.add_scalar());
    let rotations = plus.mul(&minus);
    drop((skew, plus, minus, data));
    let whole = rotations.scattered_into("block_diag", &[1, inputs, inputs]);
    drop(rotations);
    let diagonal = whole.to(dtype);
    drop(whole);
    // The permutation comes from the host in each forward, or is cast if it moved with the model.
    let shape = [1, inputs, inputs];
    let permutation = if cx.env.libraries.moves_adapters {
        cx.buffer("boft_P", shape, DType::F32).to(dtype)
    } else {
        cx.tape.empty("to", shape, dtype)
    };
    let first = diagonal.bmm(&permutation.transpose(1, 2));
    let both = permutation.bmm(&first);
    drop(first);
    let rotation = both.view(&[inputs, inputs]).matmul_by(&identity);
    let out = x.matmul_by(&rotation);
    drop((identity, diagonal, permutation, both, rotation));
    out
}

/// The result times a scale of each output.
pub(crate) fn scaled(cx: &Cx, y: Tensor, lora: &Lora) -> Tensor {
    let outputs = y.size(-1);
    let dtype = y.dtype();
    let scale = vector(cx, "boft_s", &[outputs, 1], lora);
    let ones = cx.tape.empty("ones", [outputs, 1], dtype);
    let scale = scale.mul(&ones).pipe(|scale| scale.view(&[outputs]));
    let wide = y.pipe(|y| y.mul(&scale));
    drop(scale);
    wide.to(dtype)
}

/// C3A (peft/tuners/c3a): the product with a matrix of circulant blocks, by Fourier transforms of 64-bit complex numbers.
pub(crate) fn circulant(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let circle = lora.block();
    let [across, down] = [inputs, outputs].map(|size| (size / circle.max(1)).max(1));
    let shape = [down, across, circle];
    let kernel = cx
        .param_as("c3a_kernel", shape, DType::F32, |_| true)
        .tensor();
    let dtype = y.dtype();
    let wide = x.to(DType::F32);
    let update = wide.circular_convolution(&kernel);
    drop(wide);
    let update = update.pipe(Tensor::mul_scalar);
    let added = update.to(dtype);
    drop(update);
    y.add_(&added)
}
