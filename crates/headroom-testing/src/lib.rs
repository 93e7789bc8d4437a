//! What the tests of several crates share. It knows nothing of them, so that each may use it.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "helpers of tests are tests"
)]

mod dice;

use std::io::Read;
use std::path::Path;
use std::{env, fs};

pub use dice::Dice;

/// Names that quoting, encoding and YAML must survive.
pub const HOSTILE: &[&str] = &[
    "q_proj",
    "it's",
    "$(touch${IFS}canary)",
    "`touch`",
    "a;b|c&d",
    "#v=1&gpu=x",
    "50%",
    "\"quoted\"",
    "no",
    "null",
    "1e3",
    "0x10",
    "- dash",
    "key: value",
    "größe-模型-🦀",
    "\\back\\slash",
    "!tag",
    "*anchor",
    "~",
    "{a}",
    "[b]",
    "'",
    "--help",
];

/// The root of the repository, from where tests name the files they read.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A text file of the repository.
pub fn text(path: &str) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A gzipped file of the repository.
pub fn unpacked(path: &str) -> Vec<u8> {
    let packed = fs::read(root().join(path)).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

/// A gzipped text file of the repository.
pub fn unpacked_text(path: &str) -> String {
    String::from_utf8(unpacked(path)).unwrap()
}

/// How many random cases a test tries: `HEADROOM_CASES`, or so many.
pub fn cases(default: usize) -> usize {
    let number = env::var("HEADROOM_CASES").ok();
    number.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Whether exhaustive searches run, as they do in continuous integration: `HEADROOM_SLOW=1`.
pub fn slow() -> bool {
    env::var("HEADROOM_SLOW").is_ok_and(|value| value == "1")
}
