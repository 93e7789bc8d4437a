//! Normalisation kernels.

use smallvec::SmallVec;

use super::super::{DType, Grads, Saved, Tensor, borrowing, grads};

impl Tensor {
    /// `F.layer_norm` over the last dimension: saves the input and two fp32 numbers a row. Autocast runs it in fp32.
    pub fn layer_norm(&self, weight: Option<&Tensor>, bias: Option<&Tensor>) -> Tensor {
        let bias = bias.map(Tensor::autocast_to_fp32);
        let weight = weight.map(Tensor::autocast_to_fp32);
        let input = self.autocast_to_fp32();
        // The kernel works on a contiguous copy, autograd saves the input itself.
        let dense = input.contiguous_in(false);
        let tape = input.tape();
        let mut rows = *input.shape();
        rows = rows.with(rows.len().saturating_sub(1), 1);
        let out = dense.map("layer_norm");
        let statistics_type = input.dtype().accumulate();
        let mean = tape.empty("layer_norm", rows, statistics_type);
        let deviation = tape.empty("layer_norm", rows, statistics_type);
        drop(dense);
        let inputs: SmallVec<[&Tensor; 3]> = [Some(&input), weight.as_ref(), bias.as_ref()]
            .into_iter()
            .flatten()
            .collect();
        let (has_weight, has_bias) = (weight.is_some(), bias.is_some());
        out.from_op(&inputs, |needs| {
            let needs_input = needs.input(0);
            let needs_weight = has_weight && needs.input(1);
            let needs_bias = has_bias && needs.input(1 + usize::from(has_weight));
            // An array: a closure would take only the fields of a tuple that it names.
            let kept = [
                Some(input.save()),
                Some(mean.save()),
                Some(deviation.save()),
                weight.as_ref().map(Tensor::save),
                bias.as_ref().map(Tensor::save),
            ];
            borrowing(move |g| {
                let tape = g.tape();
                let kept = kept.map(|kept| kept.as_ref().map(Saved::unpack));
                let gradient_of =
                    |i: usize| kept[i].as_ref().map(|kept| kept.map("layer_norm_backward"));
                // The input and the gradient are read in rows: the kernel sees to the gradient itself.
                let dense = kept[0].as_ref().map(|input| input.contiguous_in(false));
                let for_input = dense
                    .as_ref()
                    .filter(|_| needs_input)
                    .map(|dense| dense.map("layer_norm_backward"));
                let for_weight = if needs_weight { gradient_of(3) } else { None };
                let for_bias = if needs_bias { gradient_of(4) } else { None };
                let g = g.contiguous_in(false);
                tape.kernel("layer_norm_backward", g.dtype(), 0.0, g.bytes() as f64);
                let mut all = Grads::new();
                all.push(for_input);
                if has_weight {
                    all.push(for_weight);
                }
                if has_bias {
                    all.push(for_bias);
                }
                all
            })
        })
    }

    /// `F.rms_norm` with a weight: one kernel, which saves its input and a number a row. Autocast runs it in fp32.
    pub fn fused_rms_norm(&self, weight: &Tensor) -> Tensor {
        let weight = weight.autocast_to_fp32();
        let input = self.autocast_to_fp32();
        let rows = input.shape().with(input.shape().len().saturating_sub(1), 1);
        let dense = input.contiguous_in(false);
        let out = dense.map("rms_norm");
        let deviation = out
            .tape()
            .empty("rms_norm", rows, input.dtype().accumulate());
        drop(dense);
        out.from_op(&[&input, &weight], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            let kept = [input.save(), weight.save(), deviation.save()];
            let in_parts = needs[0] && needs[1];
            if in_parts {
                input.core().reached_from_weight(3);
            }
            borrowing(move |g| {
                let [input, weight, deviation] = kept.each_ref().map(Saved::unpack);
                if in_parts && g.tape().defers_weight_gradients() {
                    let (dense, held) = (input.contiguous_in(false), g.clone());
                    let for_input = dense.map("rms_norm_backward");
                    drop((dense, input, weight, deviation));
                    g.tape().defer_weight_gradients(move || {
                        let [_input, weight, _deviation] = kept.each_ref().map(Saved::unpack);
                        let for_weight = weight.map("rms_norm_backward");
                        drop(held);
                        grads([None, Some(for_weight)])
                    });
                    return grads([Some(for_input), None]);
                }
                let (g, dense) = (g.contiguous_in(false), input.contiguous_in(false));
                let for_input = needs[0].then(|| dense.map("rms_norm_backward"));
                let for_weight = needs[1].then(|| weight.map("rms_norm_backward"));
                drop((g, dense, deviation));
                grads([for_input, for_weight])
            })
        })
    }

    /// RMS norm as transformers writes it in Python: fp32 inside, the weight applied in the input's type.
    pub fn rms_norm_python(&self, weight: &Tensor) -> Tensor {
        let dtype = self.dtype();
        let mut hidden = self.to(DType::F32);
        let variance = hidden.pow().pipe(|squares| squares.mean(&[-1]));
        let scale = variance.add_scalar().pipe(Tensor::rsqrt);
        hidden = scale.pipe(|scale| hidden.mul(scale));
        hidden.to(dtype).pipe(|hidden| weight.mul(hidden))
    }
}
