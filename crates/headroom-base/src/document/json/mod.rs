//! Documents as JSON.

mod write;

use super::Document;
pub use write::write;

/// The document, or what is wrong with the text and where.
pub fn read(text: &str) -> Result<Document, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_where() {
        #[track_caller]
        fn check(text: &str, place: &str) {
            let error = read(text).unwrap_err();
            assert!(error.ends_with(place), "{text}: {error}");
        }
        check("{\n  \"a\" 1}", "line 2 column 7");
        check("{\"a\":1,\"a\":2}", "duplicate key `a` at line 1 column 13");
        check(&"[".repeat(100_000), "line 1 column 128");
    }

    #[test]
    fn numbers_are_read_exactly() {
        let items = [
            "0",
            "18446744073709551615",
            "-1",
            "0.30000000000000004",
            "1e300",
        ];
        let expected = vec![
            Document::Int(0),
            Document::Int(u64::MAX.into()),
            Document::Int(-1),
            Document::Number(0.1 + 0.2),
            Document::Number(1e300),
        ];
        let text = format!("[{}]", items.join(","));
        assert_eq!(read(&text), Ok(Document::List(expected)));
        assert!(read("1e400").is_err());
    }
}
