//! The lines of the table: each part with its size and its share.

use crate::fits::gauge::{Piece, pieces};
use headroom_base::units::{Bytes, UnitStyle};
use headroom_core::estimate::Estimate;

/// One line of the table, as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub piece: Piece,
    pub bytes: String,
    pub share: String,
}

pub fn lines(estimate: &Estimate, units: UnitStyle) -> Vec<Line> {
    let whole = estimate.device.expected;
    pieces(estimate)
        .into_iter()
        .map(|(piece, bytes)| Line {
            piece,
            bytes: bytes.show(units),
            share: share(bytes, whole),
        })
        .collect()
}

/// A share in percent.
pub fn share(part: Bytes, whole: Bytes) -> String {
    match part.get() as f64 / whole.get().max(1) as f64 * 100.0 {
        percent if percent > 0.0 && percent < 0.1 => "< 0.1 %".into(),
        percent if percent < 9.95 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}
