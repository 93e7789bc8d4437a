//! Cross-entropy of logits whose vocabulary is split over GPUs (torch/distributed/tensor/parallel/loss.py).

use super::super::{DType, Tensor, borrowing, grads};

impl Tensor {
    /// `F.cross_entropy` of a GPU's part of the logits `[N, V / group]` in fp32, in the context of `loss_parallel()`. One
    /// backward stands for that of `log_softmax` and of `nll_loss`.
    pub fn cross_entropy_parallel(&self, target: &Tensor) -> Tensor {
        let rows = [self.size(0), 1];
        let row = |of: &Tensor| of.constant("all_reduce", &rows, of.dtype());
        let logs = {
            let local = row(self);
            let greatest = row(self);
            drop(local);
            let shifted = self.map("sub");
            let powers = shifted.map("exp");
            let local = row(self);
            drop(powers);
            let sums = row(self);
            drop(local);
            let log = row(self);
            let logs = shifted.map("sub");
            drop((shifted, greatest, sums, log));
            logs
        };
        let tape = self.tape();
        let per_row = |dtype: DType| tape.empty("nll_loss", [target.numel()], dtype);
        let loss = tape.empty("nll_loss", [0; 0], logs.dtype());
        let total_weight = tape.empty("nll_loss", [0; 0], logs.dtype());
        drop((
            per_row(DType::I64),
            per_row(DType::Bool),
            per_row(DType::I64),
            per_row(DType::F32),
            per_row(DType::F32),
            per_row(DType::F32),
        ));
        loss.from_op(&[self], |_| {
            let kept = [logs.save(), target.save(), total_weight.save()];
            borrowing(move |_| {
                let logs = kept[0].unpack();
                let tape = logs.tape();
                let index = tape.empty("arange", [logs.size(0)], DType::I64);
                let picked = logs.map("zeros_like");
                let mask = tape.empty("mask", [logs.size(0)], DType::Bool);
                let own = tape.empty("sub", [logs.size(0)], DType::I64);
                let factor = row_of(&logs);
                let product = logs.map("exp").pipe(|powers| powers.map("mul"));
                let sum = picked.zip(&product, "add");
                drop((product, factor, own, mask, picked, index));
                grads([Some(sum)])
            })
        })
    }
}

fn row_of(logs: &Tensor) -> Tensor {
    logs.constant("mul", &[logs.size(0), 1], logs.dtype())
}
