//! Images as windows and back, and the merging of patches between stages.

use crate::nets::Cx;
use crate::tape::Tensor;
use headroom_base::units::RoundUp;

/// `window_partition`.
pub(crate) fn window_partition(x: &Tensor, window: u64) -> Tensor {
    let (b, h, w, c) = (x.size(0), x.size(1), x.size(2), x.size(3));
    let (down, across) = (h / window, w / window);
    x.view(&[b, down, window, across, window, c])
        .transpose(2, 3)
        .contiguous()
        .view(&[b * down * across, window, window, c])
}

/// `window_reverse`.
pub(crate) fn window_reverse(windows: &Tensor, window: u64, side: u64) -> Tensor {
    let (n, c) = (side / window, windows.size(3));
    let b = windows.size(0) / (n * n).max(1);
    windows
        .view(&[b, n, n, window, window, c])
        .transpose(2, 3)
        .contiguous()
        .view(&[b, side, side, c])
}

/// `SwinPatchMerging`: four neighbours become one with twice the channels, in the second generation with the norm last.
pub(crate) fn merge_patches(cx: &Cx, x: &Tensor, side: u64, second: bool) -> Tensor {
    let (b, c) = (x.size(0), x.size(2));
    let mut grid = x.view(&[b, side, side, c]);
    let even = side.round_up(2);
    if even > side {
        grid = grid.pad_to(&[b, even, even, c]);
    }
    let mut merged = {
        let [first, rest @ ..] = [0, 1, 2, 3].map(|_: u8| grid.every_second(1).every_second(2));
        Tensor::cat(&first, &rest.each_ref(), -1)
    };
    merged = merged.view(&[b, (even / 2) * (even / 2), 4 * c]);
    if second {
        merged = cx.linear("reduction", &merged, 2 * c, false);
        return cx.layer_norm("norm", &merged);
    }
    let start = cx.tape.construction_point();
    merged = cx.layer_norm("norm", &merged);
    let normed = cx.tape.construction_point();
    merged = cx.linear("reduction", &merged, 2 * c, false);
    cx.tape.construct_here(start, normed);
    merged
}
