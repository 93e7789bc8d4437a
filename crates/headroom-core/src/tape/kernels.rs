//! Scratch memory that kernels take while they run.

use super::{DType, Layout, Machine, Phase, Tape};

impl Tape {
    /// cuBLAS: taken and given back with each call since torch 2.5; before, the first call's stays.
    /// `getChosenWorkspaceSize` in aten/src/ATen/cuda/CublasHandlePool.cpp: 4096 KiB × 2 + 16 KiB × 8, from sm90 on 4096 KiB × 8.
    pub fn cublas_workspace(&self) {
        let bytes = if self.machine().capability.0 >= 9 {
            32 << 20
        } else {
            (8 << 20) + (128 << 10)
        };
        if !self.machine().torch.keeps_cublas_workspace {
            self.workspace("cublas", bytes);
            return;
        }
        if self.0.ambient.stopped.get() {
            return;
        }
        // A handle belongs to a thread, and backward has its own.
        let thread = usize::from(self.0.ambient.phase.get() == Phase::Backward);
        let mut kept = self.0.cublas.get();
        if let Some(place) = kept.get_mut(thread).filter(|place| place.is_none()) {
            let storage = || self.0.allocate("cublas", bytes, super::Category::Workspace);
            // A block of the whole run, whichever layer requested it first.
            *place = self.setting_up(storage);
            self.0.cublas.set(kept);
        }
    }

    /// cuBLASLt, which `addmm` with a bias vector uses: 1024 KiB on every GPU (`_parseChosenWorkspaceSize` in
    /// aten/src/ATen/cuda/CUDABlas.cpp).
    pub fn cublaslt_workspace(&self) {
        self.workspace("cublasLt", 1 << 20);
    }

    /// The buffers with which thread blocks share one reduction.
    pub(super) fn reduce_workspace(&self, reduction: Reduction) {
        let (parts, each) = reduction.parts();
        for _ in 0..parts {
            if let Some((buffer, semaphores)) = each.shared_memory(self.machine()) {
                let buffer = self
                    .0
                    .allocate("reduce", buffer, super::Category::Workspace);
                self.workspace("reduce", semaphores);
                self.0.release(buffer);
            }
        }
    }
}

/// A reduction as `setReduceConfig` of aten/src/ATen/native/cuda/Reduce.cuh sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduction {
    pub outputs: u64,
    pub inputs_per_output: u64,
    /// The reduced dimension is the innermost.
    pub innermost: bool,
    /// Every dimension is reduced, so that the kernel sees one.
    pub flat: bool,
    pub dtype: DType,
    pub accumulator: Accumulator,
    /// The outputs that a thread can read as one vector, by the input's strides: 4, 2 or 1.
    pub aligned: u64,
}

/// `get_output_vec_size` of Reduce.cuh, for an input that starts where memory does.
pub(super) fn aligned(layout: &Layout) -> u64 {
    let innermost = layout.innermost();
    let dims = layout.shape.iter().zip(layout.strides.iter()).enumerate();
    let others = dims.filter(|(dim, (size, _))| Some(*dim) != innermost && **size > 1);
    let fits = |width: &u64| {
        let mut others = others.clone();
        others.all(|(_, (_, stride))| stride.is_multiple_of(*width))
    };
    [4, 2].into_iter().find(fits).unwrap_or(1)
}

/// What a thread of a reduction accumulator along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accumulator {
    /// One value of the type that sums are taken in.
    Value,
    /// `WelfordData` of aten/src/ATen/native/SharedReduceOps.h: a mean, a sum of squares and two counts.
    Moments,
}

impl Accumulator {
    fn bytes(self, dtype: DType) -> u64 {
        let value = dtype.accumulate().bytes();
        match self {
            Self::Value => value,
            // The second count is a value; the first, of 32 bits, is padded to one.
            Self::Moments => 4 * value,
        }
    }

    /// Values that a thread reads at once (`vt0`, which `std_var_kernel` of ReduceMomentKernel.cu sets).
    fn reads(self) -> u64 {
        match self {
            Self::Value => 4,
            Self::Moments => 2,
        }
    }
}

impl Reduction {
    /// A tensor beyond 32-bit indexing is halved along its longest stride until it is not
    /// (`with_32bit_indexing` of aten/src/ATen/TensorIterator.cpp): how many kernels run, and what each of them does.
    fn parts(self) -> (u64, Self) {
        const MOST_PARTS: u64 = 64;
        let mut each = self;
        let mut parts = 1;
        let bytes = |part: &Self| {
            let count = part.outputs.saturating_mul(part.inputs_per_output);
            count.saturating_mul(part.dtype.bytes())
        };
        while bytes(&each) > i32::MAX as u64 && parts < MOST_PARTS {
            parts *= 2;
            let longest = if each.innermost && !each.flat {
                &mut each.outputs
            } else {
                &mut each.inputs_per_output
            };
            *longest = longest.div_ceil(2);
        }
        (parts, each)
    }

