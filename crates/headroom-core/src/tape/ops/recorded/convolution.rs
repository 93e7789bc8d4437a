//! Convolutions: cuDNN's plans copy what does not lie in their format.

use super::super::super::Tensor;
use super::super::conv::{Conv, Plan};
use super::RecordedCall;

impl RecordedCall<'_> {
    pub(super) fn convolution(&self) -> Option<Vec<Tensor>> {
        let backward = match self.call.name() {
            "convolution" => false,
            "convolution_backward" => true,
            _ => return None,
        };
        let first = usize::from(backward);
        let (input, weight) = (self.shadows.get(first)?, self.shadows.get(first + 1)?);
        let conv = Conv {
            stride: self.call.number(0),
            padding: 0,
            dilation: self.call.number(1),
            groups: input.size(1) / weight.size(1).max(1),
            transposed: (self.call.number(2) == 1).then_some(0),
        };
        if !backward {
            let made = self.made.first()?;
            let plan = Plan::recorded(input, weight, conv, made.layout.shape);
            return Some(vec![plan.forward(input, weight)]);
        }
        let mask = self.call.numbers.last().copied().unwrap_or(111);
        let needs = [mask / 100 == 1, mask / 10 % 10 == 1, mask % 10 == 1];
        let gradient = self.shadows.first()?;
        let plan = Plan::recorded(input, weight, conv, *gradient.shape());
        let [for_input, for_weight, for_bias] = plan.gradients(input, weight, needs, gradient);
        Some(
            [for_input, for_weight, for_bias]
                .into_iter()
                .flatten()
                .collect(),
        )
    }
}
