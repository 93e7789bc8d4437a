//! Documents as YAML. The writer is our own because it writes comments, which libraries leave out.

mod write;

use serde::de::DeserializeSeed;

use super::Document;
use super::deserialize::LENIENT;
pub(crate) use write::is_printable;
pub use write::{comment, scalar, write};

/// The document, or what is wrong with the text and where.
pub fn read(text: &str) -> Result<Document, String> {
    check_depth(text)?;
    serde_yaml::from_str(text).map_err(|error| error.to_string())
}

/// The same as programs in Python read it: of equal keys the last counts, and tags such as `!include` are passed over.
pub fn read_lenient(text: &str) -> Result<Document, String> {
    check_depth(text)?;
    let deserializer = serde_yaml::Deserializer::from_str(text);
    LENIENT
        .deserialize(deserializer)
        .map_err(|error| error.to_string())
}

/// Refuses nesting that no file has: the parser's work grows with the square of its depth.
fn check_depth(text: &str) -> Result<(), String> {
    const DEEPEST: usize = 1000;
    let mut depth = 0_usize;
    for (number, line) in text.lines().enumerate() {
        let dashes = line
            .split(' ')
            .take_while(|word| matches!(*word, "-" | "?" | ""));
        let mut deepest = depth
            + dashes
                .take(DEEPEST + 1)
                .filter(|word| !word.is_empty())
                .count();
        for c in line.bytes() {
            match c {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            deepest = deepest.max(depth);
        }
        if deepest > DEEPEST {
            return Err(format!(
                "line {}: nested more than {DEEPEST} deep",
                number + 1
            ));
        }
    }
    Ok(())
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

    #[test]
    fn nesting_is_bounded() {
        for text in [
            "[".repeat(200_000),
            "{a: ".repeat(100_000),
            "- ".repeat(100_000),
            "[\n".repeat(100_000),
        ] {
            for read in [read, read_lenient] {
                let error = read(&text).unwrap_err();
                assert!(error.ends_with("nested more than 1000 deep"), "{error}");
            }
        }
        assert!(read(&format!("a: {}{}", "[".repeat(50), "]".repeat(50))).is_ok());
    }

    #[test]
    fn programs_take_the_last_of_equal_keys_and_pass_over_tags() {
        let expected = Document::new().with("b", "x").with("a", 2_u64);
        assert_eq!(read_lenient("a: 1\nb: !include x\na: 2"), Ok(expected));
        assert!(read_lenient("[1]: 2").is_err());
    }
}
