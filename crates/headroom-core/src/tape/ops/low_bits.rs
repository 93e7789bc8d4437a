//! Linear layers that torchao trains with products of eight and four bits (torchao/prototype/quantized_training,
//! torchao/prototype/moe_training).

use super::super::{DType, Dims, Layout, Saved, Tape, Tensor, borrowing, grads};

/// Sizes of a linear layer's product.
#[derive(Clone, Copy)]
struct Sizes {
    /// Of the input.
    dims: Dims,
    rows: u64,
    width: u64,
    out: u64,
}

impl Sizes {
    fn of(input: &Tensor, weight: &Tensor) -> Self {
        let width = weight.size(1);
        Self {
            dims: *input.shape(),
            rows: input.numel() / width.max(1),
            width,
            out: weight.size(0),
        }
    }
}

impl Tensor {
    /// The input as these layers take it under autocast, which casts the weight too, each time anew.
    fn for_low_bits(&self) -> Tensor {
        match self.tape().autocast_dtype() {
            Some(low) => self.to(low),
            None => self.clone(),
        }
    }

    /// `_Int8MixedPrecisionTrainingLinearFunction`: every product is of bytes, what is saved is not.
    pub fn linear_int8_mixed(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let (input, weight) = (self.for_low_bits(), weight.for_low_bits());
        let Sizes {
            dims,
            rows,
            width,
            out,
        } = Sizes::of(&input, &weight);
        let tape = input.tape();
        let product = tape.no_grad(|| {
            let factors = [input.detach().by_rows(rows), weight.detach().by_rows(out)];
            let product = input.of_bytes([rows, width, out], [false; 2]);
            drop(factors);
            product.view(&dims.with(dims.len().saturating_sub(1), out))
        });
        let product = product.from_op(&[&input, &weight], |needs| {
            let kept = [input.save(), weight.save()];
            let needs = [needs.input(0), needs.input(1)];
            borrowing(move |g| {
                let [input, weight] = kept.each_ref().map(Saved::unpack);
                let g = g.contiguous();
                let for_input = needs[0].then(|| {
                    let factors = [g.by_rows(rows), weight.detach().by_rows(width)];
                    let product = g.of_bytes([rows, out, width], [false, true]);
                    drop(factors);
                    product.view(&dims)
                });
                let for_weight = needs[1].then(|| {
                    let factors = [input.detach().by_rows(width), g.by_rows(out)];
                    let product = g.of_bytes([width, rows, out], [true; 2]);
                    drop(factors);
                    product.transpose(0, 1)
                });
                drop((input, weight));
                grads([for_input, for_weight])
            })
        });
        with_bias(product, bias)
    }

    /// `_BitNetTrainingLinear`: what is saved are bytes, of the weight as of the input.
    pub fn linear_bitnet(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let (input, weight) = (self.for_low_bits(), weight.for_low_bits());
        let Sizes {
            dims,
            rows,
            width,
            out,
        } = Sizes::of(&input, &weight);
        let tape = input.tape();
        let (product, kept) = tape.no_grad(|| {
            let [bytes, scales] = input.detach().by_rows(rows);
            let [ternary, scale] = weight.detach().in_three_values();
            let product = input.of_bytes([rows, width, out], [false; 2]);
            let product = product.view(&dims.with(dims.len().saturating_sub(1), out));
            (product, [bytes, scales, ternary, scale])
        });
        let product = product.from_op(&[&input, &weight], |needs| {
            let kept = kept.each_ref().map(Tensor::save);
            let needs = [needs.input(0), needs.input(1)];
            borrowing(move |g| {
                let [bytes, scales, ternary, scale] = kept.each_ref().map(Saved::unpack);
                let for_input = needs[0].then(|| {
                    let whole = ternary.empty_like("to", g.dtype());
                    let product = g.product_of("linear", rows, out, width, false);
                    drop(whole);
                    product.pipe(|product| product.map("mul")).view(&dims)
                });
                let for_weight = needs[1].then(|| {
                    let whole = bytes.empty_like("mul", g.dtype());
                    let product = g.product_of("linear", out, rows, width, false);
                    drop(whole);
                    product
                });
                drop((bytes, scales, ternary, scale));
                grads([for_input, for_weight])
            })
        });
        with_bias(product, bias)
    }

