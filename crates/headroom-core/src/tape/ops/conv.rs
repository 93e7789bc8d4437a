//! Convolutions of one to three spatial dimensions, forward and transposed.

use super::super::{DType, Dims, Grads, Layout, Machine, Saved, Tensor, borrowing, grads};

/// How a convolution slides; its kernel is the weight's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv {
    /// The step between windows, equal in all spatial dimensions.
    pub stride: u64,
    /// Zeros added at both ends of each spatial dimension.
    pub padding: u64,
    /// The distance between the elements of the kernel.
    pub dilation: u64,
    /// Groups of channels that are convolved separately.
    pub groups: u64,
    /// `conv_transpose`, with its `output_padding`.
    pub transposed: Option<u64>,
}

impl Default for Conv {
    fn default() -> Self {
        Self {
            stride: 1,
            padding: 0,
            dilation: 1,
            groups: 1,
            transposed: None,
        }
    }
}

impl Conv {
    /// A convolution with this stride, and everything else as in `F.conv2d` by default.
    pub fn stride(stride: u64) -> Self {
        Self {
            stride,
            ..Self::default()
        }
    }

    /// The same with this padding.
    pub fn padded(self, padding: u64) -> Self {
        Self { padding, ..self }
    }

    /// The same with this many groups.
    pub fn grouped(self, groups: u64) -> Self {
        Self { groups, ..self }
    }

    /// `_conv_output_size` and `conv_input_size` of ConvUtils.h.
    fn output(&self, input: &Dims, weight: &Dims) -> Dims {
        let size = |n: u64, kernel: u64| {
            let reach = self.dilation.saturating_mul(kernel.saturating_sub(1));
            match self.transposed {
                None => {
                    n.saturating_add(2 * self.padding).saturating_sub(reach + 1)
                        / self.stride.max(1)
                        + 1
                }
                Some(extra) => {
                    (n.saturating_sub(1).saturating_mul(self.stride) + reach + extra + 1)
                        .saturating_sub(2 * self.padding)
                }
            }
        };
        let mut out = *input;
        for (i, (&n, &kernel)) in input.iter().zip(weight.iter()).enumerate() {
            out = match (i, self.transposed) {
                (0, _) => out,
                (1, None) => out.with(1, weight.first().copied().unwrap_or(1)),
                (1, Some(_)) => out.with(1, kernel.saturating_mul(self.groups)),
                _ => out.with(i, size(n, kernel)),
            };
        }
        out
    }

    /// What pooling windows of this stride and padding leave (`pooling_output_shape` in Pool.h).
    pub(in crate::tape) fn windows(&self, input: &Dims, kernel: u64) -> Dims {
        let channels = input.get(1).copied().unwrap_or(1);
        let mut weight = Dims::new(&vec![kernel; input.len()]);
        weight = weight.with(0, channels);
        Self {
            transposed: None,
            ..*self
        }
        .output(input, &weight)
    }

    /// `ConvParams::is_depthwise` in Convolution.cpp.
    fn is_depthwise(&self, input: &Tensor, weight: &Tensor) -> bool {
        let channels = input.size(1);
        self.transposed.is_none()
            && channels == self.groups
            && channels > 1
            && weight.size(0).is_multiple_of(channels)
    }

    /// `select_conv_backend`: everything goes to cuDNN but the depthwise convolutions PyTorch's own kernel does better.
    fn uses_cudnn(&self, input: &Tensor, weight: &Tensor) -> bool {
        !self.is_depthwise(input, weight)
            || input.shape().len() < 4
            || suggests_channels_last(input)
            || suggests_channels_last(weight)
            || (input.dtype() == DType::F16
                && self.dilation == 1
                && input.size(1) >= 32
                && self.suits_cudnn_depthwise(input, weight))
    }

    /// `check_cudnn_depthwise_workload_with_filter` in Convolution.cpp.
    fn suits_cudnn_depthwise(&self, input: &Tensor, weight: &Tensor) -> bool {
        let (batch, channels, width, filter) =
            (input.size(0), input.size(1), input.size(3), weight.size(3));
        if input.size(2) == 1 && self.stride == 1 {
            return true;
        }
        if weight.size(2) != filter || !matches!(filter, 1 | 3 | 5) || width < 7 {
            return false;
        }
        match self.stride {
            1 => true,
            2 if batch == 1 => filter != 1 || width <= 28,
            2 if filter == 1 => batch <= 16 && channels >= 128 && width <= 7,
            2 => channels >= 512 || (channels >= 256 && width >= 28),
            _ => false,
        }
    }
}

