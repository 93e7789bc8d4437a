//! How pictures of any size are cut into tiles of a tower's size, and what of the tiles is no padding
//! (`select_best_resolution` and `unpad_image` of LLaVA-NeXT's and LLaVA-OneVision's processors).

/// A picture in tiles. Its patches are those of all tiles side by side, less the padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tiled {
    pub rows: u64,
    pub columns: u64,
    /// Patches along the height and width of the picture itself.
    pub patches: [u64; 2],
    /// The same after they were scaled down, where there were too many.
    pub scaled: Option<[u64; 2]>,
}

/// The grids that a model allows, and how many tiles' patches it keeps at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grids {
    pub allowed: &'static [[u64; 2]],
    pub most: Option<u64>,
}

/// LLaVA-NeXT: at most four tiles.
pub(super) const NEXT: Grids = Grids {
    allowed: &[[1, 2], [2, 1], [2, 2], [3, 1], [1, 3]],
    most: None,
};

/// LLaVA-OneVision: up to six by six, of which the patches of nine tiles are kept (`anyres_max_9`).
pub(super) const ONE_VISION: Grids = Grids {
    allowed: &UP_TO_SIX,
    most: Some(9),
};

const UP_TO_SIX: [[u64; 2]; 36] = {
    let mut all = [[0; 2]; 36];
    let mut at = 0;
    while at < 36 {
        all[at] = [at as u64 / 6 + 1, at as u64 % 6 + 1];
        at += 1;
    }
    all
};

impl Tiled {
    /// A picture of this height and width, by a tower of pictures of so many pixels and patches along a side.
    pub(super) fn new([height, width]: [u64; 2], image: u64, side: u64, grids: Grids) -> Self {
        let [rows, columns] = best([height, width], image, grids.allowed);
        let (tall, wide) = (rows * side, columns * side);
        let (height, width) = (height.max(1) as f64, width.max(1) as f64);
        // Half of the padding is cut off at each end, so that an odd patch of it stays.
        let kept = |all: u64, used: f64| {
            let used = (used * 1e7).round() / 1e7;
            all - all.saturating_sub(used as u64) / 2 * 2
        };
        let patches = if width / height > wide as f64 / tall as f64 {
            [kept(tall, height * (wide as f64 / width)), wide]
        } else {
            [tall, kept(wide, width * (tall as f64 / height))]
        };
        let [down, across] = patches.map(|side| side as f64);
        let scaled = grids.most.and_then(|most| {
            let ratio = (down * across / (most * side * side) as f64).sqrt();
            (ratio > 1.1).then(|| [down, across].map(|side| (side / ratio).floor() as u64))
        });
        Self {
            rows,
            columns,
            patches,
            scaled,
        }
    }

    /// The tiles with the whole picture.
    pub(super) fn tiles(&self) -> u64 {
        self.rows * self.columns + 1
    }

    /// Tokens: the patches with one more at the end of each row, and those of the whole picture.
    #[cfg(test)]
    fn tokens(&self, whole: u64) -> u64 {
        let [down, across] = self.scaled.unwrap_or(self.patches);
        down * (across + 1) + whole
    }
}

/// The grid that wastes least of a picture, and then least of itself.
fn best([height, width]: [u64; 2], image: u64, allowed: &[[u64; 2]]) -> [u64; 2] {
    let (h, w) = (height.max(1) as f64, width.max(1) as f64);
    let fit = |[rows, columns]: [u64; 2]| {
        let (tall, wide) = (rows * image, columns * image);
        let scale = (wide as f64 / w).min(tall as f64 / h);
        let scaled = (w * scale) as u64 * ((h * scale) as u64);
        let used = scaled.min(height.saturating_mul(width));
        (used, tall * wide - used.min(tall * wide))
    };
    let mut found = [1, 1];
    let mut most: Option<(u64, u64)> = None;
    for &grid in allowed {
        let (used, wasted) = fit(grid);
        let better =
            most.is_none_or(|(before, waste)| used > before || used == before && wasted < waste);
        if better {
            (found, most) = (grid, Some((used, wasted)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(size: [u64; 2], (image, side): (u64, u64), grids: Grids, expected: (u64, u64)) {
        let tiled = Tiled::new(size, image, side, grids);
        assert_eq!((tiled.tiles(), tiled.tokens(side * side)), expected);
    }

    /// As transformers 5.23's processors count them.
    #[test]
    fn pictures_become_as_many_tiles_and_tokens_as_the_processors_make() {
        let one_vision = |size, expected| check(size, (384, 27), ONE_VISION, expected);
        one_vision([480, 640], (5, 2929));
        one_vision([1024, 768], (7, 4744));
        one_vision([300, 384], (2, 1317));
        check([672, 672], (336, 24), NEXT, (5, 2928));
    }
}