    /// `mx_mm`: blocks of 32 share a scale of a byte; input and weight are saved as they are, and cast again in backward.
    pub fn linear_mxfp8(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let (input, weight) = (self.for_low_bits(), weight.for_low_bits());
        let Sizes {
            dims,
            rows,
            width,
            out,
        } = Sizes::of(&input, &weight);
        let tape = input.tape();
        let product = tape.no_grad(|| {
            let factors = [input.in_blocks(), weight.in_blocks()];
            let product = input.block_product([rows, width, out]);
            drop(factors);
            product.view(&dims.with(dims.len().saturating_sub(1), out))
        });
        let product = product.from_op(&[&input, &weight], |_| {
            let kept = [input.save(), weight.save()];
            borrowing(move |g| {
                let [input, weight] = kept.each_ref().map(Saved::unpack);
                let g = g.contiguous();
                let factors = [g.in_blocks(), weight.in_blocks()];
                let for_input = g.block_product([rows, out, width]);
                let columns = [g.in_blocks(), input.in_blocks()];
                let for_weight = g.block_product([out, rows, width]);
                drop((columns, factors, input, weight));
                grads([Some(for_input.view(&dims)), Some(for_weight)])
            })
        });
        with_bias(product, bias)
    }

    /// `nvfp4_mm_triton`: what is saved are four bits, of the transposed input and of the transposed weight.
    pub fn linear_nvfp4(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let Sizes {
            dims,
            rows,
            width,
            out,
        } = Sizes::of(self, weight);
        let tape = self.tape();
        let (product, kept) = tape.no_grad(|| {
            let input = self.detach().to(DType::BF16);
            let lowered = weight.detach().to(DType::BF16);
            let amaxes = [amax(&tape), amax(&tape)];
            let columns = halves(&tape, rows * width);
            let along_rows = halves(&tape, rows * width);
            // `x.float().abs().max()`.
            let (wide, size) = (
                lowered.empty_like("to", DType::F32),
                lowered.empty_like("abs", DType::F32),
            );
            drop(wide);
            let largest = amax(&tape);
            drop(size);
            let codes = halves(&tape, width * out);
            let [turned, turned_scales] = halves(&tape, width * out);
            let product = input.block_product([rows, width, out]);
            drop((codes, along_rows, input, lowered));
            let [first, second] = columns;
            let [amax, _] = amaxes;
            let product = product.view(&dims.with(dims.len().saturating_sub(1), out));
            (
                product,
                [first, second, amax, turned, turned_scales, largest],
            )
        });
        let product = product.from_op(&[self, weight], |_| {
            let kept = kept.each_ref().map(Tensor::save);
            let metas = [self.meta(), weight.meta()];
            borrowing(move |g| {
                let kept = kept.each_ref().map(Saved::unpack);
                let g = g.contiguous();
                let tape = g.tape();
                let casts = (
                    [amax(&tape), amax(&tape)],
                    halves(&tape, rows * out),
                    halves(&tape, rows * out),
                );
                let for_input = g.block_product([rows, out, width]).view(&dims);
                let for_weight = g.block_product([out, rows, width]);
                drop((casts, kept));
                let [like_input, like_weight] = metas.clone();
                grads([
                    Some(for_input.conform(like_input)),
                    Some(for_weight.conform(like_weight)),
                ])
            })
        });
        with_bias(product, bias)
    }

    /// `quantize_int8_rowwise` with this many rows: bytes, and a scale of each row.
    fn by_rows(&self, rows: u64) -> [Tensor; 2] {
        let tape = self.tape();
        let size = self.empty_like("abs", self.dtype());
        let largest = tape.empty("amax", [rows], self.dtype());
        drop(size);
        let scale = tape.empty("div", [rows], self.dtype());
        drop(largest);
        let inverse = tape.empty("reciprocal", [rows], DType::F32);
        let wide = (self.dtype() != DType::F32).then(|| self.empty_like("to", DType::F32));
        let scaled = self.empty_like("mul", DType::F32);
        drop(wide);
        let rounded = self.empty_like("round", DType::F32);
        drop(scaled);
        let clipped = self.empty_like("clamp", DType::F32);
        let bytes = self.empty_like("to", DType::U8);
        drop((clipped, rounded, inverse));
        let each = 4.0 * self.dtype().bytes() as f64 + 4.0 + 8.0 + 8.0 + 8.0 + 5.0;
        let moved = each * self.numel() as f64;
        tape.launches("to_int8", self.dtype(), [0.0, moved], 10);
        [bytes, scale]
    }

