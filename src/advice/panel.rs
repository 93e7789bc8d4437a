//! A panel of advice.

use crate::worker::JobKind;

/// A table that the worker fills.
#[derive(Debug)]
pub struct Panel {
    pub kind: JobKind,
    pub title: &'static str,
    pub about: &'static str,
    pub head: &'static [&'static str],
    /// Whether it starts open.
    pub open: bool,
    /// Whether it can be sorted by its columns.
    pub sortable: bool,
}
