//! Batch norm in training: cuDNN's kernels and PyTorch's own.

use super::super::kernels::{Accumulator, Reduction, aligned};
use super::super::{DType, Grads, Layout, Needs, Saved, Tape, Tensor, borrowing, grads};
use super::conv::suggests_channels_last;

impl Tensor {
    /// `F.batch_norm(self, running_mean, running_var, weight, bias, training=True)`: saves the input and two numbers
    /// a channel.
    pub fn batch_norm(&self, weight: &Tensor, bias: &Tensor) -> Tensor {
        let cudnn = uses_cudnn(self, weight);
        let channels_last = suggests_channels_last(self);
        let input = if cudnn {
            self.contiguous_in(channels_last)
        } else {
            self.clone()
        };
        let kernels = Kernels {
            cudnn,
            channels_last,
        };
        let [out, mean, deviation] = kernels.forward(&input, weight);
        out.from_op(&[&input, weight, bias], |needs: &Needs| {
            let needs = [needs.input(0), needs.input(1), needs.input(2)];
            let kept = [input.save(), weight.save(), mean.save(), deviation.save()];
            borrowing(move |g| kernels.backward(&kept, needs, g))
        })
    }
}

impl Tensor {
    /// `F.batch_norm(…, training=False)`: PyTorch's own kernels, which save the input for the factors' gradients.
    pub fn running_batch_norm(&self, weight: &Tensor, bias: &Tensor) -> Tensor {
        let layout = self.layout().preserved();
        let out = self.tape().empty_as("batch_norm", layout, self.dtype());
        work(&self.tape(), self, 1.0);
        out.from_op(&[self, weight, bias], |needs: &Needs| {
            let needs = [needs.input(0), needs.input(1), needs.input(2)];
            let kept = [self.save(), weight.save()];
            borrowing(move |g| {
                let [input, weight] = kept.each_ref().map(Saved::unpack);
                let tape = g.tape();
                let vector = || tape.empty("batch_norm_backward", *weight.shape(), weight.dtype());
                let sums = (needs[1] || needs[2]).then(|| [vector(), vector()]);
                let for_input = needs[0].then(|| {
                    let layout = input.layout().preserved();
                    tape.empty_as("batch_norm_backward", layout, input.dtype())
                });
                work(&tape, &input, 3.0);
                let [for_weight, for_bias] = match sums {
                    Some([first, second]) => [Some(first), Some(second)],
                    None => [None, None],
                };
                drop((input, weight));
                grads([
                    for_input,
                    for_weight.filter(|_| needs[1]),
                    for_bias.filter(|_| needs[2]),
                ])
            })
        })
    }
}

/// `_batch_norm_impl_index` in Normalization.cpp; cuDNN does not take bf16 here.
fn uses_cudnn(input: &Tensor, weight: &Tensor) -> bool {
    input.dtype() != DType::BF16
        && weight.dtype() != DType::BF16
        && (input.dtype() != DType::F16 || weight.dtype() == DType::F32)
        && input.shape().len() >= 3
        && input.size(0) <= 880_801
}

#[derive(Clone, Copy)]
pub(super) struct Kernels {
    cudnn: bool,
    channels_last: bool,
}

impl Kernels {
    /// Those that run on a training input.
    pub(super) fn of(input: &Tensor, weight: &Tensor) -> Self {
        Self {
            cudnn: uses_cudnn(input, weight),
            channels_last: suggests_channels_last(input),
        }
    }

    /// The result, the means and the deviations, of an input as these kernels take it.
    pub(super) fn forward(self, input: &Tensor, weight: &Tensor) -> [Tensor; 3] {
        let tape = input.tape();
        let layout = if self.cudnn {
            memory_format(input, self.channels_last)
        } else {
            input.layout().preserved()
        };
        let out = tape.empty_as("batch_norm", layout, input.dtype());
        let channels = [input.size(1)];
        let statistics_type = if self.cudnn {
            weight.dtype()
        } else {
            input.dtype().accumulate()
        };
        let [mean, deviation] =
            [(), ()].map(|()| tape.empty("batch_norm", channels, statistics_type));
        if !self.cudnn && self.channels_last {
            Staging::of(input, 4).take(&tape);
        } else if !self.cudnn && !input.is_contiguous() {
            let wide = (input.dtype() == DType::BF16)
                .then(|| tape.empty_as("batch_norm", input.layout().preserved(), DType::F32));
            tape.reduce_workspace(general_statistics(input));
            drop(wide);
        }
        work(&tape, input, 2.0);
        [out, mean, deviation]
    }

    fn backward(self, kept: &[Saved; 4], needs: [bool; 3], g: &Tensor) -> Grads {
        let [input, weight, mean, deviation] = [0, 1, 2, 3].map(|i: usize| kept[i].unpack());
        let all = self.gradients(&input, &weight, needs, g);
        drop((input, weight, mean, deviation));
        grads(all)
    }

