//! Apple's `cut_cross_entropy` (cut_cross_entropy/{cce,cce_lse_forward,cce_backward,indexed_dot}.py): a kernel computes the logits of a
//! tile, adds up their exponentials and forgets them; backward computes them again.

use super::super::{DType, Saved, Tensor, borrowing, grads};

impl Tensor {
    /// The mean cross-entropy of `self` `[rows, H]` times a head `[vocabulary, H]` against labels: saves both, and a number for each row.
    pub fn linear_cross_entropy_cut(&self, weight: &Tensor, labels: &Tensor) -> Tensor {
        let tape = self.tape();
        let (rows, vocab, dtype) = (self.size(0), weight.size(0), self.dtype());
        let work = 2.0 * self.numel() as f64 * vocab as f64;
        let sums = tape.empty("cce_lse", [rows], DType::F32);
        // The mean logit of each entry, by which backward orders them, where it leaves out what rounds to nothing.
        let means = dtype
            .is_half()
            .then(|| tape.empty("cce_logit_avg", [vocab], DType::F32));
        tape.kernel("cce_lse", dtype, work, 0.0);
        let dots = tape.empty("cce_neg_dot", [rows], DType::F32);
        let loss = tape.empty("mean", [0; 0], DType::F32);
        drop(dots);
        loss.from_op(&[self, weight], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            let kept = [self, weight, &sums, labels].map(Tensor::save);
            let kept_means = means.as_ref().map(Tensor::save);
            let shapes = [*self.shape(), *weight.shape()];
            let head_dtype = weight.dtype();
            borrowing(move |g| {
                let unpacked = kept.each_ref().map(Saved::unpack);
                let tape = g.tape();
                let order = kept_means.as_ref().map(|means| {
                    let means = means.unpack();
                    let order = means.constant("argsort", &[vocab], DType::I64);
                    order.to(DType::I32)
                });
                let for_input = needs[0].then(|| tape.empty("zeros_like", shapes[0], dtype));
                let for_weight = needs[1].then(|| tape.empty("zeros_like", shapes[1], dtype));
                let products = 1 + u8::from(needs[0]) + u8::from(needs[1]);
                tape.kernel("cce_backward", dtype, f64::from(products) * work, 0.0);
                drop((order, unpacked));
                let for_weight = for_weight.map(|gradient| gradient.to(head_dtype));
                grads([for_input, for_weight])
            })
        })
    }
}
