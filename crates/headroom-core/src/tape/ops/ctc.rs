//! Connectionist temporal classification by PyTorch's own kernels (aten/src/ATen/native/cuda/LossCTC.cu).

use super::super::{DType, Layout, Saved, Tensor, borrowing, grads};

impl Tensor {
    /// `F.ctc_loss(self, targets, .., reduction="mean", zero_infinity=True)` of log-probabilities `[T, B, V]` in fp32, for up to
    /// `longest` labels a sample: saves them, the losses and the forward variables.
    pub fn ctc_loss(&self, targets: &Tensor, longest: u64) -> Tensor {
        let tape = self.tape();
        let (frames, batch) = (self.size(0), self.size(1));
        let places = longest.saturating_mul(2).saturating_add(1);
        let variables = [batch, frames, places];
        let alpha = tape.empty("_ctc_loss", variables, DType::F32);
        let losses = tape.empty("_ctc_loss", [batch], DType::F32);
        let lengths = [(); 3].map(|()| tape.empty("_ctc_loss", [batch], DType::I64));
        let work = 4.0 * alpha.numel() as f64;
        tape.kernel("_ctc_loss", DType::F32, work, alpha.bytes() as f64);
        drop(lengths);
        let each = losses.clone().from_op(&[self], |_| {
            let kept = [self, targets, &losses, &alpha].map(Self::save);
            borrowing(move |g| {
                let tape = g.tape();
                let [log_probs, _targets, _losses, _alpha] = kept.each_ref().map(Saved::unpack);
                let beta = tape.empty("_ctc_loss_backward", variables, DType::F32);
                let lengths =
                    [(); 3].map(|()| tape.empty("_ctc_loss_backward", [batch], DType::I64));
                let layout = Layout::contiguous(*log_probs.shape());
                let out = tape.empty_as("_ctc_loss_backward", layout, DType::F32);
                tape.kernel("_ctc_loss_backward", DType::F32, work, out.bytes() as f64);
                drop((beta, lengths));
                grads([Some(out)])
            })
        });
        drop(losses);
        // Infinite losses become zero; each is divided by its number of labels.
        let infinite = each.constant("eq", &[batch], DType::Bool);
        let finite = each.where_mask(&infinite);
        drop((infinite, each));
        let counts = finite.constant("clamp_min", &[batch], DType::F32);
        finite.div(&counts).mean_all()
    }

    /// `F.glu(self, dim)`: saves its input, of which the result is half.
    pub fn glu(&self, dim: isize) -> Tensor {
        let Some(at) = self.dim(dim) else {
            return self.clone();
        };
        let shape = self.shape().with(at, self.size(dim) / 2);
        let tape = self.tape();
        let out = tape.empty("glu", shape, self.dtype());
        let moved = self.bytes().saturating_add(out.bytes()) as f64;
        tape.kernel("glu", self.dtype(), out.numel() as f64, moved);
        out.from_op(&[self], |_| {
            let kept = self.save();
            borrowing(move |_| grads([Some(kept.unpack().map("glu_backward"))]))
        })
    }
}
