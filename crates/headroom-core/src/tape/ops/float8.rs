//! Products in float8 as torchao takes them (torchao/float8/float8_linear.py), in compiled graphs: casts are fused with what makes
//! their inputs, so that these need not lie in memory as they are.

use super::super::{DType, Saved, Tensor, borrowing, consuming, grads};

impl Tensor {
    /// `matmul_with_hp_or_float8_args` with scales of full tensors: input, weight and gradient are cast for each product.
    pub fn linear_float8(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let weight = weight.autocast();
        let input = self.autocast().flattened();
        let (rows, width, out) = (input.size(0), input.size(-1), weight.size(0));
        let dims = *self.shape();
        let cast = input.cast_to_float8();
        let cast_weight = weight.tape().no_grad(|| weight.detach().cast_to_float8());
        Tensor::materialize(&[&cast, &cast_weight]);
        let product = scaled_product(&input, [rows, width, out]);
        drop(cast_weight);
        let product = product.from_op(&[&cast, &weight], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            let kept = weight.save();
            borrowing(move |g| {
                let byte = |shape: [u64; 2]| g.tape().empty("to_float8", shape, DType::U8);
                let for_input = needs[0].then(|| {
                    let weight = kept.unpack();
                    let casts = [byte([rows, out]), byte([out, width])];
                    let product = scaled_product(g, [rows, out, width]);
                    drop((casts, weight));
                    product
                });
                let for_weight = needs[1].then(|| {
                    let casts = [byte([out, rows]), byte([rows, width])];
                    let product = scaled_product(g, [out, rows, width]);
                    drop(casts);
                    product
                });
                grads([for_input, for_weight])
            })
        });
        drop(cast);
        let last = dims.len().saturating_sub(1);
        let product = product.view(&dims.with(last, out));
        match bias {
            Some(bias) => product.pipe(|product| product.add(&bias.autocast())),
            None => product,
        }
    }

    /// A cast with one scale; backward casts the input anew for the weight's gradient.
    fn cast_to_float8(&self) -> Tensor {
        self.map_to("to_float8", DType::U8).from_op(&[self], |_| {
            let kept = self.save();
            consuming(move |g| {
                drop(Saved::unpack(&kept));
                grads([Some(g)])
            })
        })
    }
}

/// `torch._scaled_mm`: an `n×k` by `k×m` product of float8 with a result in the type of `like`.
fn scaled_product(like: &Tensor, [n, k, m]: [u64; 3]) -> Tensor {
    let tape = like.tape();
    let out = tape.empty("scaled_mm", [n, m], like.dtype());
    let [n, k, m] = [n, k, m].map(|size| size as f64);
    let moved = n * k + k * m + n * m * like.dtype().bytes() as f64;
    tape.kernel("scaled_mm", DType::U8, 2.0 * n * k * m, moved);
    out
}