    /// `get_bitnet_scale` and `quantize_bitnet_weight`.
    fn in_three_values(&self) -> [Tensor; 2] {
        let tape = self.tape();
        let wide = || (self.dtype() != DType::F32).then(|| self.empty_like("to", DType::F32));
        let whole = |op| self.empty_like(op, DType::F32);
        let mean = {
            let first = wide();
            let size = whole("abs");
            drop(first);
            let mean = tape.empty("mean", [0; 0], DType::F32);
            drop(size);
            mean
        };
        let divided = {
            let first = wide();
            let divided = whole("div");
            drop(first);
            divided
        };
        let rounded = whole("round");
        let clipped = whole("clamp");
        drop(rounded);
        let bytes = self.empty_like("to", DType::U8);
        drop((clipped, divided));
        let scale = tape.empty("to", [0; 0], self.dtype());
        drop(mean);
        let each = 2.0 * self.dtype().bytes() as f64 + 4.0 + 8.0 + 4.0 + 8.0 + 8.0 + 8.0 + 5.0;
        let moved = each * self.numel() as f64;
        tape.launches("to_int8", self.dtype(), [0.0, moved], 9);
        [bytes, scale]
    }

    /// `scaled_int8_mm`, in this tensor's type; factors that do not lie as its kernel reads them are copied.
    fn of_bytes(&self, [n, k, m]: [u64; 3], copied: [bool; 2]) -> Tensor {
        let tape = self.tape();
        let copies = [(copied[0], n), (copied[1], m)]
            .map(|(copied, size)| copied.then(|| tape.empty("contiguous", [size, k], DType::U8)));
        let out = tape.empty("scaled_int8_mm", [n, m], self.dtype());
        drop(copies);
        let [n, k, m] = [n, k, m].map(|size| size as f64);
        let moved = n * k + k * m + n * m * self.dtype().bytes() as f64;
        tape.kernel("scaled_int8_mm", DType::U8, 2.0 * n * k * m, moved);
        out
    }

    /// `MXTensor.to_mx` by one kernel: a byte each, and a byte for each 32.
    fn in_blocks(&self) -> [Tensor; 2] {
        let tape = self.tape();
        let blocks = self.numel().div_ceil(32);
        let bytes = self.empty_like("to_mx", DType::U8);
        let scales = tape.empty("to_mx", [blocks], DType::U8);
        let moved = self.bytes() + self.numel() + blocks;
        tape.kernel("to_mx", self.dtype(), 0.0, moved as f64);
        [bytes, scales]
    }

    /// `torch._scaled_mm` with scales of blocks, in this tensor's type.
    fn block_product(&self, [n, k, m]: [u64; 3]) -> Tensor {
        let tape = self.tape();
        // Scales are laid out anew, as the kernel reads them.
        let swizzled = [n, m].map(|rows| {
            tape.empty(
                "to_blocked",
                [rows.saturating_mul(k.div_ceil(32))],
                DType::U8,
            )
        });
        let out = tape.empty("scaled_mm", [n, m], self.dtype());
        tape.cublaslt_workspace();
        drop(swizzled);
        let [n, k, m] = [n, k, m].map(|size| size as f64);
        let moved = n * k + k * m + n * m * self.dtype().bytes() as f64;
        tape.kernel("scaled_mm", DType::U8, 2.0 * n * k * m, moved);
        out
    }
}

fn amax(tape: &Tape) -> Tensor {
    tape.empty("amax", [0; 0], DType::F32)
}

/// Four bits each, and a byte for each 16.
fn halves(tape: &Tape, count: u64) -> [Tensor; 2] {
    let bytes = |op, size: u64| tape.empty_as(op, Layout::contiguous([size]), DType::U8);
    let codes = bytes("to_nvfp4", count.div_ceil(2));
    let scales = bytes("to_nvfp4", count.div_ceil(16));
    let moved = 2.0 * count as f64 + codes.bytes() as f64 + scales.bytes() as f64;
    tape.kernel("to_nvfp4", DType::BF16, 0.0, moved);
    [codes, scales]
}

fn with_bias(product: Tensor, bias: Option<&Tensor>) -> Tensor {
    match bias {
        Some(bias) => {
            let bias = bias.to(product.dtype());
            product.pipe(|product| product.add(&bias))
        }
        None => product,
    }
}
