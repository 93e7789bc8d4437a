//! Documents as TOML.

use toml::{Table, Value};

use super::{Document, Entry, yaml};

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

/// The map as a TOML file: plain values of a table first, then its tables; TOML has no null, which is left out.
pub fn write(document: &Document) -> String {
    let mut text = String::new();
    if let Document::Map(entries) = document {
        table(entries, "", &mut text);
    }
    text
}

fn table(entries: &[Entry], path: &str, text: &mut String) {
    let is_table = |entry: &&Entry| match &entry.value {
        Document::Map(_) => true,
        Document::List(items) => matches!(items.first(), Some(Document::Map(_))),
        _ => false,
    };
    let plain = entries.iter().filter(|entry| !is_table(entry));
    for entry in plain.filter(|entry| entry.value != Document::Null) {
        text.push_str(&format!("{} = ", key(&entry.key)));
        value(&entry.value, text);
        if !entry.comment.is_empty() {
            text.push_str(&format!("  {}", yaml::comment(entry.comment).trim_end()));
        }
        text.push('\n');
    }
    for entry in entries.iter().filter(is_table) {
        let path = format!("{path}{}", key(&entry.key));
        let (items, [open, close]) = match &entry.value {
            Document::List(items) => (items.as_slice(), ["[[", "]]"]),
            one => (std::slice::from_ref(one), ["[", "]"]),
        };
        for item in items {
            let Document::Map(entries) = item else {
                continue;
            };
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}{open}{path}{close}\n"));
            table(entries, &format!("{path}."), text);
        }
    }
}

fn value(document: &Document, text: &mut String) {
    match document {
        Document::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Document::Int(value) => text.push_str(&value.to_string()),
        Document::Number(value) if value.is_nan() => text.push_str("nan"),
        Document::Number(value) if value.is_infinite() => {
            text.push_str(if *value > 0.0 { "inf" } else { "-inf" });
        }
        Document::Number(value) => text.push_str(&format!("{value:?}")),
        Document::Text(value) => text.push_str(&string(value)),
        Document::List(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                text.push_str(if at > 0 { ", " } else { "" });
                value(item, text);
            }
            text.push(']');
        }
        // Tables have lines of their own.
        Document::Map(_) | Document::Null => text.push_str("{}"),
    }
}

fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(bare) {
        name.into()
    } else {
        string(name)
    }
}

/// The text in double quotes; what a file may not hold as it is by its number.
fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if yaml::is_printable(c) => quoted.push(c),
            c => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
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
    fn what_is_written_is_read_back() {
        let written = Document::new()
            .with(
                "model",
                Document::new()
                    .with("a b", "x\u{7}\"\\\n\u{202e}")
                    .with("dtype", "bf16"),
            )
            .with_note("steps", 3_u64, "yours to choose")
            .with("rate", 2e-5)
            .with(
                "sizes",
                Document::List(vec![512_u64.into(), 768_u64.into()]),
            )
            .with(
                "sets",
                Document::List(vec![Document::new().with("batch", 1_u64).with(
                    "parts",
                    Document::List(vec![
                        Document::new().with("path", "a"),
                        Document::new().with("path", "b"),
                    ]),
                )]),
            );
        let text = write(&written);
        let expected = "steps = 3  # yours to choose\nrate = 2e-5\nsizes = [512, 768]\n\n[model]\n\"a b\" = \
            \"x\\U00000007\\\"\\\\\\U0000000a\\U0000202e\"\ndtype = \"bf16\"\n\n[[sets]]\nbatch = 1\n\n[[sets.parts]]\npath = \
            \"a\"\n\n[[sets.parts]]\npath = \"b\"\n";
        assert_eq!(text, expected);
        let read = read(&text).unwrap();
        for key in ["model", "rate", "sizes", "sets"] {
            assert_eq!(read.get(key), written.get(key));
        }
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
