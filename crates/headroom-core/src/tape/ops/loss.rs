//! Losses.

use super::super::kernels::{Accumulator, Reduction};
use super::super::{Layout, Saved, Tensor, borrowing, grads};

impl Tensor {
    /// `F.cross_entropy(self, target)` with class indices: `log_softmax` in its own type, then `nll_loss`,
    /// which autocast runs in fp32.
    pub fn cross_entropy(&self, target: &Tensor) -> Tensor {
        let logs = self.log_softmax_as_is().pipe(Tensor::autocast_to_fp32);
        logs.nll_loss(target, &[])
    }

    /// `F.cross_entropy(self, target, reduction="none")` of classes in the second dimension: a number for each place.
    pub fn cross_entropy_unreduced(&self, target: &Tensor) -> Tensor {
        let logs = self.log_softmax_as_is().pipe(Tensor::autocast_to_fp32);
        logs.nll_loss(target, target.shape())
    }

    /// `F.nll_loss(self, target, reduction="none")` of logarithms: a number a row.
    pub fn nll_loss_unreduced(&self, target: &Tensor) -> Tensor {
        self.autocast_to_fp32().nll_loss(target, &[target.numel()])
    }

    fn nll_loss(&self, target: &Tensor, shape: &[u64]) -> Tensor {
        let tape = self.tape();
        let loss = tape.empty("nll_loss", shape, self.dtype());
        let total_weight = tape.empty("nll_loss", [0; 0], self.dtype());
        loss.from_op(&[self], |_| {
            let kept = [self.save(), target.save(), total_weight.save()];
            borrowing(move |_| {
                let logs = kept[0].unpack();
                grads([Some(logs.map("nll_loss_backward"))])
            })
        })
    }

    /// `F.mse_loss(self, target)`.
    pub fn mse_loss(&self, target: &Tensor) -> Tensor {
        let (a, b) = (self.autocast_to_fp32(), target.autocast_to_fp32());
        // The result is made as large as the inputs and shrunk to a number: its memory stays.
        let loss = a.zip(&b, "mse_loss").resized();
        let difference = a.zip(&b, "mse_loss");
        a.tape().reduce_workspace(Reduction {
            outputs: 1,
            inputs_per_output: a.numel(),
            innermost: true,
            flat: true,
            dtype: a.dtype(),
            accumulator: Accumulator::Value,
            aligned: 4,
        });
        drop(difference);
        loss.from_op(&[&a, &b], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            let kept = [a.save(), b.save()];
            borrowing(move |_| {
                let (a, b) = (kept[0].unpack(), kept[1].unpack());
                let for_b = needs[1].then(|| b.zip(&a, "mse_loss_backward"));
                grads([needs[0].then(|| a.zip(&b, "mse_loss_backward")), for_b])
            })
        })
    }

    /// `F.binary_cross_entropy_with_logits(self, target)`.
    pub fn bce_with_logits(&self, target: &Tensor) -> Tensor {
        self.bce_reduced(target, Tensor::scalar_mean)
    }

    /// The same with `reduction="none"`.
    pub fn bce_with_logits_each(&self, target: &Tensor) -> Tensor {
        self.bce_reduced(target, Tensor::clone)
    }

    fn bce_reduced(&self, target: &Tensor, reduce: fn(&Tensor) -> Tensor) -> Tensor {
        let (a, b) = (self.autocast_to_fp32(), target.autocast_to_fp32());
        // (1 - t) * x - log_sigmoid(x), the product and the difference in place (Loss.cpp).
        let log = a.map("log_sigmoid");
        let sum = b.map("rsub");
        let reduced = reduce(&sum);
        drop((sum, log));
        reduced.from_op(&[&a], |_| {
            let kept = [a.save(), b.save()];
            borrowing(move |_| {
                let [a, _target] = kept.each_ref().map(Saved::unpack);
                grads([Some(a.map("sigmoid"))])
            })
        })
    }

    /// `F.binary_cross_entropy_with_logits(self, target, reduction="none")`: saves both.
    pub fn bce_unreduced(&self, target: &Tensor) -> Tensor {
        let out = self.zip(target, "binary_cross_entropy_with_logits");
        out.from_op(&[self], |_| {
            let kept = [self.save(), target.save()];
            borrowing(move |g| {
                let [input, _target] = kept.each_ref().map(Saved::unpack);
                grads([Some(g.zip(&input, "sigmoid"))])
            })
        })
    }

    /// `SigmoidFocalLossFunction` of mmcv, unreduced: saves its input and the labels (mmcv/ops/focal_loss.py).
    pub fn focal_loss(&self, labels: &Tensor) -> Tensor {
        let out = self.map("sigmoid_focal_loss");
        out.from_op(&[self], |_| {
            let kept = [self.save(), labels.save()];
            borrowing(move |g| {
                let [input, _labels] = kept.each_ref().map(Saved::unpack);
                grads([Some(g.zip(&input, "sigmoid_focal_loss_backward"))])
            })
        })
    }

    /// `resize_({})`: one element of memory that stays as it is.
    pub(super) fn resized(&self) -> Tensor {
        self.alias(Layout::contiguous([0; 0]))
    }

    /// A mean over everything without history.
    fn scalar_mean(&self) -> Tensor {
        self.tape().no_grad(|| self.mean_all().detach())
    }
}
