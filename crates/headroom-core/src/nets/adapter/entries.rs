//! Adapters that learn some entries of a spectrum and make a whole matrix of it in each forward: FourierFT (peft/tuners/fourierft)
//! and WaveFT (peft/tuners/waveft).

use super::{updated, vector};
use crate::nets::Cx;
use crate::tape::{DType, Tensor, borrowing, grads};
use headroom_scenario::Lora;

/// `FourierFTLinear.forward`: as many frequencies as the rank says.
pub(crate) fn frequencies(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let spectrum = vector(cx, "fourierft_spectrum", &[lora.rank], lora);
    let dtype = spectrum.dtype();
    let dense = spectrum
        .to(DType::F32)
        .scattered_into("index_put", &[y.size(-1), x.size(-1)]);
    let delta = inverse_transform(&dense).pipe(|delta| delta.to(dtype));
    drop(dense);
    product(x, y, &delta)
}

/// `WaveFTLinear.forward`: four quarters of the matrix are stacked, and a transposed convolution puts them together.
pub(crate) fn wavelets(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let spectrum = vector(cx, "waveft_spectrum", &[lora.rank], lora);
    let shape = [y.size(-1), x.size(-1)];
    let dense = spectrum.scattered_into("index_put", &shape);
    // A stack is as large as what it is of, and saves as little.
    let stacked = dense.pipe(Tensor::mul_scalar);
    let delta = put_together(&stacked).pipe(Tensor::mul_scalar);
    drop(stacked);
    product(x, y, &delta)
}

/// `conv_transpose2d` of the four quarters with fixed filters: convolutions save their input whatever is trained.
fn put_together(stacked: &Tensor) -> Tensor {
    let tape = stacked.tape();
    let (shape, dtype) = (*stacked.shape(), stacked.dtype());
    let out = tape.no_grad(|| tape.empty("conv_transpose2d", shape, dtype));
    out.from_op(&[stacked], |_| {
        let kept = stacked.save();
        borrowing(move |g| {
            let unpacked = kept.unpack();
            let gradient = g.tape().empty("convolution_backward", shape, dtype);
            drop(unpacked);
            grads([Some(gradient)])
        })
    })
}

/// `F.linear(x, delta_w)`, added.
fn product(x: &Tensor, y: Tensor, delta: &Tensor) -> Tensor {
    let wide = x.to(delta.dtype());
    let update = wide.linear(delta, None);
    drop(wide);
    updated(y, update, x.dtype())
}

/// `torch.fft.ifft2(dense).real * scaling`: complex numbers of eight bytes come and go, and the work area of cuFFT, which PyTorch
/// allocates for the call (`_exec_fft` in native/cuda/SpectralOps.cpp). cuFFT does not publish its size; published runs of
/// FourierFT need as much again as the data.
fn inverse_transform(dense: &Tensor) -> Tensor {
    let tape = dense.tape();
    let shape = *dense.shape();
    let out = tape.no_grad(|| {
        let complex = tape.empty("to", shape, DType::U64);
        let transformed = tape.empty("ifft2", shape, DType::U64);
        drop(tape.empty("cufft", shape, DType::U64));
        drop(complex);
        let real = tape.empty("mul", shape, dense.dtype());
        drop(transformed);
        real
    });
    out.from_op(&[dense], |_| {
        borrowing(move |g| {
            let tape = g.tape();
            let scaled = g.mul_scalar();
            let complex = tape.empty("real_backward", shape, DType::U64);
            drop(scaled);
            let transformed = tape.empty("fft2", shape, DType::U64);
            drop(tape.empty("cufft", shape, DType::U64));
            drop(complex);
            let real = tape.empty("real", shape, g.dtype());
            drop(transformed);
            grads([Some(real)])
        })
    })
}
