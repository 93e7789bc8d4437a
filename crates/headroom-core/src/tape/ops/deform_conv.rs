//! Deformable convolutions (mmcv/ops/deform_conv.py and modulated_deform_conv.py; torchvision and detectron2 alike).

use super::super::{Saved, Tensor, borrowing};

impl Tensor {
    /// A convolution whose taps are moved by `offsets`, and weighed by `mask` in the second version: saves all of them; both ways it makes
    /// columns of every tap, which backward makes again.
    pub fn deform_conv(&self, offsets: &Tensor, mask: Option<&Tensor>, weight: &Tensor) -> Tensor {
        let (tape, dtype) = (self.tape(), self.dtype());
        let shape = offsets.shape().with(1, weight.size(0));
        let places = shape.product() / weight.size(0).max(1);
        let taps = weight.size(2).saturating_mul(weight.size(3));
        // The first version takes up to 32 pictures at once (`im2col_step`), the second one after the other.
        let at_once = if mask.is_some() {
            places / self.size(0).max(1)
        } else {
            places
        };
        let columns = [self.size(1).saturating_mul(taps), at_once];
        let flops = 2.0 * shape.product() as f64 * (weight.numel() / weight.size(0).max(1)) as f64;
        let bytes = self.bytes() as f64 * taps as f64;
        drop(tape.empty("deform_conv_columns", columns, dtype));
        let out = tape.empty("deform_conv", shape, dtype);
        tape.kernel("deform_conv", dtype, flops, bytes);
        let mut inputs = vec![self, offsets, weight];
        inputs.extend(mask);
        out.from_op(&inputs, |needs| {
            let needs: Vec<bool> = (0..inputs.len()).map(|i| needs.input(i)).collect();
            let kept: Vec<Saved> = inputs.iter().map(|input| input.save()).collect();
            borrowing(move |g| {
                let all: Vec<Tensor> = kept.iter().map(Saved::unpack).collect();
                let tape = g.tape();
                let made = all.iter().zip(&needs).map(|(input, needed)| {
                    needed.then(|| tape.empty("deform_conv_backward", *input.shape(), dtype))
                });
                let made: Vec<Option<Tensor>> = made.collect();
                drop(tape.empty("deform_conv_columns", columns, dtype));
                tape.kernel("deform_conv_backward", dtype, 2.0 * flops, 2.0 * bytes);
                drop(all);
                made.into_iter().collect()
            })
        })
    }
}
