//! Every model that is offered comes to its published count exactly, and every number names its source.

use headroom_truth::catalog::{Mismatch, check};

#[test]
fn the_catalogue_is_clean() {
    headroom_systems::install();
    let report = check();
    assert_eq!(report.mismatches, Vec::<Mismatch>::new());
    assert_eq!(report.missing_sources, Vec::<String>::new());
    assert!(report.exact.len() >= 67, "{}", report.exact.len());
    let not_offered: usize = report.without_forward.values().sum();
    assert_eq!(report.exact.len() + not_offered, report.models);
}
