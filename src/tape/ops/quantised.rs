//! Products with weights stored in four bits (bitsandbytes/autograd/_functions.py, `MatMul4Bit`).

use super::super::{DType, Tensor, borrowing, grads};

impl Tensor {
    /// The weights are made whole in this tensor's type for the product and let go; backward makes them again.
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
                .then(|rows2| rows2.product_of("linear_4bit", rows, width, out, false))
                .view(&shape)
        });
        drop(weight);
        let from = *input.shape();
        product.from_op(&[&input], |_| {
            if keeps_input {
                input.tape().hold_with_graph(&input.detach());
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
