//! Interpolation between grid sizes.

use super::super::{Layout, Tensor, borrowing, grads};
use super::conv::suggests_channels_last;

impl Tensor {
    /// `F.interpolate(self, size)` of an image, nearest, bilinear or bicubic: saves nothing. Autocast runs it in fp32.
    pub fn interpolate(&self, height: u64, width: u64) -> Tensor {
        let input = self.autocast_to_fp32();
        let from = *input.shape();
        let channels_last = suggests_channels_last(&input);
        let layout = move |shape| {
            if channels_last {
                Layout::channels_last(shape)
            } else {
                Layout::contiguous(shape)
            }
        };
        let out = input.tape().empty_as(
            "interpolate",
            layout(from.with(2, height).with(3, width)),
            input.dtype(),
        );
        let bytes = input.bytes() as f64 + out.bytes() as f64;
        let flops = out.numel() as f64;
        input
            .tape()
            .kernel("interpolate", input.dtype(), flops, bytes);
        out.from_op(&[&input], |_| {
            borrowing(move |g| {
                let dense = g.contiguous_in(channels_last);
                let out = g
                    .tape()
                    .empty_as("interpolate_backward", layout(from), dense.dtype());
                g.tape()
                    .kernel("interpolate_backward", g.dtype(), flops, bytes);
                drop(dense);
                grads([Some(out)])
            })
        })
    }

    /// `F.interpolate(self, size, mode="linear")` of `[B, C, L]`: saves nothing.
    pub fn interpolate_linear(&self, length: u64) -> Tensor {
        let from = *self.shape();
        let tape = self.tape();
        let out = tape.empty("interpolate", from.with(2, length), self.dtype());
        let bytes = self.bytes() as f64 + out.bytes() as f64;
        tape.kernel("interpolate", self.dtype(), out.numel() as f64, bytes);
        out.from_op(&[self], |_| {
            borrowing(move |g| {
                let dense = g.contiguous_in(false);
                let out = g.tape().empty("interpolate_backward", from, g.dtype());
                g.tape()
                    .kernel("interpolate_backward", g.dtype(), 0.0, bytes);
                drop(dense);
                grads([Some(out)])
            })
        })
    }
}