impl Tensor {
    /// `F.conv1d`, `F.conv2d`, `F.conv3d` and their transposes, by the weight's dimensions.
    ///
    /// Input and weight are saved whatever needs a gradient (derivatives.yaml: `convolution`). Each cuDNN plan claims
    /// the workspace the machine states.
    pub fn convolution(&self, weight: &Tensor, bias: Option<&Tensor>, conv: Conv) -> Tensor {
        self.planned(weight, bias, |input, weight| Plan::new(input, weight, conv))
    }

    /// The same with steps as long as the kernel in each dimension, which need not be equal: patches.
    pub fn patch_convolution(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        self.planned(weight, bias, |input, weight| {
            let mut shape = input.shape().with(1, weight.size(0));
            for (i, &kernel) in weight.shape().iter().enumerate().skip(2) {
                let patches = shape.get(i).map_or(1, |n| n / kernel.max(1));
                shape = shape.with(i, patches);
            }
            Plan::recorded(input, weight, Conv::default(), shape)
        })
    }

    fn planned(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        plan: impl FnOnce(&Tensor, &Tensor) -> Plan,
    ) -> Tensor {
        let bias = bias.map(Tensor::autocast);
        let weight = weight.autocast();
        let input = self.autocast();
        let plan = plan(&input, &weight);
        let mut inputs = vec![&input, &weight];
        inputs.extend(bias.as_ref());
        Tensor::materialize(&inputs);
        let history = Tensor::history(&inputs, |needs| {
            let needs = [needs.input(0), needs.input(1), needs.input(2)];
            let kept = [input.save(), weight.save()];
            borrowing(move |g| plan.backward(&kept, needs, g))
        });
        plan.forward(&input, &weight).with_history(history)
    }
}

/// A convolution with everything chosen.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    output: Layout,
    /// The memory format the kernels work in.
    channels_last: bool,
    cudnn: bool,
    /// A filter for each channel by itself.
    depthwise: bool,
    flops: f64,
}

impl Plan {
    fn new(input: &Tensor, weight: &Tensor, conv: Conv) -> Self {
        let shape = conv.output(input.shape(), weight.shape());
        Self::recorded(input, weight, conv, shape)
    }

    /// The plan of a convolution whose result's shape is known.
    pub(super) fn recorded(input: &Tensor, weight: &Tensor, conv: Conv, shape: Dims) -> Self {
        let cudnn = conv.uses_cudnn(input, weight);
        let channels_last =
            cudnn && (suggests_channels_last(input) || suggests_channels_last(weight));
        let positions = if conv.transposed.is_some() {
            input.numel()
        } else {
            shape.product()
        };
        let taps = weight.numel() / weight.size(0).max(1);
        Self {
            output: format(channels_last, shape),
            channels_last,
            cudnn,
            depthwise: conv.groups > 1 && weight.size(1) == 1,
            flops: 2.0 * positions as f64 * taps as f64,
        }
    }

    pub(super) fn forward(&self, input: &Tensor, weight: &Tensor) -> Tensor {
        let input = self.formatted(input);
        let out = input
            .tape()
            .empty_as("convolution", self.output, input.dtype());
        let weight = self.formatted(weight);
        self.kernel(&[&input, &weight, &out]);
        out
    }

    /// `convolution_backward` in Convolution.cpp.
    fn backward(&self, kept: &[Saved; 2], needs: [bool; 3], g: &Tensor) -> Grads {
        let [input, weight] = [0, 1].map(|i: usize| kept[i].unpack());
        let all = self.gradients(&input, &weight, needs, g);
        drop((input, weight));
        grads(all)
    }

    pub(super) fn gradients(
        &self,
        input: &Tensor,
        weight: &Tensor,
        needs: [bool; 3],
        g: &Tensor,
    ) -> [Option<Tensor>; 3] {
        let (for_input, for_weight) = {
            // `to(memory_format)`: a gradient of the right format that has holes is copied at each use below.
            let g = if suggests_channels_last(g) == self.channels_last && self.cudnn {
                g.clone()
            } else {
                self.formatted(g)
            };
            let input = if needs[1] {
                self.formatted(input)
            } else {
                input.clone()
            };
            let empty_like = |of: &Tensor| {
                let layout = format(self.channels_last, *of.shape());
                g.tape()
                    .empty_as("convolution_backward", layout, of.dtype())
            };
            let for_input = || {
                needs[0].then(|| {
                    let out = empty_like(&input);
                    let (weight, g) = (self.formatted(weight), self.formatted(&g));
                    self.kernel(&[&g, &weight, &out]);
                    out
                })
            };
            let for_weight = || {
                needs[1].then(|| {
                    let (g, input) = (self.formatted(&g), self.formatted(&input));
                    let out = empty_like(weight);
                    self.kernel(&[&g, &input, &out]);
                    out
                })
            };
            // PyTorch's own depthwise kernel makes the weight's gradient first.
            if self.cudnn {
                let first = for_input();
                (first, for_weight())
            } else {
                let first = for_weight();
                (for_input(), first)
            }
        };
        let for_bias =
            needs[2].then(|| {
                let channels = g.size(1);
                let ones = (0..g.shape().len()).fold(*g.shape(), |all, i| {
                    if i == 1 { all } else { all.with(i, 1) }
                });
                g.sum_to(ones).shaped(Layout::contiguous([channels]))
            });
        [for_input, for_weight, for_bias]
    }

