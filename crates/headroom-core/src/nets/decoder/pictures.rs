//! The pictures of a batch: their sizes, their places among the tokens, and the features that take those places.

use std::cell::RefCell;

use super::super::error::at_most;
use super::super::{Cx, ModelError};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// The pictures of each sample of the batch made last, in whatever a tower counts: pixels, patches.
#[derive(Debug, Default)]
pub(super) struct Pictures(RefCell<Vec<[u64; 2]>>);

/// The pictures of a batch: those of a sample, and how many samples have the same.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    sample: Vec<[u64; 2]>,
    samples: u64,
}

impl Pictures {
    /// Keeps the pictures of a sample for the forward pass.
    pub(super) fn keep(&self, pictures: &[[u64; 2]]) {
        self.0.replace(pictures.to_vec());
    }

    pub(super) fn of_batch(&self, samples: u64) -> Batch {
        let sample = self.0.borrow().clone();
        Batch { sample, samples }
    }

    pub(super) fn are_none(&self) -> bool {
        self.0.borrow().is_empty()
    }
}

impl Batch {
    pub(super) fn count(&self) -> u64 {
        self.samples.saturating_mul(self.sample.len() as u64)
    }

    /// What all pictures have together, if each has its height times its width.
    pub(super) fn total(&self) -> u64 {
        self.samples.saturating_mul(total(&self.sample))
    }

    /// One after the other; there may be very many.
    pub(super) fn iter(&self) -> impl Iterator<Item = [u64; 2]> + '_ {
        let count = usize::try_from(self.count()).unwrap_or(usize::MAX);
        self.sample.iter().copied().cycle().take(count)
    }
}

/// What these pictures have together, if each has its height times its width.
pub(super) fn total(pictures: &[[u64; 2]]) -> u64 {
    let each = pictures
        .iter()
        .map(|[height, width]| height.saturating_mul(*width));
    each.fold(0, u64::saturating_add)
}

/// Pictures that are taken one by one are few enough to be followed.
pub(super) fn few(data: &Data) -> Result<(), ModelError> {
    const MOST: u64 = 4096;
    let pictures = data.micro_batch.saturating_mul(data.images);
    at_most("data.micro_batch times data.images", pictures, MOST)
}

/// The padding mask that every processor returns, of ones where nothing is padded.
pub(super) fn mask_of_ones(cx: &Cx, data: &Data) -> Tensor {
    let shape = [data.micro_batch, data.sequence];
    cx.tape.empty("attention_mask", shape, DType::I64)
}

/// `get_placeholder_mask`: which tokens are a picture's, counted to compare with the features, and which a film's.
pub(super) fn placeholders(ids: &Tensor, films: bool) -> [Tensor; 2] {
    let mask = || ids.constant("eq", ids.shape(), DType::Bool).unsqueeze(-1);
    let scalar = |op, dtype| ids.constant(op, &[0; 0], dtype);
    let count = || {
        let count = scalar("sum", DType::I64);
        ids.tape()
            .workspace("sum", ids.numel() * DType::I64.bytes());
        count
    };
    let image = mask();
    let film = films.then(mask);
    let images = count();
    drop((scalar("mul", DType::I64), scalar("eq", DType::Bool)));
    drop((images, films.then(count)));
    let film = film.unwrap_or_else(|| image.clone());
    [image, film]
}
