//! Products with weights stored in four bits (bitsandbytes/autograd/_functions.py, `MatMul4Bit`).

use super::super::{DType, Saved, Tensor, borrowing, grads};

impl Tensor {
    /// The weights are dequantized to this tensor's type for the product and freed; backward makes them again.
    /// `scales` is the number of quantised scales, where scales are quantised. `stored` is the type that was quantised,
    /// in which weights come back before they are cast. `keeps_input`: the input is saved too, though backward never reads it.
    pub fn linear_4bit(
        &self,
        packed: &Tensor,
        out: u64,
        scales: Option<u64>,
        stored: DType,
        keeps_input: bool,
    ) -> Tensor {
        let input = self.clone();
        let width = input.size(-1);
        let rows = input.numel() / width.max(1);
        let mut shape = input.shape().to_vec();
        if let Some(last) = shape.last_mut() {
            *last = out;
        }
        let weight = dequantised(&input, [out, width], scales, stored);
        let product = input.tape().no_grad(|| {
            input
                .flattened()
                .pipe(|rows2| rows2.product_of("linear_4bit", rows, width, out, false))
                .view(&shape)
        });
        drop(weight);
        let from = *input.shape();
        product.from_op(&[&input], |_| {
            if keeps_input {
                input.tape().keep_with_graph(&input.detach());
            }
            let kept = packed.save();
            borrowing(move |g| {
                let packed = kept.unpack();
                let weight = dequantised(g, [out, width], scales, stored);
                let for_input = g.product_of("linear_4bit", rows, out, width, false);
                drop((packed, weight));
                grads([Some(for_input.view(&from))])
            })
        })
    }
}

impl Tensor {
    /// `MatMul8bitLt` of bitsandbytes with weights of eight bits and a scale for each output: the input is quantised by rows in
    /// fp16, the product is in 32-bit integers. The input stays on the graph's node as an attribute, which no checkpoint drops.
    pub fn linear_8bit(&self, codes: &Tensor, scales: &Tensor, out: u64) -> Tensor {
        let input = self.clone();
        let tape = input.tape();
        let width = input.size(-1);
        let rows = input.numel() / width.max(1);
        let dims = *input.shape();
        let shape = dims.with(dims.len().saturating_sub(1), out);
        let product = tape.no_grad(|| {
            let half = input.detach().to(DType::F16);
            let row_scales = tape.empty("int8_vectorwise_quant", [rows], DType::F32);
            let quantised = tape.empty("int8_vectorwise_quant", [rows, width], DType::U8);
            {
                let size = half.empty_like("abs", DType::F16);
                let outliers = half.empty_like("ge", DType::Bool);
                drop(size);
                drop(outliers);
            }
            drop(half);
            let sums = tape.empty("int8_linear_matmul", [rows, out], DType::I32);
            let [n, k, m] = [rows, width, out].map(|size| size as f64);
            tape.kernel(
                "linear_8bit",
                DType::U8,
                2.0 * n * k * m,
                n * k + k * m + 4.0 * n * m,
            );
            let in_half = tape.empty("int8_mm_dequant", [rows, out], DType::F16);
            let product = in_half.to(input.dtype());
            drop((in_half, sums, quantised, row_scales));
            product
        });
        let product = product.view(&shape);
        let from = *input.shape();
        product.from_op(&[&input], |_| {
            input.tape().keep_with_graph(&input.detach());
            let kept = [codes.save(), scales.save()];
            let dtype = input.dtype();
            borrowing(move |g| {
                let [codes, scales] = kept.each_ref().map(Saved::unpack);
                let g = g.contiguous();
                let tape = g.tape();
                let whole = tape.empty("to", [out, width], dtype);
                let factors = tape.empty("mul", [out], DType::F32);
                drop(factors);
                let for_input = g.product_of("linear_8bit", rows, out, width, false);
                drop((whole, codes, scales));
                grads([Some(for_input.view(&from))])
            })
        })
    }
}

impl Tensor {
    /// `HQQMatmulNoCacheDeq` (hqq/core/quantize.py) with weights of four bits: they are dequantized for each product, and the
    /// input is saved, though no gradient of the weights is made from it.
    pub fn linear_hqq(&self, packed: &Tensor, out: u64) -> Tensor {
        let input = self.clone();
        let width = input.size(-1);
        let rows = input.numel() / width.max(1);
        let dims = *input.shape();
        let shape = dims.with(dims.len().saturating_sub(1), out);
        let product = input.tape().no_grad(|| {
            let weight = unpacked_hqq(&input, [out, width]);
            let flat = input.detach().flattened();
            let product = flat.product_of("linear_4bit", rows, width, out, false);
            drop(weight);
            product.view(&shape)
        });
        product.from_op(&[&input], |_| {
            let kept = [packed.save(), input.save()];
            borrowing(move |g| {
                let kept = kept.each_ref().map(Saved::unpack);
                let weight = unpacked_hqq(g, [out, width]);
                let for_input = g.product_of("linear_4bit", rows, out, width, false);
                drop((weight, kept));
                grads([Some(for_input.view(&dims))])
            })
        })
    }
}

/// `Quantizer.dequantize` in the type of `like`: nibbles, less their zeros, times their scales.
fn unpacked_hqq(like: &Tensor, shape: [u64; 2]) -> Tensor {
    let (tape, dtype) = (like.tape(), like.dtype());
    let whole = |op| tape.empty(op, shape, dtype);
    let nibbles = whole("unpack_4bit_u8");
    let half = || tape.empty("unpack_4bit_u8", [nibbles.numel() / 2], DType::U8);
    drop([half(), half()]);
    let centred = whole("sub");
    let weight = whole("mul");
    drop((centred, nibbles));
    let moved = 8.5 * weight.numel() as f64;
    tape.kernel("dequantize", dtype, 0.0, moved);
    weight
}

/// `dequantize_4bit`: scales first, where they are quantised themselves, then the weights.
fn dequantised(like: &Tensor, shape: [u64; 2], scales: Option<u64>, stored: DType) -> Tensor {
    let tape = like.tape();
    let scales = scales.map(|n| tape.empty("dequantize", [n], DType::F32));
    let whole = tape.empty("dequantize", shape, stored);
    // Half a byte is read for each weight that is written.
    let weights = whole.numel() as f64;
    tape.kernel(
        "dequantize",
        stored,
        0.0,
        0.5 * weights + whole.bytes() as f64,
    );
    drop(scales);
    tape.no_grad(|| whole.to(like.dtype()))
}
