//! Norms and softmax: kernels that read rows want them dense.

use super::super::super::Tensor;
use super::super::batch_norm::Kernels;
use super::super::conv::suggests_channels_last;
use super::{Operand, RecordedCall};

impl RecordedCall<'_> {
    pub(super) fn normalisation(&self) -> Option<Vec<Tensor>> {
        match self.call.name() {
            "native_layer_norm"
            | "_softmax"
            | "_log_softmax"
            | "_log_softmax_backward_data"
            | "_fused_rms_norm" => {
                let copy = self.dense(0);
                let results = self.plainly();
                drop(copy);
                Some(results)
            }
            "native_layer_norm_backward" | "_fused_rms_norm_backward" => {
                let input = self.dense(1);
                let results = self.plainly();
                let gradient = self.dense(0);
                drop((input, gradient));
                Some(results)
            }
            "_softmax_backward_data" => {
                let results = self.plainly();
                let (gradient, output) = (self.shadows.first()?, self.shadows.get(1)?);
                drop(gradient.zip(output, "_softmax_backward_data"));
                Some(results)
            }
            "native_batch_norm" if self.trains_with_weight() => {
                let (input, weight) = (self.shadows.first()?, self.shadows.get(1)?);
                Some(Kernels::of(input, weight).forward(input, weight).into())
            }
            "native_batch_norm_backward" if self.trains_with_weight() => {
                let (gradient, input) = (self.shadows.first()?, self.shadows.get(1)?);
                let weight = self.shadows.get(2)?;
                let mask = self.call.number(1);
                let needs = [mask / 100 == 1, mask / 10 % 10 == 1, mask % 10 == 1];
                let all = Kernels::of(input, weight).gradients(input, weight, needs, gradient);
                // cuDNN makes all three, also where not all are requested.
                Some(self.requested(all.into_iter().flatten().collect()))
            }
            "native_group_norm" => self.group_norm(),
            "native_group_norm_backward" => self.group_norm_backward(),
            _ => None,
        }
    }

    fn trains_with_weight(&self) -> bool {
        let weight = usize::from(self.call.name().ends_with("backward")) + 1;
        let vector = |operand: &Operand| operand.layout.shape.len() == 1;
        self.call.number(0) == 1
            && self.made.len() > 1
            && self.inputs.get(weight).is_some_and(vector)
    }

    /// As many of a kernel's results as the recording has.
    fn requested(&self, mut all: Vec<Tensor>) -> Vec<Tensor> {
        all.truncate(self.made.len());
        all
    }

    /// `GroupNormKernelImplInternal` in group_norm_kernel.cu.
    fn group_norm(&self) -> Option<Vec<Tensor>> {
        let input = self.shadows.first()?;
        let statistics = self.made.get(1)?;
        let (samples, groups, channels) = (statistics.size(0), statistics.size(1), input.size(1));
        let copy = input.contiguous_in(suggests_channels_last(input));
        let results = self.plainly();
        if input.numel() / (samples * channels).max(1) > 1 {
            let accumulate = input.dtype().accumulate();
            let part = |width: u64| self.tape.empty("group_norm", [samples, width], accumulate);
            let statistics = (accumulate != input.dtype()).then(|| [part(groups), part(groups)]);
            drop([part(channels), part(channels)]);
            drop(statistics);
        }
        drop(copy);
        Some(results)
    }

    fn group_norm_backward(&self) -> Option<Vec<Tensor>> {
        let (gradient, input) = (self.shadows.first()?, self.shadows.get(1)?);
        let statistics = self.inputs.get(2)?;
        let (samples, groups, channels) = (statistics.size(0), statistics.size(1), input.size(1));
        let channels_last = suggests_channels_last(input);
        let copies = (
            gradient.contiguous_in(channels_last),
            input.contiguous_in(channels_last),
        );
        let results = self.plainly();
        let accumulate = input.dtype().accumulate();
        let part = |width: u64| {
            self.tape
                .empty("group_norm_backward", [samples, width], accumulate)
        };
        let sums = [part(channels), part(channels)];
        let factors = [part(groups), part(groups)];
        drop((!channels_last).then(|| part(channels)));
        drop((factors, sums, copies));
        Some(results)
    }
}
