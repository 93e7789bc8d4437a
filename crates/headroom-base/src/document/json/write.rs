//! JSON, indented by two, in the document's order.

use crate::document::Document;

/// The document as a JSON file; numbers that JSON has not (NaN, infinities) become null.
pub fn write(document: &Document) -> String {
    let mut text = String::new();
    value(document, 0, &mut text);
    text.push('\n');
    text
}

fn value(document: &Document, depth: usize, text: &mut String) {
    match document {
        Document::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Document::Int(value) => text.push_str(&value.to_string()),
        Document::Number(value) if value.is_finite() => text.push_str(&format!("{value:?}")),
        Document::Null | Document::Number(_) => text.push_str("null"),
        Document::Text(value) => string(value, text),
        Document::List(items) => {
            let write = |item: &Document, text: &mut String| value(item, depth + 1, text);
            nested(['[', ']'], items, depth, text, write);
        }
        Document::Map(entries) => {
            nested(['{', '}'], entries, depth, text, |entry, text| {
                string(&entry.key, text);
                text.push_str(": ");
                value(&entry.value, depth + 1, text);
            });
        }
    }
}

fn nested<T>(
    ends: [char; 2],
    items: &[T],
    depth: usize,
    text: &mut String,
    mut write: impl FnMut(&T, &mut String),
) {
    let line = |depth: usize, text: &mut String| {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", depth));
    };
    text.push(ends[0]);
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        line(depth + 1, text);
        write(item, text);
    }
    if !items.is_empty() {
        line(depth, text);
    }
    text.push(ends[1]);
}

fn string(value: &str, text: &mut String) {
    text.push('"');
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            c if c.is_control() => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => text.push(c),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_written_in_its_order() {
        let document = Document::new()
            .with("b", 1_u64)
            .with("a", Document::List(vec![Document::Null, 0.5.into()]))
            .with("c", Document::new())
            .with("d", "\u{1}\"\\");
        let expected = "{\n  \"b\": 1,\n  \"a\": [\n    null,\n    0.5\n  ],\n  \"c\": {},\n  \"d\": \"\\u0001\\\"\\\\\"\n}\n";
        assert_eq!(write(&document), expected);
    }
}
