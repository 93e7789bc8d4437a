//! Documents from TOML.

use toml::{Table, Value};

use super::Document;

/// The longest text that is read, in bytes; configurations have some thousands.
const LONGEST: usize = 1 << 20;

/// Whether a text begins as TOML does and neither YAML nor JSON: with a table's header, or `key =`.
pub fn recognises(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| match line.split_once('=') {
        _ if line.starts_with('[') => is_toml(line),
        Some((key, _)) => is_toml(&format!("{key} = 0")),
        None => false,
    })
}

fn is_toml(line: &str) -> bool {
    line.len() < LONGEST && line.parse::<Table>().is_ok()
}

/// The document, or what is wrong with the text and where.
pub fn read(text: &str) -> Result<Document, String> {
    if text.len() > LONGEST {
        return Err(format!("longer than {} MiB", LONGEST >> 20));
    }
    match text.parse::<Table>() {
        Ok(table) => Ok(document(Value::Table(table))),
        Err(error) => {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(0, |before| before.matches('\n').count()) + 1;
            Err(format!("line {line}: {}", error.message()))
        }
    }
}

fn document(value: Value) -> Document {
    match value {
        Value::String(value) => value.into(),
        Value::Integer(value) => Document::Int(value.into()),
        Value::Float(value) => value.into(),
        Value::Boolean(value) => value.into(),
        Value::Datetime(value) => value.to_string().into(),
        Value::Array(items) => Document::List(items.into_iter().map(document).collect()),
        Value::Table(table) => table
            .into_iter()
            .map(|(key, value)| (key, document(value)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::json;

    #[test]
    fn configurations_are_read_in_their_order() {
        let text = "x = -1\n[b.a]\nlist = [\"m\", # one\n  \"l\",\n]\nday = 2020-01-02\nc.d = {e = 1_000}\n[[a]]\nf = 3e-4\n";
        let expected = r#"{"x": -1, "b": {"a": {"list": ["m", "l"], "day": "2020-01-02", "c": {"d": {"e": 1000}}}}, "a": [{"f": 3e-4}]}"#;
        assert_eq!(read(text), json::read(expected));
    }

    #[test]
    fn nesting_is_bounded() {
        for deep in ["a = [", "a = {b = "] {
            assert!(read(&deep.replacen(&deep[4..], &deep[4..].repeat(50_000), 1)).is_err());
        }
        assert!(read(&format!("{}a = 1", "a.".repeat(50_000))).is_err());
        assert!(read(&format!("[{}a]", "a.".repeat(50_000))).is_err());
    }

    #[test]
    fn toml_is_told_from_other_formats() {
        for text in ["# a preset\n\n[a.b] # c", "a.b = [\n1]", "'a b'=1", "[[a]]"] {
            assert!(recognises(text), "{text}");
        }
        for text in [
            "a: 1",
            "{\"a\": \"=\"}",
            "- b",
            "python train.py --lr=1",
            "",
        ] {
            assert!(!recognises(text), "{text}");
        }
    }
}
