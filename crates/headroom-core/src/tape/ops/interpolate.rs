//! Interpolation between grid sizes.

use super::super::{Layout, Saved, Tensor, borrowing, grads};
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

    /// `F.grid_sample(self, grid)` of an image `[N, C, h, w]` at places `[N, H, W, 2]`: saves both (`grid_sampler_2d_backward` in
    /// native/cuda/GridSampler.cpp). Autocast runs it in the wider type.
    pub fn grid_sample(&self, grid: &Tensor) -> Tensor {
        let wide = self.dtype().promote(grid.dtype());
        let (input, grid) = (self.to(wide), grid.to(wide));
        let shape = input.shape().with(2, grid.size(1)).with(3, grid.size(2));
        let out = input.tape().empty("grid_sampler", shape, wide);
        let bytes = out.bytes() as f64 * 5.0 + grid.bytes() as f64;
        let flops = out.numel() as f64 * 8.0;
        input.tape().kernel("grid_sampler", wide, flops, bytes);
        out.from_op(&[&input, &grid], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            let kept = [input.save(), grid.save()];
            borrowing(move |g| {
                let [input, grid] = kept.each_ref().map(Saved::unpack);
                let of = |needed: bool, x: &Tensor| {
                    needed.then(|| {
                        g.tape()
                            .empty("grid_sampler_backward", *x.shape(), x.dtype())
                    })
                };
                let both = [of(needs[0], &input), of(true, &grid)];
                g.tape()
                    .kernel("grid_sampler_backward", wide, 2.0 * flops, 2.0 * bytes);
                let [for_input, for_grid] = both;
                grads([for_input, for_grid.filter(|_| needs[1])])
            })
        })
    }

    /// `torchvision.ops.roi_align(self, rois, side)` of `[K, 5]` regions: saves the regions; autocast runs it in fp32 and returns
    /// what it was given (torchvision/csrc/ops/autocast/roi_align_kernel.cpp).
    pub fn roi_align(&self, rois: &Tensor, side: u64) -> Tensor {
        let (given, from) = (self.dtype(), *self.shape());
        let input = self.autocast_to_fp32();
        let shape = [rois.size(0), self.size(1), side, side];
        let out = input.tape().empty("roi_align", shape, input.dtype());
        let bytes = out.bytes() as f64 * 17.0;
        let flops = out.numel() as f64 * 32.0;
        input
            .tape()
            .kernel("roi_align", input.dtype(), flops, bytes);
        let out = out.from_op(&[&input], |_| {
            let kept = rois.save();
            borrowing(move |g| {
                let dense = g.contiguous_in(false);
                let _rois = kept.unpack();
                let out = g.tape().empty("roi_align_backward", from, g.dtype());
                g.tape()
                    .kernel("roi_align_backward", g.dtype(), flops, bytes);
                drop(dense);
                grads([Some(out)])
            })
        });
        drop(input);
        out.to(given)
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