    pub(super) fn gradients(
        self,
        input: &Tensor,
        weight: &Tensor,
        needs: [bool; 3],
        g: &Tensor,
    ) -> [Option<Tensor>; 3] {
        let tape = g.tape();
        let for_input = || {
            tape.empty_as(
                "batch_norm_backward",
                memory_format(input, self.channels_last),
                input.dtype(),
            )
        };
        let vector = |dtype| tape.empty("batch_norm_backward", [input.size(1)], dtype);
        work(&tape, input, 3.0);
        if self.cudnn {
            // `cudnn_batch_norm_backward` always makes all three.
            let g = g.contiguous_in(self.channels_last);
            let all = [for_input(), vector(weight.dtype()), vector(weight.dtype())].map(Some);
            drop(g);
            all
        } else if self.channels_last {
            // `batch_norm_backward_reduce`, then `batch_norm_backward_elemt`.
            let sums = [(), ()].map(|()| vector(input.dtype().accumulate()));
            let vectors = [needs[1], needs[2]].map(|needed| needed.then(|| vector(weight.dtype())));
            // A gradient that lies otherwise takes the general reductions.
            if suggests_channels_last(g) {
                Staging::of(input, 2).take(&tape);
            }
            let first = needs[0].then(for_input);
            drop(sums);
            let [second, third] = vectors;
            [first, second, third]
        } else {
            let first = needs[0].then(for_input);
            let [second, third] =
                [needs[1], needs[2]].map(|needed| needed.then(|| vector(weight.dtype())));
            [first, second, third]
        }
    }
}

/// `batch_norm_mean_var` in aten/src/ATen/native/cuda/Normalization.cu: an input that lies neither in row-major order nor with
/// its channels last goes through `var_mean`, which takes bf16 as fp32 (`make_reduction` in ReduceOpsUtils.h).
fn general_statistics(input: &Tensor) -> Reduction {
    let outputs = input.size(1).max(1);
    Reduction {
        outputs,
        inputs_per_output: input.numel() / outputs,
        innermost: input.layout().innermost() != Some(1),
        flat: false,
        dtype: input.dtype(),
        accumulator: Accumulator::Moments,
        aligned: aligned(input.layout()),
    }
}

fn memory_format(t: &Tensor, channels_last: bool) -> Layout {
    if channels_last {
        Layout::channels_last(*t.shape())
    } else {
        Layout::contiguous(*t.shape())
    }
}

fn work(tape: &Tape, input: &Tensor, passes: f64) {
    let bytes = (passes + 1.0) * input.bytes() as f64;
    tape.kernel(
        "batch_norm",
        input.dtype(),
        4.0 * input.numel() as f64,
        bytes,
    );
}

/// The buffers with which the channels-last kernels share one reduction between thread blocks
/// (`flexible_launch_configs` in aten/src/ATen/native/cuda/Normalization.cuh).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Staging {
    bytes: u64,
    semaphores: u64,
}

impl Staging {
    fn of(input: &Tensor, values: u64) -> Self {
        let channels = input.size(1).max(1);
        Self::config(input.numel() / channels, channels, values)
    }

    fn config(reduction: u64, channels: u64, values: u64) -> Self {
        const THREADS: u64 = 512;
        const PER_THREAD: u64 = 16;
        let power = |n: u64| 1_u64 << n.max(1).ilog2();
        let mut x = power(channels).min(32);
        let y = power(reduction.div_ceil(PER_THREAD)).min(THREADS / x);
        if x * y != THREADS {
            x = power(channels).min(THREADS / y);
        }
        let rows = reduction.div_ceil(y.saturating_mul(PER_THREAD)).min(128);
        if rows < 8 {
            return Self {
                bytes: 0,
                semaphores: 0,
            };
        }
        Self {
            bytes: [values, channels, rows]
                .into_iter()
                .fold(DType::F32.bytes(), u64::saturating_mul),
            semaphores: DType::I32.bytes().saturating_mul(channels.div_ceil(x)),
        }
    }

    fn take(self, tape: &Tape) {
        if self.bytes > 0 {
            let data = tape.empty("batch_norm_staging", [self.bytes], DType::U8);
            tape.workspace("batch_norm_staging", self.semaphores);
            drop(data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(shape: [u64; 4], values: u64, bytes: u64, semaphores: u64) {
        let [n, c, h, w] = shape;
        let expected = Staging { bytes, semaphores };
        assert_eq!(Staging::config(n * h * w, c, values), expected);
    }

    #[test]
    fn channels_last_reductions_stage_what_the_kernels_stage() {
        // Read from the allocator while PyTorch 2.15 normalised bf16 images: forward stages four values, backward two.
        check([8, 64, 112, 112], 4, 131_072, 8);
        check([8, 64, 112, 112], 2, 65_536, 8);
        check([128, 256, 14, 14], 4, 401_408, 32);
        check([64, 960, 7, 7], 4, 199_680, 120);
        check([8, 512, 7, 7], 4, 0, 0);
    }
}
