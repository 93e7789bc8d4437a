//! Liger's fused kernels (liger_kernel/ops of Liger-Kernel 0.8): what each writes, keeps and writes over.

use super::super::{DType, Saved, Tensor, borrowing, consuming, grads};

impl Tensor {
    /// `LigerRMSNormFunction` (rms_norm.py): saves its input and one fp32 number a row; the gradient is written over
    /// the one that arrives, and the weight's is summed over one row for each multiprocessor.
    pub fn rms_norm_liger(&self, weight: &Tensor) -> Tensor {
        self.rms_norm_liger_in(weight, true)
    }

    /// The same; `in_place=False` where a norm stands behind another, whose gradient must stay.
    pub fn rms_norm_liger_in(&self, weight: &Tensor, in_place: bool) -> Tensor {
        let input = self.contiguous();
        let width = input.size(-1);
        let rows = input.numel() / width.max(1);
        let tape = input.tape();
        let out = tape.empty("rms_norm", *input.shape(), input.dtype());
        let deviations = tape.empty("rms_norm", [rows], DType::F32);
        out.from_op(&[&input, weight], |needs| {
            let needs_weight = needs.input(1);
            let kept = [input.save(), weight.save(), deviations.save()];
            consuming(move |g| {
                let unpacked = kept.map(|kept| kept.unpack());
                let g = g.pipe(Tensor::contiguous);
                let tape = g.tape();
                let new = (!in_place).then(|| tape.empty("zeros_like", *g.shape(), g.dtype()));
                let for_weight = needs_weight.then(|| {
                    let processors = tape.machine().multiprocessors;
                    let parts = tape.empty("rms_norm_backward", [processors, width], DType::F32);
                    let sum = tape.empty("sum", [width], DType::F32);
                    drop(parts);
                    sum.to(unpacked[1].dtype())
                });
                let for_input = new.unwrap_or_else(|| g.detach());
                grads([Some(for_input), for_weight])
            })
        })
    }

    /// `LigerSiLUMulFunction` (swiglu.py): saves both factors and writes their gradients over them.
    pub fn silu_mul_liger(&self, up: &Tensor) -> Tensor {
        let (gate, up) = (self.contiguous(), up.contiguous());
        let out = gate.tape().empty("swiglu", *gate.shape(), gate.dtype());
        out.from_op(&[&gate, &up], |_| {
            let kept = [gate.save(), up.save()];
            borrowing(move |_| {
                let [gate, up] = kept.map(|kept| kept.unpack());
                grads([Some(gate.detach()), Some(up.detach())])
            })
        })
    }

    /// `LigerRopeFunction` (rope.py) on queries and keys `[B, H, S, D]`: turned in place, forward and backward.
    pub fn rope_liger(&self, key: &Tensor, tables: &[Tensor; 2]) -> [Tensor; 2] {
        let flat = |t: &Tensor| t.transpose(1, 2).contiguous();
        let (query, key) = (flat(self), flat(key));
        let outputs = vec![query.transpose(1, 2).detach(), key.transpose(1, 2).detach()];
        let mut outputs = Tensor::from_op_with(outputs, &[&query, &key], |_| {
            let kept = tables.each_ref().map(Tensor::save);
            Box::new(move |incoming| {
                let tables = kept.map(|kept| kept.unpack());
                let all = incoming
                    .into_iter()
                    .map(|g| g.map(|g| g.transpose(1, 2).contiguous().transpose(1, 2).detach()))
                    .collect();
                drop(tables);
                all
            })
        })
        .into_iter();
        let [first, second] = [outputs.next(), outputs.next()];
        [first.unwrap_or_else(|| self.clone()), second.unwrap_or(key)]
    }

    /// `LigerFusedLinearCrossEntropyFunction` (fused_linear_cross_entropy.py) of rows `[N, H]`: forward makes the gradients,
    /// with the logits of one chunk of rows at a time. `upcasts`: each chunk is cast up and down again.
    pub fn linear_cross_entropy_liger(
        &self,
        weight: &Tensor,
        target: &Tensor,
        upcasts: bool,
    ) -> Tensor {
        let (n, width, vocabulary) = (self.size(0), self.size(1), weight.size(0));
        let tape = self.tape();
        // `chunk_size`: the logits of a chunk take about as much as the rows.
        let factor = vocabulary.div_ceil(width.max(1)).max(1);
        let chunk = n.div_ceil(factor).next_power_of_two().min(n.max(1));
        let for_input = tape.empty("zeros_like", *self.shape(), self.dtype());
        let for_weight = weight
            .requires_grad()
            .then(|| tape.empty("zeros_like", *weight.shape(), weight.dtype()));
        let losses = tape.empty("loss_1d", [n], DType::F32);
        let mask = valid_targets(target);
        // Under autocast, or with operands of two types, products have memory of their own.
        let plain = self.dtype() == weight.dtype();
        let low = self.lowered_type();
        let part = |dtype| tape.empty("logits", [chunk, vocabulary], dtype);
        let mut logits = part(low);
        let mut gradient = None;
        if !plain {
            let lowered = tape.empty("linear_cross_entropy", *weight.shape(), low);
            drop(tape.empty("linear_cross_entropy", [chunk, width], low));
            drop(lowered);
        }
        tape.cublas_workspace();
        if upcasts {
            // Each round casts up and down again and scales a copy; the names of one round live into the next.
            for round in 0..n.div_ceil(chunk.max(1)).min(2) {
                if round > 0 {
                    logits = part(low);
                }
                logits = logits.pipe(|_| part(DType::F32));
                logits = logits.pipe(|_| part(low));
                gradient = Some(part(low));
            }
        }
        let work = 2.0 * n as f64 * width as f64 * vocabulary as f64;
        tape.kernel("linear_cross_entropy", self.dtype(), 3.0 * work, 0.0);
        drop((logits, gradient, mask));
        let loss = tape.empty("sum", [0; 0], DType::F32);
        drop(losses);
        loss.from_op(&[self, weight], |_| {
            let kept = [
                Some(for_input.save()),
                for_weight.as_ref().map(Tensor::save),
            ];
            borrowing(move |_| {
                let one = kept.each_ref().map(|kept| kept.as_ref().map(Saved::unpack));
                // Once the node has freed what it saved, the gradients have their memory for themselves.
                let given = |g: Tensor| g.shaped(*g.layout());
                one.into_iter().map(|g| g.map(given)).collect()
            })
        })
    }

    /// `LigerCrossEntropyFunction` (cross_entropy.py) of logits `[N, V]`: their gradient is written over them.
    pub fn cross_entropy_liger(&self, target: &Tensor) -> Tensor {
        let tape = self.tape();
        let losses = tape.empty("loss_1d", [self.size(0)], self.dtype());
        drop(valid_targets(target));
        let loss = tape.empty("sum", [0; 0], self.dtype());
        drop(losses);
        loss.from_op(&[self], |_| {
            let kept = self.save();
            borrowing(move |_| grads([Some(kept.unpack())]))
        })
    }

    /// What autocast makes of this tensor's type.
    fn lowered_type(&self) -> DType {
        self.tape().autocast_dtype().unwrap_or(self.dtype())
    }
}

/// `target != ignore_index`, and its sum read on the host.
fn valid_targets(target: &Tensor) -> Tensor {
    let mask = target.constant("ne", target.shape(), DType::Bool);
    drop(target.constant("sum", &[0; 0], DType::I64));
    mask
}
