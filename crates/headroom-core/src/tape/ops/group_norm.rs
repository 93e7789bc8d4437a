//! Group norm.

use super::super::{Tensor, consuming, grads};
use super::conv::suggests_channels_last;

impl Tensor {
    /// `F.group_norm(self, groups, weight, bias)`: saves the input and two numbers a group. Autocast runs it in fp32.
    pub fn group_norm(&self, groups: u64, weight: &Tensor, bias: &Tensor) -> Tensor {
        let bias = bias.autocast_to_fp32();
        let weight = weight.autocast_to_fp32();
        let input = self.autocast_to_fp32();
        let tape = input.tape();
        let channels_last = suggests_channels_last(&input);
        let dense = input.contiguous_in(channels_last);
        let (samples, channels) = (input.size(0), input.size(1));
        let plane = input.numel() / (samples * channels).max(1);
        let statistics_type = input.dtype();
        let out = dense.map("group_norm");
        let [mean, deviation] =
            [(), ()].map(|()| tape.empty("group_norm", [samples, groups], statistics_type));
        if plane > 1 {
            // The statistics in fp32, then the affine part as one factor and one term a channel
            // (`GroupNormKernelImplInternal` in group_norm_kernel.cu).
            let accumulate = statistics_type.accumulate();
            let part = |width: u64| tape.empty("group_norm", [samples, width], accumulate);
            let statistics = (accumulate != statistics_type).then(|| [part(groups), part(groups)]);
            drop([part(channels), part(channels)]);
            drop(statistics);
        }
        drop(dense);
        work(&input, 2.0);
        out.from_op(&[&input, &weight, &bias], |needs| {
            let needs = [needs.input(0), needs.input(1), needs.input(2)];
            let kept = [input.save(), weight.save(), mean.save(), deviation.save()];
            consuming(move |g| {
                let [input, weight, mean, deviation] =
                    [0, 1, 2, 3].map(|i: usize| kept[i].unpack());
                let tape = input.tape();
                let (g, dense) = (
                    g.contiguous_in(channels_last),
                    input.contiguous_in(channels_last),
                );
                let for_input = needs[0].then(|| dense.map("group_norm_backward"));
                let [for_weight, for_bias] = [needs[1], needs[2]]
                    .map(|needed| needed.then(|| weight.map("group_norm_backward")));
                let accumulate = input.dtype().accumulate();
                let part =
                    |width: u64| tape.empty("group_norm_backward", [samples, width], accumulate);
                let sums = [part(channels), part(channels)];
                if needs[0] {
                    let factors = [part(groups), part(groups)];
                    drop((!channels_last).then(|| part(channels)));
                    drop(factors);
                }
                drop(sums);
                work(&input, 3.0);
                drop((g, dense, mean, deviation));
                grads([for_input, for_weight, for_bias])
            })
        })
    }
}

fn work(input: &Tensor, passes: f64) {
    let bytes = (passes + 1.0) * input.bytes() as f64;
    let flops = 4.0 * input.numel() as f64;
    input
        .tape()
        .kernel("group_norm", input.dtype(), flops, bytes);
}
