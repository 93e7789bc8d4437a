//! Where patches are: rows and columns for rotation, windows, and a learned table that is resampled to each picture.

use super::{Batch, Kind, MOST_PIECES, VisionTransformer};
use crate::nets::Cx;
use crate::tape::{DType, Tensor};

/// The places of a table that are mixed for each patch, and the shares they have.
pub(super) struct Interpolation {
    places: Tensor,
    shares: Tensor,
}

/// `get_vision_interpolation_indices_and_weights`: four places a patch, two along each side.
pub(super) fn interpolation(pixels: &Tensor) -> Interpolation {
    let rows = pixels.size(0);
    let make = |op, width: u64, dtype| pixels.constant(op, &[rows, width], dtype);
    // Row and column of each patch, and two places with their shares along each side.
    let before: Vec<Tensor> = (0..11).map(|_| make("places", 1, DType::I64)).collect();
    let sides: Vec<Tensor> = (0..2)
        .flat_map(|_| [make("taps", 2, DType::I64), make("weights", 2, DType::F32)])
        .collect();
    let places = make("places", 4, DType::I64);
    let shares = make("weights", 4, DType::F32);
    drop((before, sides));
    Interpolation { places, shares }
}

impl VisionTransformer {
    /// The patches with what the table has for their places.
    pub(super) fn with_places(
        &self,
        cx: &Cx,
        hidden: Tensor,
        places: u64,
        taps: &Interpolation,
    ) -> Tensor {
        let read = cx.embedding("pos_embed", &taps.places, places, self.hidden);
        let mut mixed = read.pipe(|read| read.mul(&taps.shares.unsqueeze(-1)));
        mixed = mixed.sum(&[1]).squeeze(1);
        let narrow = mixed.to(hidden.dtype());
        hidden.add(&narrow)
    }

    /// `get_vision_position_ids`: the row and column of each patch, picture by picture.
    pub(super) fn places(cx: &Cx, grids: &Batch) -> Tensor {
        let make = |shape: &[u64]| cx.tape.empty("places", shape, DType::I64);
        if grids.count() > MOST_PIECES as u64 {
            return make(&[grids.total(), 2]);
        }
        let merge = make(&[1]);
        let mut kept = Vec::new();
        let mut last = None;
        for [height, width] in grids.iter() {
            let count = height * width;
            let mut rows = make(&[height]);
            let mut columns = make(&[width]);
            drop(last.take());
            rows = {
                let flat = make(&[count]);
                drop(rows);
                flat
            };
            columns = {
                let flat = make(&[count]);
                drop(columns);
                flat
            };
            let both = make(&[count, 2]);
            kept.push(make(&[count, 2]));
            drop(both);
            last = Some((rows, columns));
        }
        let all = make(&[grids.total(), 2]);
        drop((merge, kept, last));
        all
    }

    /// How many patches each window has, where pictures are cut into them.
    pub(super) fn windows(&self, grids: &Batch) -> Vec<u64> {
        let Kind::Windowed { side: window, .. } = self.kind else {
            return Vec::new();
        };
        // As many complete windows as fit: only their total and the size of one matter.
        let most = (MOST_PIECES * MOST_PIECES) as u64;
        if grids.total() / window.pow(2).max(1) > most || grids.count() > most {
            return vec![window * window; MOST_PIECES + 1];
        }
        let mut all = Vec::new();
        for [height, width] in grids.iter() {
            let [down, across] = [height, width].map(|side| side.div_ceil(window));
            let cut = |side: u64, i: u64| window.min(side - i * window);
            for row in 0..down {
                all.extend((0..across).map(|column| cut(height, row) * cut(width, column)));
            }
        }
        all
    }

    /// `permute_input_for_window_attn`; the new order is on the host.
    pub(super) fn by_windows(&self, x: &Tensor) -> Tensor {
        if !matches!(self.kind, Kind::Windowed { .. }) {
            return x.clone();
        }
        let (rows, width, square) = (x.size(0), x.size(1), self.merge * self.merge);
        let grouped = x.view(&[rows / square, square, width]);
        grouped.rows_by_list(rows / square).view(&[rows, width])
    }

    /// Cosines and sines `[N, D]` in fp32.
    pub(super) fn tables(&self, cx: &Cx, places: &Tensor) -> [Tensor; 2] {
        cx.tape.no_grad(|| {
            let quarter = self.hidden / self.heads / 4;
            let frequencies = cx.buffer("inv_freq", [quarter], DType::F32);
            cx.buffer("original_inv_freq", [quarter], DType::F32);
            let angles = places
                .unsqueeze(-1)
                .to(DType::F32)
                .pipe(|places| places.mul(&frequencies));
            let cos = angles.cos().pipe(Tensor::mul_scalar);
            let sin = angles.sin().pipe(Tensor::mul_scalar);
            [cos, sin].map(|table| {
                let (rows, columns) = (table.select(1), table.select(1));
                let both = Tensor::cat(&rows, &[&columns], -1);
                Tensor::cat(&both, &[&both], -1)
            })
        })
    }
}
