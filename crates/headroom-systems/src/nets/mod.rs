//! The systems' networks, each written after the forward function of its repository.

mod dreams;
mod gsa;
mod peptrm;
mod prs_med;

use headroom_core::network::Build;
use headroom_core::network::Tensor;

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("dreams", dreams::build),
    ("gsa", gsa::build),
    ("peptrm", peptrm::build),
    ("prs-med", prs_med::build),
];

/// `F.cosine_similarity(a, b)` along the last dimension.
fn cosine_similarity(a: &Tensor, b: &Tensor) -> Tensor {
    let unit = |x: &Tensor| {
        let norm = x
            .pow()
            .pipe(|squares| squares.sum(&[-1]))
            .pipe(Tensor::sqrt);
        x.div(&norm)
    };
    let (a, b) = (unit(a), unit(b));
    a.mul(&b).pipe(|product| product.sum(&[-1]))
}
