//! Linear layers over weights that other libraries have packed into a few bits, which stay as they are while adapters train.

use super::super::{DType, Saved, Tensor, borrowing, grads};

impl Tensor {
    /// `TorchLinear` of GPT-QModel, which its layers train as: the weight is dequantized by a compiled function and multiplied
    /// as any other, so that autograd keeps all of it for the input's gradient.
    pub fn linear_gptq(&self, out: u64, stored: DType) -> Tensor {
        let dims = *self.shape();
        let width = self.size(-1);
        let tape = self.tape();
        let rows = self.flattened();
        let weight = tape.no_grad(|| {
            let whole = self.dequantized([width, out], stored);
            whole.pipe(|whole| whole.to(self.dtype()))
        });
        let product = rows.matmul_by(&weight);
        drop((rows, weight));
        product.view(&dims.with(dims.len().saturating_sub(1), out))
    }

    /// `AwqGemmFn` of GPT-QModel: the input is saved, though backward never reads it, and backward makes a copy of the weight
    /// for each row of the batch.
    pub fn linear_awq(&self, packed: &Tensor, out: u64) -> Tensor {
        /// Fewer tokens are multiplied by the packed weight.
        const MANY: u64 = 1024;
        /// `split_k_iters`: parts of the sum that are added up afterwards.
        const PARTS: u64 = 8;
        let input = self.contiguous();
        let dims = *input.shape();
        let width = input.size(-1);
        let rows = input.numel() / width.max(1);
        let tape = input.tape();
        let stored = input.dtype();
        let product = tape.no_grad(|| {
            if rows > MANY {
                let whole = input.dequantized([width, out], stored);
                let product = input.product_of("linear_4bit", rows, width, out, false);
                drop(whole);
                product
            } else {
                let parts = tape.empty("awq_gemm", [PARTS, rows, out], stored);
                let product = tape.empty("awq_gemm", [rows, out], stored);
                drop(parts);
                product
            }
            .view(&dims.with(dims.len().saturating_sub(1), out))
        });
        product.from_op(&[&input], |_| {
            let kept = [input.save(), packed.save()];
            let batch = dims.first().copied().unwrap_or(1);
            borrowing(move |g| {
                let kept = kept.each_ref().map(Saved::unpack);
                let whole = g.dequantized([width, out], stored);
                let copies = g.tape().empty("repeat", [batch, out, width], stored);
                let for_input = g.product_of("bmm", rows, out, width, false);
                drop((copies, whole, kept));
                grads([Some(for_input.view(&dims))])
            })
        })
    }

    /// `_QuantizedMatmul` of AQLM with its CUDA kernels: the weight is made of its codebooks in either direction, and the input
    /// is saved, though backward never reads it.
    pub fn linear_aqlm(&self, packed: &Tensor, out: u64) -> Tensor {
        let input = self.clone();
        let dims = *input.shape();
        let width = input.size(-1);
        let rows = input.numel() / width.max(1);
        let stored = input.dtype();
        let product = input.tape().no_grad(|| {
            let whole = input.dequantized([out, width], stored);
            let flat = input.detach().flattened();
            let product = flat.product_of("linear_4bit", rows, width, out, false);
            let scaled = product.pipe(|product| product.map("mul"));
            drop((flat, whole));
            scaled.view(&dims.with(dims.len().saturating_sub(1), out))
        });
        product.from_op(&[&input], |_| {
            let kept = [input.save(), packed.save()];
            borrowing(move |g| {
                let kept = kept.each_ref().map(Saved::unpack);
                let scaled = g.map("mul");
                let whole = g.dequantized([out, width], stored);
                let for_input = scaled.product_of("linear_4bit", rows, out, width, false);
                drop((whole, scaled, kept));
                grads([Some(for_input.view(&dims))])
            })
        })
    }

    /// A weight dequantized in one kernel.
    fn dequantized(&self, shape: [u64; 2], stored: DType) -> Tensor {
        let tape = self.tape();
        let whole = tape.empty("dequantize", shape, stored);
        let moved = 0.5 * whole.numel() as f64 + whole.bytes() as f64;
        tape.kernel("dequantize", stored, 0.0, moved);
        whole
    }
}