    /// Bytes of the global buffer and of the semaphores, where the work is shared between thread blocks.
    fn shared_memory(self, machine: Machine) -> Option<(u64, u64)> {
        const MAX_THREADS: u64 = 512;
        const WARP: u64 = 32;
        const MIN_VALUES: u64 = 16;
        const MAX_VALUES: u64 = 256;
        const THREADS_PER_MULTIPROCESSOR: u64 = 2048;
        let Self {
            outputs,
            inputs_per_output,
            innermost,
            flat,
            dtype,
            accumulator,
            aligned,
        } = self;
        if outputs == 0 || inputs_per_output == 0 {
            return None;
        }
        let (mut dim0, dim1) = if innermost {
            (inputs_per_output, outputs)
        } else {
            (outputs, inputs_per_output)
        };
        let mut output_vector = 1;
        if innermost && dim0 > 128 && flat {
            dim0 /= accumulator.reads();
        } else if !innermost {
            output_vector = [4, 2, 1]
                .into_iter()
                .find(|v| outputs.is_multiple_of(*v) && *v <= aligned)
                .unwrap_or(1);
            dim0 /= output_vector;
        }
        let threads = MAX_THREADS / output_vector;
        let power = |n: u64| {
            if n < threads {
                last_power_of_two(n)
            } else {
                threads
            }
        };
        let mut width = power(dim0).min(WARP);
        let height = power(dim1).min(threads / width);
        width = power(dim0).min(threads / height);
        let mut step_input = 1;
        let mut step_output = 1;
        if innermost {
            step_input *= width;
        } else {
            step_output *= width;
        }
        if inputs_per_output.div_ceil(step_input) < (height * 16).min(MAX_VALUES) {
            return None;
        }
        step_input *= height;
        let target = machine.multiprocessors * (THREADS_PER_MULTIPROCESSOR / (width * height));
        let grid = (outputs / output_vector).div_ceil(step_output);
        let values = inputs_per_output.div_ceil(step_input);
        if values < MAX_VALUES || grid > target {
            return None;
        }
        let blocks = target
            .div_ceil(grid)
            .min(values.div_ceil(MIN_VALUES))
            .max(values.div_ceil(MAX_VALUES));
        if blocks <= 1 {
            return None;
        }
        let mut buffer = accumulator
            .bytes(dtype)
            .saturating_mul(outputs)
            .saturating_mul(blocks);
        if !innermost {
            buffer = buffer.saturating_mul(width * output_vector);
        }
        Some((buffer, 4 * grid))
    }
}

fn last_power_of_two(n: u64) -> u64 {
    1 << n.max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(outputs: u64, inputs_per_output: u64, expected: Option<(u64, u64)>) {
        check_accumulating(Accumulator::Value, outputs, inputs_per_output, expected);
    }

    #[track_caller]
    fn check_accumulating(
        accumulator: Accumulator,
        outputs: u64,
        inputs_per_output: u64,
        expected: Option<(u64, u64)>,
    ) {
        let reduction = Reduction {
            outputs,
            inputs_per_output,
            innermost: false,
            flat: false,
            dtype: DType::BF16,
            accumulator,
            aligned: 4,
        };
        assert_eq!(reduction.shared_memory(Machine::default()), expected);
    }

    #[test]
    fn bias_gradients_allocate_as_the_kernel_does() {
        // Read from the allocator while PyTorch 2.15 summed a bf16 gradient over its rows, 108 multiprocessors.
        check(768, 8192, Some((50_331_648, 24)));
        check(2304, 8192, Some((113_246_208, 72)));
        check(3072, 8192, Some((113_246_208, 96)));
        check(2048, 1024, Some((16_777_216, 64)));
        check(2048, 512, None);
    }

    #[test]
    fn rows_of_odd_strides_are_taken_one_value_at_a_time() {
        // Read from the allocator while PyTorch 2.15 summed the first 256 of 283 bf16 columns over 32,768 rows.
        let (shape, strides) = ([32_768, 256].into(), [283, 1].into());
        let reduction = Reduction {
            outputs: 256,
            inputs_per_output: 32_768,
            innermost: false,
            flat: false,
            dtype: DType::BF16,
            accumulator: Accumulator::Value,
            aligned: aligned(&Layout { shape, strides }),
        };
        let taken = reduction.shared_memory(Machine::default());
        assert_eq!(taken, Some((1_769_472, 32)));
    }

    #[test]
    fn moments_of_innermost_channels_allocate_as_the_kernel_does() {
        // Read from the allocator while PyTorch 2.15 normalised 448 series of 126 patches, transposed: 56,448 values for each
        // of 128 channels.
        check_accumulating(Accumulator::Moments, 128, 56_448, Some((231_211_008, 4)));
    }
}
