//! Log-probabilities of given tokens from all logits, as trainers after pre-training take them.

use super::super::{DType, Saved, Tensor, borrowing, grads};
use super::index::summed_by_index;

impl Tensor {
    /// `selective_log_softmax` of TRL with its own kernel (trl/kernels/logprob_entropy.py): saves the logits; the gradient of
    /// all of them is made at once.
    pub fn selected_log_probs(&self, index: &Tensor) -> Tensor {
        let tape = self.tape();
        let numbers = || tape.empty("logprobs", *index.shape(), DType::F32);
        let [log_probs, entropy, log_z, expected] = [(); 4].map(|()| numbers());
        drop(entropy);
        tape.kernel("log_softmax", self.dtype(), 0.0, self.bytes() as f64);
        let (shape, dtype) = (*self.shape(), self.dtype());
        log_probs.from_op(&[self], |_| {
            let kept = [self.save(), index.save(), log_z.save(), expected.save()];
            borrowing(move |g| {
                let [logits, ..] = kept.each_ref().map(Saved::unpack);
                let out = g.tape().empty("grad_logits", shape, dtype);
                let moved = 2.0 * logits.bytes() as f64;
                g.tape().kernel("log_softmax_backward", dtype, 0.0, moved);
                grads([Some(out)])
            })
        })
    }

    /// `-CrossEntropyLoss.apply(self, labels)` of flash-attn (flash_attn/ops/triton/cross_entropy.py) with `inplace_backward`: saves
    /// the logits, over which backward writes their gradient.
    pub fn log_probs_in_place(&self, labels: &Tensor) -> Tensor {
        let tape = self.tape();
        let rows = self.shape().removed(self.shape().len().saturating_sub(1));
        let [losses, lse, z_losses] =
            ["losses", "lse", "z_losses"].map(|name| tape.empty(name, rows, DType::F32));
        tape.kernel("cross_entropy", self.dtype(), 0.0, self.bytes() as f64);
        drop(z_losses);
        let loss = losses.from_op(&[self], |_| {
            let kept = [self.save(), lse.save(), labels.save()];
            borrowing(move |_| {
                let [logits, ..] = kept.each_ref().map(Saved::unpack);
                let moved = 2.0 * logits.bytes() as f64;
                logits
                    .tape()
                    .kernel("cross_entropy_backward", logits.dtype(), 0.0, moved);
                grads([Some(logits.detach())])
            })
        });
        loss.neg()
    }

    /// `torch.logsumexp(self, -1)`; autocast runs it in fp32.
    pub fn logsumexp(&self) -> Tensor {
        self.logsumexp_over(self.shape().len().saturating_sub(1))
    }

    /// `torch.logsumexp(self, dim)`: largest values, differences and their exponentials, and their sum
    /// (`logsumexp_out_impl` in ReduceOps.cpp).
    pub fn logsumexp_over(&self, dim: usize) -> Tensor {
        let input = self.autocast_to_fp32();
        let tape = input.tape();
        let shape = input.shape().removed(dim);
        let result = tape.empty("logsumexp", shape, input.dtype());
        let largest = tape.empty("amax", shape, input.dtype());
        drop(input.map("sub"));
        drop(largest);
        let value = result.clone();
        result.from_op(&[&input], |_| {
            let kept = [input.save(), value.save()];
            borrowing(move |g| {
                // grad * (self - result).exp()
                let [input, _value] = kept.each_ref().map(Saved::unpack);
                let difference = input.map("sub");
                let power = difference.map("exp");
                drop(difference);
                let out = power.zip(&g.unsqueeze(dim as isize), "mul");
                drop(power);
                grads([Some(out)])
            })
        })
    }

    /// `self[mask]` of `[B, S, H]` with a Boolean mask `[B, S]` of which this many places are true: whole rows. The mask is saved;
    /// the gradient is put into zeros of the full shape.
    pub fn rows_where(&self, mask: &Tensor, count: u64) -> Tensor {
        let tape = self.tape();
        let (whole, dtype) = (*self.shape(), self.dtype());
        let places = tape.empty("nonzero", [count, mask.shape().len() as u64], DType::I64);
        let out = tape.empty("index", [count, self.size(-1)], dtype);
        drop(places);
        tape.kernel("index", dtype, 0.0, 2.0 * out.bytes() as f64);
        out.from_op(&[self], |_| {
            let kept = mask.save();
            borrowing(move |g| {
                let mask = kept.unpack();
                let tape = g.tape();
                let out = tape.empty("new_zeros", whole, dtype);
                let dims = mask.shape().len() as u64;
                let places = tape.empty("nonzero", [count, dims], DType::I64);
                let index = tape.empty("index_put", [count], DType::I64);
                summed_by_index(g, index.numel(), mask.numel());
                drop((index, places));
                tape.kernel("index_put", dtype, 0.0, 2.0 * g.bytes() as f64);
                grads([Some(out)])
            })
        })
    }

    /// `F.kl_div(self, target, reduction="none", log_target=True)` of two logarithms.
    pub fn kl_divergence(&self, target: &Tensor) -> Tensor {
        let power = target.exp();
        let difference = target.sub(self);
        power.mul(&difference)
    }

    /// `F.logsigmoid(self)`; saves its input, and a buffer of nothing on a GPU.
    pub fn log_sigmoid(&self) -> Tensor {
        self.autocast_to_fp32()
            .from_input("log_sigmoid", |g, input| {
                g.zip(input, "log_sigmoid_backward")
            })
    }
}
