//! Writing one tensor's elements where a mask says so.

use super::super::{DType, Tensor, borrowing, grads};
use headroom_base::units::RoundUp;

impl Tensor {
    /// `self.masked_scatter(mask, source)` with a mask that is expanded to this shape (`masked_scatter_cuda` in IndexKernel.cpp).
    pub fn masked_scatter(&self, mask: &Tensor, source: &Tensor) -> Tensor {
        let (shape, source_shape, dtype) = (*self.shape(), *source.shape(), self.dtype());
        let out = self.map("masked_scatter");
        let tape = self.tape();
        let prefix_sum = tape.empty("masked_scatter", shape, DType::I64);
        let whole_mask = tape.empty("masked_scatter", shape, DType::Bool);
        tape.workspace("masked_scatter", scan_workspace(self.numel()));
        drop((whole_mask, prefix_sum));
        out.from_op(&[self, source], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            let mask = mask.save();
            borrowing(move |g| {
                let mask = mask.unpack();
                let for_self = needs[0].then(|| g.zip_to(&mask, "masked_fill", dtype));
                let for_source = needs[1].then(|| {
                    // The mask is materialized to be counted and read.
                    let whole = g.tape().empty("masked_select", shape, DType::Bool);
                    let count = g.tape().empty("masked_select", [0; 0], DType::I32);
                    let elements = whole.numel();
                    if elements > 4096 {
                        // cub's `DeviceReduce`: eight bytes for each of five blocks on a multiprocessor.
                        let sums = 40 * g.tape().machine().multiprocessors;
                        let scratch = sums.round_up(256) + 255;
                        g.tape().workspace("masked_select", scratch);
                    }
                    g.tape()
                        .workspace("masked_select", selection_workspace(elements));
                    drop((count, whole));
                    // What the mask selects is joined to zeros where it is shorter than the source.
                    let selected = g.tape().empty("masked_select", source_shape, dtype);
                    let joined = selected.map("cat");
                    drop(selected);
                    joined
                });
                drop(mask);
                grads([for_self, for_source])
            })
        })
    }
}

impl Tensor {
    /// `self.masked_select(mask)` with a mask that is expanded to this shape and true at so many places: saves it
    /// (`masked_select_backward` in FunctionsManual.cpp scatters into zeros).
    pub fn masked_select(&self, mask: &Tensor, count: u64) -> Tensor {
        let (shape, dtype) = (*self.shape(), self.dtype());
        let tape = self.tape();
        let whole_mask = tape.empty("masked_select", shape, DType::Bool);
        let out = tape.empty("masked_select", [count], dtype);
        tape.workspace("masked_select", selection_workspace(self.numel()));
        drop(whole_mask);
        tape.kernel("masked_select", dtype, 0.0, 2.0 * out.bytes() as f64);
        out.from_op(&[self], |_| {
            let kept = mask.save();
            borrowing(move |g| {
                let _mask = kept.unpack();
                let tape = g.tape();
                let zeros = tape.empty("new_zeros", shape, g.dtype());
                let prefix_sum = tape.empty("masked_scatter", shape, DType::I64);
                let whole_mask = tape.empty("masked_scatter", shape, DType::Bool);
                tape.workspace("masked_scatter", scan_workspace(zeros.numel()));
                drop((whole_mask, prefix_sum));
                grads([Some(zeros)])
            })
        })
    }
}

/// cub's `DeviceSelect`: sixteen bytes for each tile of 4608 elements and for the 32 before the first.
fn selection_workspace(count: u64) -> u64 {
    const TILE: u64 = 4608;
    (16 * (count.div_ceil(TILE) + 32)).round_up(256) + 255
}

/// cub's `DeviceScan`: sixteen bytes for each tile of 896 elements and for the 32 before the first.
fn scan_workspace(count: u64) -> u64 {
    const TILE: u64 = 896;
    (16 * (count.div_ceil(TILE) + 32)).round_up(256) + 511
}
