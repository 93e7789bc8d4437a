//! Products with `NF4Tensor` weights of torchao (torchao/quantization/quantize_/workflows/nf4/nf4_tensor.py), as torchtune has them.

use super::super::{DType, Tensor, borrowing, grads};

impl Tensor {
    /// `LinearNF4`: the packed weight alone is saved; it is made anew for each product and freed after it. `compiled`: the graph
    /// writes nothing but the weight itself.
    pub fn linear_nf4(&self, packed: &Tensor, out: u64, compiled: bool) -> Tensor {
        let input = self.clone();
        let width = input.size(-1);
        let rows = input.numel() / width.max(1);
        let dims = *input.shape();
        let shape = dims.with(dims.len().saturating_sub(1), out);
        let product = input.tape().no_grad(|| {
            let weight = original(&input, [out, width], compiled);
            let flat = input.detach().flattened();
            let product = flat.product_of("linear_4bit", rows, width, out, false);
            drop(weight);
            product.view(&shape)
        });
        product.from_op(&[&input], |_| {
            let kept = packed.save();
            borrowing(move |g| {
                let packed = kept.unpack();
                let weight = original(g, [out, width], compiled);
                let for_input = g.product_of("linear_4bit", rows, out, width, false);
                drop((packed, weight));
                grads([Some(for_input.view(&dims))])
            })
        })
    }
}

/// `get_original_weight`: indices in 64 bits and what they point to for each half of the bytes, all alive until both halves are
/// joined.
fn original(like: &Tensor, shape: [u64; 2], compiled: bool) -> Tensor {
    let tape = like.tape();
    let dtype = like.dtype();
    let half = shape[0].saturating_mul(shape[1]).div_ceil(2);
    let made = |op, dtype| tape.empty(op, [half], dtype);
    let halves = (!compiled).then(|| {
        let indices = [(); 2].map(|()| {
            let bits = made("bitwise_and", DType::U8);
            let indices = made("to", DType::I64);
            drop(bits);
            indices
        });
        let values = [(); 2].map(|()| made("index_select", dtype));
        let scaled = [(); 2].map(|()| {
            let repeated = made("flatten", dtype);
            let scaled = made("mul", dtype);
            drop(repeated);
            scaled
        });
        (indices, values, scaled)
    });
    let whole = tape.empty("stack", shape, dtype);
    let weights = whole.numel() as f64;
    // Compiled, half a byte is read for each weight; otherwise each half goes through its indices.
    let read = if compiled { 0.5 } else { 20.0 };
    tape.kernel(
        "dequantize",
        dtype,
        0.0,
        read * weights + whole.bytes() as f64,
    );
    drop(halves);
    whole
}
