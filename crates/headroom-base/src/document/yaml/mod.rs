//! Documents as YAML. The writer is our own because it writes comments, which libraries leave out.

mod write;

use super::Document;
pub use write::{comment, scalar, write};

/// The document, or what is wrong with the text and where.
pub fn read(text: &str) -> Result<Document, String> {
    serde_yaml::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_text_and_occur_once() {
        let expected = Document::new().with("1", "a").with("true", "b");
        assert_eq!(read("1: a\ntrue: b\n"), Ok(expected));
        for text in ["a: 1\na: 2", "[1]: 2", "a: !x 1"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
