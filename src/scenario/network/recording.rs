//! A recorded model, as a scenario carries it.

use std::fmt;
use std::sync::Arc;

use crate::document::Document;

/// The document of a recorded model, shared by the scenarios that change around it. What it says is read where networks are
/// built.
#[derive(Clone)]
pub struct Recording(Arc<Document>);

impl Recording {
    pub fn new(document: Document) -> Self {
        Self(Arc::new(document))
    }

    pub fn document(&self) -> &Document {
        &self.0
    }
}

impl PartialEq for Recording {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Recording {}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Recording")
    }
}
