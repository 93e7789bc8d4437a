//! Pooling over windows and over full planes.

use super::super::{DType, Dims, Grads, Layout, Tensor, borrowing, grads};
use super::conv::{Conv, suggests_channels_last};

impl Tensor {
    /// `F.max_pool2d(self, kernel, ..)`: saves its input and where each maximum was, as 64-bit indices.
    pub fn max_pool2d(&self, kernel: u64, window: Conv) -> Tensor {
        let shape = window.windows(self.shape(), kernel);
        let layout = self.layout_of(shape);
        let input = self.contiguous_in(suggests_channels_last(self));
        let tape = self.tape();
        let out = tape.empty_as("max_pool2d", layout, self.dtype());
        // A compiled graph keeps where in its window each maximum was (`_low_memory_max_pool_with_offsets`).
        let compiles = tape.compiles();
        let width = if compiles { DType::U8 } else { DType::I64 };
        let indices = tape.empty_as("max_pool2d", layout, width);
        drop(input);
        pooled("max_pool2d", self, &out);
        out.from_op(&[self], |_| {
            let kept = [self.save(), indices.save()];
            borrowing(move |g| {
                let input = kept[0].unpack();
                let indices = kept[1].unpack();
                input_gradient(g, &input, "max_pool2d_backward", indices)
            })
        })
    }

    /// `F.avg_pool2d(self, kernel, ..)`: saves its input.
    pub fn avg_pool2d(&self, kernel: u64, window: Conv) -> Tensor {
        let shape = window.windows(self.shape(), kernel);
        self.averaged(shape)
    }

    /// `F.avg_pool2d` with windows that leave so many rows and columns: saves its input.
    pub fn avg_pool2d_to(&self, height: u64, width: u64) -> Tensor {
        self.averaged(self.shape().with(2, height).with(3, width))
    }

    /// `F.adaptive_avg_pool2d(self, size)`: a mean over the plane where one element is requested.
    pub fn adaptive_avg_pool2d(&self, size: u64) -> Tensor {
        if size == 1 {
            let mean = self.mean(&[-1, -2]);
            if suggests_channels_last(self) {
                return mean.restrided();
            }
            return mean;
        }
        self.averaged(self.shape().with(2, size).with(3, size))
    }

    fn averaged(&self, shape: Dims) -> Tensor {
        let input = self.contiguous_in(suggests_channels_last(self));
        let out = self
            .tape()
            .empty_as("avg_pool2d", self.layout_of(shape), self.dtype());
        drop(input);
        pooled("avg_pool2d", self, &out);
        out.from_op(&[self], |_| {
            let kept = self.save();
            borrowing(move |g| {
                let input = kept.unpack();
                input_gradient(g, &input, "avg_pool2d_backward", ())
            })
        })
    }

    /// `as_strided` to the strides of channels last, which moves nothing; its backward writes a new tensor.
    fn restrided(&self) -> Tensor {
        self.alias(Layout::channels_last(*self.shape()))
            .from_op(&[self], |_| {
                borrowing(|g| {
                    let zeros = g.copied("new_zeros", Layout::contiguous(*g.shape()));
                    grads([Some(zeros)])
                })
            })
    }

    /// `self.to(memory_format=torch.channels_last)` of a tensor without history.
    pub fn to_channels_last(&self) -> Tensor {
        self.copied("to", Layout::channels_last(*self.shape()))
    }

    /// A dense layout in this tensor's memory format.
    fn layout_of(&self, shape: Dims) -> Layout {
        if suggests_channels_last(self) {
            Layout::channels_last(shape)
        } else {
            Layout::contiguous(shape)
        }
    }
}

/// The gradient of a pooling's input, in the input's memory format; `held` is what else backward unpacked.
fn input_gradient<T>(g: &Tensor, input: &Tensor, op: &'static str, held: T) -> Grads {
    let format = suggests_channels_last(input);
    let out = g
        .tape()
        .empty_as(op, input.layout_of(*input.shape()), input.dtype());
    let g = g.contiguous_in(format);
    pooled(op, &g, &out);
    drop((g, held));
    grads([Some(out)])
}

fn pooled(op: &'static str, from: &Tensor, to: &Tensor) {
    let wide = from.numel().max(to.numel());
    let bytes = from.bytes() as f64 + to.bytes() as f64;
    from.tape().kernel(op, from.dtype(), wide as f64, bytes);
}
