//! `BlockCircularConvolution` of PEFT (peft/tuners/c3a/utils.py). Complex numbers are of eight bytes; what cuFFT takes is not counted.

use super::super::{DType, Dims, Layout, Saved, Tensor, borrowing, grads};

impl Tensor {
    /// Rows of `n×b` numbers times `m×n` circulant blocks of `b`: input and blocks are saved.
    pub fn circular_convolution(&self, blocks: &Tensor) -> Tensor {
        let tape = self.tape();
        let dims = *self.shape();
        let (m, n, b) = (blocks.size(0), blocks.size(1), blocks.size(2));
        let rows = self.numel() / (n * b).max(1);
        let out = tape.no_grad(|| {
            let complex = |op, size: u64| tape.empty(op, [size], DType::U64);
            let (input, kernel) = (complex("ifft", rows * n * b), complex("fft", m * n * b));
            let product = {
                // `bmm` lays out what does not lie as cuBLAS reads it.
                let laid = (
                    complex("contiguous", rows * n * b),
                    complex("contiguous", m * n * b),
                );
                let product = complex("bmm", rows * m * b);
                tape.cublas_workspace();
                drop(laid);
                product
            };
            drop((input, kernel));
            let out = complex("fft", rows * m * b);
            drop(product);
            let flops = 8.0 * (rows * n * m * b) as f64;
            let moved = 16.0 * (rows * (n + m) * b) as f64;
            tape.launches("fft", DType::F32, [flops, moved], 8);
            out
        });
        // The real part is a view of complex numbers.
        let last = dims.len().saturating_sub(1);
        let out = Tensor::real_part(&out, &dims.with(last, m * b));
        out.from_op(&[self, blocks], |_| {
            let kept = [self.save(), blocks.save()];
            borrowing(move |g| {
                let [input, blocks] = kept.each_ref().map(Saved::unpack);
                let tape = g.tape();
                let complex = |op, size: u64| tape.empty(op, [size], DType::U64);
                let gradient = complex("fft", rows * m * b);
                let contracted = |other: u64, out: u64| {
                    let other_side = complex("ifft", other);
                    let laid = (
                        complex("contiguous", rows * m * b),
                        complex("contiguous", other),
                    );
                    let product = complex("bmm", out);
                    tape.cublas_workspace();
                    drop((laid, other_side));
                    let turned = complex("fft", out);
                    drop(product);
                    turned
                };
                let for_input = contracted(m * n * b, rows * n * b);
                let for_blocks = contracted(rows * n * b, m * n * b);
                let shape = *blocks.shape();
                drop((gradient, input, blocks));
                grads([
                    Some(Tensor::real_part(&for_input, &dims)),
                    Some(Tensor::real_part(&for_blocks, &shape)),
                ])
            })
        })
    }

    /// `.real`: fp32 numbers within the memory of complex ones.
    fn real_part(complex: &Tensor, shape: &[u64]) -> Tensor {
        let mut layout = Layout::contiguous(shape);
        let apart: Vec<u64> = layout.strides.iter().map(|step| 2 * step).collect();
        layout.strides = Dims::new(&apart);
        let reals = complex.as_strided(layout);
        match reals.storage_id() {
            Some(storage) => {
                Tensor::of_storage(reals.core(), reals.shared_layout(), storage, DType::F32)
            }
            None => reals.without_memory(DType::F32),
        }
    }
}
