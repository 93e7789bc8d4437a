//! The pictures of a sample as settings say them.

use super::Data;

/// Pictures of a sample at most.
pub(crate) const MOST_IMAGES: u64 = 1_000;

impl Data {
    /// The height and width of each picture of a sample in pixels; those not given are the model's own.
    pub fn pictures(&self, own: [u64; 2]) -> Vec<[u64; 2]> {
        let sizes: Vec<[u64; 2]> = self
            .image_sizes
            .iter()
            .filter_map(|size| read(size))
            .collect();
        let or_own = |given: u64, own: u64| if given == 0 { own } else { given };
        let one = [
            or_own(self.image_height, own[0]),
            or_own(self.image_width, own[1]),
        ];
        let count = self.images.min(MOST_IMAGES) as usize;
        let repeated = sizes.iter().copied().cycle();
        repeated.chain(std::iter::repeat(one)).take(count).collect()
    }

    /// Whether a processor that cuts large pictures into tiles cuts these: one tile is as good as none, and pictures without a
    /// size are as large as a tile.
    pub fn cuts_pictures(&self) -> bool {
        let sized = self.image_height.max(self.image_width) > 0 || !self.image_sizes.is_empty();
        match self.image_tiles {
            0 => sized,
            tiles => tiles > 1,
        }
    }

    /// The first of `image_sizes` that is no height and width.
    pub fn unread_image_size(&self) -> Option<&str> {
        let mut unread = self.image_sizes.iter().filter(|size| read(size).is_none());
        unread.next().map(String::as_str)
    }
}

/// `448x672`: a height and a width.
fn read(size: &str) -> Option<[u64; 2]> {
    let (height, width) = size.split_once(['x', '×'])?;
    let side = |text: &str| text.trim().parse().ok().filter(|side| *side > 0);
    Some([side(height)?, side(width)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: impl FnOnce(&mut Data), expected: &[[u64; 2]]) {
        let mut data = Data::default();
        change(&mut data);
        assert_eq!(data.pictures([896, 448]), expected);
    }

    #[test]
    fn pictures_have_the_sizes_given_and_else_the_models() {
        check(|_| {}, &[[896, 448]]);
        check(|data| data.images = 0, &[]);
        check(|data| data.image_width = 100, &[[896, 100]]);
        let mixed = |data: &mut Data| {
            data.images = 3;
            data.image_sizes = vec!["10x20".into(), "30 x 40".into()];
        };
        check(mixed, &[[10, 20], [30, 40], [10, 20]]);
    }
}
