//! Sizes of steps as one number each: a length, or both sides of an image.

use serde::{Deserialize, Deserializer};

use super::config::Side;

/// Where the width of an image that is no square begins; the height is below it.
const WIDTH: u32 = 32;

/// The recorded sizes.
pub(super) fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
    let sizes = Vec::<Side>::deserialize(from)?;
    Ok(sizes.into_iter().map(packed).collect())
}

fn packed(size: Side) -> u64 {
    match size {
        Side::Number(size) => size,
        Side::Image([height, width]) if height == width => height,
        Side::Image([height, width]) => height | width << WIDTH,
    }
}

/// The size, and an image's width where that differs.
pub(super) fn sides(size: u64) -> (u64, Option<u64>) {
    let width = size >> WIDTH;
    (size & ((1 << WIDTH) - 1), (width > 0).then_some(width))
}
