//! A recorded model, as a scenario carries it.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use headroom_base::document::{Document, json};

/// The document of a recorded model, shared by the scenarios that change around it. What it says is read where networks are
/// built.
#[derive(Clone)]
pub struct Recording {
    document: Arc<Document>,
    /// Of its text.
    hash: u64,
}

/// How many files a thread remembers, so that links can name them.
const REMEMBERED: usize = 8;

thread_local! {
    static OPENED: RefCell<Vec<Recording>> = const { RefCell::new(Vec::new()) };
}

impl Recording {
    /// The file's document, remembered under its name.
    pub fn new(document: Document) -> Self {
        let hash = fnv(&json::write(&document));
        let recording = Self::hashed(hash)
            .filter(|known| *known.document == document)
            .unwrap_or_else(|| Self {
                hash,
                document: Arc::new(document),
            });
        OPENED.with_borrow_mut(|opened| {
            opened.retain(|known| known.hash != recording.hash);
            if opened.len() == REMEMBERED {
                opened.remove(0);
            }
            opened.push(recording.clone());
        });
        recording
    }

    /// One that was opened here before.
    pub fn named(name: &str) -> Option<Self> {
        Self::hashed(u64::from_str_radix(name, 16).ok()?)
    }

    fn hashed(hash: u64) -> Option<Self> {
        let is_it = |known: &&Self| known.hash == hash;
        OPENED.with_borrow(|opened| opened.iter().find(is_it).cloned())
    }

    pub fn document(&self) -> &Document {
        &self.document
    }

    /// What stands for it in texts: a number that follows from the file.
    pub fn name(&self) -> String {
        format!("{:016x}", self.hash)
    }
}

/// Fowler, Noll and Vo's hash, 1a.
fn fnv(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

impl PartialEq for Recording {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
            && (Arc::ptr_eq(&self.document, &other.document) || self.document == other.document)
    }
}

impl Eq for Recording {}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Recording")
    }
}