    /// The tensor in the memory format of the kernels: itself, or a copy.
    fn formatted(&self, t: &Tensor) -> Tensor {
        t.contiguous_in(self.channels_last)
    }

    fn kernel(&self, operands: &[&Tensor]) {
        let Some(first) = operands.first() else {
            return;
        };
        let tape = first.tape();
        if self.cudnn {
            let Machine {
                cudnn_workspace, ..
            } = tape.machine();
            tape.workspace("cudnn", cudnn_workspace);
        }
        let bytes: u64 = operands
            .iter()
            .map(|operand| operand.bytes())
            .fold(0, u64::saturating_add);
        let op = match (self.depthwise, self.channels_last) {
            (true, _) => "depthwise_convolution",
            (false, true) => "convolution_channels_last",
            (false, false) => "convolution",
        };
        tape.kernel(op, first.dtype(), self.flops, bytes as f64);
    }
}

fn format(channels_last: bool, shape: Dims) -> Layout {
    if channels_last && shape.len() >= 4 {
        Layout::channels_last(shape)
    } else {
        Layout::contiguous(shape)
    }
}

impl Tensor {
    /// `self.contiguous(memory_format)`, without history.
    pub(in crate::tape) fn contiguous_in(&self, channels_last: bool) -> Tensor {
        let wanted = format(channels_last, *self.shape());
        if self.layout().same_memory_order(&wanted) {
            self.clone()
        } else {
            self.copied("contiguous", wanted)
        }
    }
}

/// `Tensor::suggest_memory_format` (`is_channels_last_strides_2d_s4` in MemoryFormat.h).
pub(in crate::tape) fn suggests_channels_last(t: &Tensor) -> bool {
    let Layout { shape, strides } = t.layout();
    let n = shape.len();
    if !(4..=5).contains(&n) {
        return false;
    }
    let mut least = 0;
    for d in std::iter::once(1).chain((2..n).rev()).chain([0]) {
        let (size, stride) = (shape[d], strides[d]);
        if size == 0 || stride < least || (d == 0 && least == strides[1]) {
            return false;
        }
        least = stride.saturating_mul(size.max(1));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Tape;

    #[track_caller]
    fn check(input: &[u64], weight: &[u64], conv: Conv, expected: &[u64]) {
        let out = conv.output(&Dims::new(input), &Dims::new(weight));
        assert_eq!(out, Dims::new(expected));
    }

    #[test]
    fn output_sizes_follow_torch() {
        let conv = Conv::stride(2).padded(3);
        check(&[8, 3, 224, 224], &[64, 3, 7, 7], conv, &[8, 64, 112, 112]);
        check(
            &[8, 3, 336, 336],
            &[96, 3, 14, 14],
            Conv::stride(14),
            &[8, 96, 24, 24],
        );
        let up = Conv {
            transposed: Some(0),
            ..Conv::stride(2)
        };
        check(&[1, 64, 32, 32], &[64, 32, 2, 2], up, &[1, 32, 64, 64]);
        check(
            &[2, 80, 3000],
            &[768, 80, 3],
            Conv::stride(1).padded(1),
            &[2, 768, 3000],
        );
    }

    #[test]
    fn ambiguous_strides_are_not_channels_last() {
        let tape = Tape::new(Machine::default());
        let lies = |layout| suggests_channels_last(&tape.empty_as("x", layout, DType::F32));
        assert!(lies(Layout::channels_last([8, 64, 1, 1])));
        assert!(!lies(Layout::contiguous([8, 64, 1, 1])));
        assert!(!lies(Layout::channels_last([8, 1, 1, 1])));
        assert!(lies(Layout::channels_last([8, 3, 4, 4])));
        assert!(!lies(Layout::contiguous([8, 3, 4, 4])));
    }
}
