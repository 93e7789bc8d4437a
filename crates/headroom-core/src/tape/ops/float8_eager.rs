//! Linear layers of torchao's float8 without `torch.compile` (torchao/float8/float8_linear.py, float8_ops.py): each cast goes
//! through fp32, and what is saved is not cast.

use super::super::{DType, Saved, Tensor, borrowing, grads};

/// Which scales the casts have (`Float8LinearConfig.from_recipe_name`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Float8 {
    /// One for each tensor.
    Tensorwise,
    /// One for each row of the left factor and each column of the right.
    Rowwise,
    /// The same, with the gradient of the weight as a product of 16 bits.
    RowwiseWithHighGradient,
}

impl Tensor {
    /// A linear layer in float8. In compiled graphs casts are fused with what makes their inputs, whatever their scales.
    pub fn float8(&self, weight: &Tensor, bias: Option<&Tensor>, recipe: Float8) -> Tensor {
        if self.tape().compiles() {
            self.linear_float8(weight, bias)
        } else {
            self.linear_float8_eager(weight, bias, recipe)
        }
    }

    /// `matmul_with_hp_or_float8_args`: input and weight are saved as they are, and cast again in backward.
    fn linear_float8_eager(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        recipe: Float8,
    ) -> Tensor {
        // The layer casts its input itself where there is autocast, and no weight.
        let input = match self.tape().autocast_dtype() {
            Some(low) => self.to(low),
            None => self.clone(),
        };
        let tape = input.tape();
        let dims = *input.shape();
        let (width, out) = (weight.size(1), weight.size(0));
        let rows = input.numel() / width.max(1);
        let rowwise = recipe != Float8::Tensorwise;
        let scales = move |count: u64| if rowwise { count } else { 1 };
        let product = tape.no_grad(|| {
            let casts = (
                input.detach().to_float8(scales(rows)),
                weight.detach().to_float8(scales(out)),
            );
            let product = input.scaled_mm([rows, width, out], [false; 2], false);
            drop(casts);
            product
        });
        let last = dims.len().saturating_sub(1);
        let product = product.view(&dims.with(last, out));
        let product = product.from_op(&[&input, weight], |_| {
            let kept = [input.save(), weight.save()];
            let meta = weight.meta();
            borrowing(move |g| {
                let [input, weight] = kept.each_ref().map(Saved::unpack);
                let g = g.contiguous();
                let high = recipe == Float8::RowwiseWithHighGradient;
                let casts = (
                    g.to_float8(scales(rows)),
                    // Rows are scaled with one scale for the full weight under this recipe.
                    weight
                        .detach()
                        .to_float8(if high { 1 } else { scales(width) }),
                );
                let for_input = g.scaled_mm([rows, out, width], [false, true], rowwise);
                let for_weight = if high {
                    g.product_of("linear", out, rows, width, false)
                } else {
                    let columns = (
                        g.to_float8(scales(out)),
                        input.detach().to_float8(scales(width)),
                    );
                    let product = g.scaled_mm([out, rows, width], [true; 2], rowwise);
                    drop(columns);
                    product
                };
                drop((casts, input, weight));
                let for_weight = for_weight.conform(meta.clone());
                grads([Some(for_input.view(&dims)), Some(for_weight)])
            })
        });
        match bias {
            Some(bias) => {
                let bias = bias.to(product.dtype());
                product.pipe(|product| product.add(&bias))
            }
            None => product,
        }
    }

    /// `hp_tensor_to_float8_dynamic` with this many scales: the bytes, and the scales.
    fn to_float8(&self, scales: u64) -> [Tensor; 2] {
        let tape = self.tape();
        let small = |op, dtype| {
            if scales == 1 {
                tape.empty(op, [0; 0], dtype)
            } else {
                tape.empty(op, [scales], dtype)
            }
        };
        // `tensor_to_scale`: divided in fp64.
        let size = self.empty_like("abs", self.dtype());
        let largest = small("amax", self.dtype());
        drop(size);
        let scale = {
            let wide = small("to", DType::F64);
            let clamped = small("clamp", DType::F64);
            let quotient = small("reciprocal", DType::F64);
            drop(clamped);
            let scale = small("to", DType::F32);
            drop((quotient, wide, largest));
            if scales == 1 {
                scale
            } else {
                // Rounded down to a power of two: `exp2(floor(log2(scale)))`.
                let logarithm = small("log2", DType::F32);
                let floor = small("floor", DType::F32);
                drop(logarithm);
                let power = small("exp2", DType::F32);
                drop((floor, scale));
                power
            }
        };
        let wide = (self.dtype() != DType::F32).then(|| self.empty_like("to", DType::F32));
        let scaled = self.empty_like("mul", DType::F32);
        drop(wide);
        let clamped = self.empty_like("clamp", DType::F32);
        let bits = self.empty_like("to_float8", DType::U8);
        drop((clamped, scaled));
        // Read and written: the sizes and their maximum, the cast to fp32, the product, its bounds, and the cast to a byte.
        let each = 4.0 * self.dtype().bytes() as f64 + 4.0 + 8.0 + 8.0 + 5.0;
        tape.launches(
            "to_float8",
            self.dtype(),
            [0.0, each * self.numel() as f64],
            10,
        );
        [bits, scale]
    }

    /// `addmm_float8_unwrapped` in this tensor's type. Factors that do not lie as the kernel reads them are copied; where
    /// scales are of rows and sums are exact, they are multiplied afterwards, by a matrix of them.
    fn scaled_mm(&self, [n, k, m]: [u64; 3], copied: [bool; 2], scaled_after: bool) -> Tensor {
        let tape = self.tape();
        let copies = [(copied[0], n), (copied[1], m)]
            .map(|(copied, size)| copied.then(|| tape.empty("contiguous", [size, k], DType::U8)));
        let scales = scaled_after.then(|| tape.empty("mul", [n, m], DType::F32));
        // Kernels with scales of rows write 16 bits.
        let dtype = if scaled_after && !self.dtype().is_half() {
            DType::BF16
        } else {
            self.dtype()
        };
        let out = tape.empty("scaled_mm", [n, m], dtype);
        tape.cublaslt_workspace();
        drop(scales);
        let out = if dtype == self.dtype() {
            out
        } else {
            tape.no_grad(|| out.to(self.dtype()))
        };
        drop(copies);
        let [n, k, m] = [n, k, m].map(|size| size as f64);
        let moved = n * k + k * m + n * m * out.dtype().bytes() as f64;
        tape.kernel("scaled_mm", DType::U8, 2.0 * n * k * m, moved);
        out
    }
}
