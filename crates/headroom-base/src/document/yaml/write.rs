//! The YAML writer: the only place where text becomes YAML, safe for every reader of YAML 1.1 and 1.2.

use crate::document::{Document, Entry};

/// The document as a YAML file.
pub fn write(document: &Document) -> String {
    let mut text = String::new();
    match document {
        Document::Map(entries) if !entries.is_empty() => map(entries, 0, &mut text),
        Document::List(items) if !is_short(document) => list(items, 0, &mut text),
        _ => {
            text.push_str(&inline(document));
            text.push('\n');
        }
    }
    text
}

/// A comment line for each line of the text.
pub fn comment(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        out.push_str(if line.is_empty() { "#" } else { "# " });
        out.extend(line.chars().map(|c| if is_printable(c) { c } else { ' ' }));
        out.push('\n');
    }
    out
}

fn map(entries: &[Entry], depth: usize, text: &mut String) {
    for entry in entries {
        indent(depth, text);
        text.push_str(&scalar(&entry.key));
        text.push(':');
        after_key(entry, depth, text);
    }
}

fn after_key(entry: &Entry, depth: usize, text: &mut String) {
    let note = |text: &mut String| {
        if !entry.comment.is_empty() {
            text.push_str("  ");
            text.push_str(comment(entry.comment).trim_end());
        }
        text.push('\n');
    };
    match &entry.value {
        Document::Map(entries) if !entries.is_empty() => {
            note(text);
            map(entries, depth + 1, text);
        }
        Document::List(items) if !is_short(&entry.value) => {
            note(text);
            list(items, depth + 1, text);
        }
        Document::Text(inner) if is_block(inner) => {
            text.push_str(" |");
            note(text);
            block(inner, depth + 1, text);
        }
        value => {
            text.push(' ');
            text.push_str(&inline(value));
            note(text);
        }
    }
}

/// Whether text of several lines can be written as it is, line by line.
fn is_block(text: &str) -> bool {
    let printable = |c: char| c == '\n' || is_printable(c);
    // The first line sets the indentation, the last ends the text; spaces at a line's end are easily lost.
    let plain = |line: &str| !line.ends_with(' ');
    text.trim_end_matches('\n').contains('\n')
        && text.ends_with('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\n'])
        && text.chars().all(printable)
        && text.lines().all(plain)
}

fn block(value: &str, depth: usize, text: &mut String) {
    for line in value.lines() {
        if !line.is_empty() {
            indent(depth, text);
            text.push_str(line);
        }
        text.push('\n');
    }
}

fn list(items: &[Document], depth: usize, text: &mut String) {
    for item in items {
        indent(depth, text);
        text.push('-');
        match item {
            Document::Map(entries) if !entries.is_empty() => {
                // The first key is on the dash's line, the others below it.
                let mut nested = String::new();
                map(entries, depth + 1, &mut nested);
                text.push(' ');
                text.push_str(nested.trim_start_matches(' '));
            }
            Document::List(nested) if !is_short(item) => {
                text.push('\n');
                list(nested, depth + 1, text);
            }
            Document::Text(inner) if is_block(inner) => {
                text.push_str(" |\n");
                block(inner, depth + 1, text);
            }
            _ => {
                text.push(' ');
                text.push_str(&inline(item));
                text.push('\n');
            }
        }
    }
}

fn indent(depth: usize, text: &mut String) {
    for _ in 0..depth {
        text.push_str("  ");
    }
}

/// Whether a list is written in one line.
fn is_short(document: &Document) -> bool {
    let Document::List(items) = document else {
        return true;
    };
    let nested = |item: &Document| matches!(item, Document::Map(_) | Document::List(_));
    let block = |item: &Document| matches!(item, Document::Text(inner) if is_block(inner));
    !items.iter().any(|item| nested(item) || block(item)) && inline(document).len() <= 80
}

fn inline(document: &Document) -> String {
    match document {
        Document::Null => "null".into(),
        Document::Bool(inner) => inner.to_string(),
        Document::Int(inner) => inner.to_string(),
        Document::Number(inner) => number(*inner),
        Document::Text(inner) => scalar(inner),
        Document::List(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Document::Map(entries) => {
            let pair = |entry: &Entry| format!("{}: {}", scalar(&entry.key), inline(&entry.value));
            let entries: Vec<String> = entries.iter().map(pair).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// A number that every reader takes for one: Python reads `2e-5` as text and `2.0e-5` as a number.
fn number(number: f64) -> String {
    if number.is_nan() {
        return ".nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { ".inf" } else { "-.inf" }.into();
    }
    let size = number.abs();
    if number == 0.0 || (1e-4..1e15).contains(&size) {
        return format!("{number:?}");
    }
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let dot = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with('-') { "" } else { "+" };
    format!("{mantissa}{dot}e{sign}{exponent}")
}

/// Text as a YAML scalar: bare if every reader takes it for a string, else in double quotes.
pub fn scalar(text: &str) -> String {
    if is_bare(text) {
        return text.into();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if is_printable(c) => quoted.push(c),
            c => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether a file may hold the character as it is: no controls, line separators or byte-order marks, which YAML
/// does not have, and none of the marks that make text read backwards, which hide what a line says.
pub fn is_printable(c: char) -> bool {
    let special = matches!(
        c,
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    );
    !c.is_control() && !special
}

fn is_bare(text: &str) -> bool {
    /// Words that YAML 1.1 takes for booleans or nothing, in any case.
    const WORDS: &[&str] = &["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let mut letters = text.chars();
    let first = letters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '/'));
    let rest = letters.all(|c| c.is_ascii_alphanumeric() || "_-./+".contains(c));
    first && rest && !WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_testing::{Dice, HOSTILE};

    #[test]
    fn documents_are_written_as_people_write_them() {
        let document = Document::new()
            .with("version", 1_u32)
            .with(
                "data",
                Document::new().with_note("micro_batch", 8_u64, "samples"),
            )
            .with("names", vec!["a".to_string(), "no".into()])
            .with("empty", Document::new())
            .with(
                "datasets",
                Document::List(vec![
                    Document::new().with("path", "x").with("type", "chat"),
                    Document::from("z"),
                ]),
            )
            .with("save_strategy", "no")
            .with("rate", 2e-5);
        let expected = "\
version: 1
data:
  micro_batch: 8  # samples
names: [a, \"no\"]
empty: {}
datasets:
  - path: x
    type: chat
  - z
save_strategy: \"no\"
rate: 2.0e-5
";
        assert_eq!(write(&document), expected);
    }

    #[test]
    fn numbers_are_numbers_to_every_reader() {
        #[track_caller]
        fn check(number: f64, text: &str) {
            assert_eq!(super::number(number), text);
        }
        check(0.0, "0.0");
        check(1.0, "1.0");
        check(0.05, "0.05");
        check(2e-5, "2.0e-5");
        check(1.5e-9, "1.5e-9");
        check(1e20, "1.0e+20");
        check(f64::NAN, ".nan");
        check(f64::NEG_INFINITY, "-.inf");
    }

    #[test]
    fn text_that_could_be_taken_for_something_else_is_quoted() {
        #[track_caller]
        fn check(text: &str, yaml: &str) {
            assert_eq!(scalar(text), yaml);
        }
        check("q_proj", "q_proj");
        check("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B");
        check("", "\"\"");
        check("No", "\"No\"");
        check("1e3", "\"1e3\"");
        check("12:30", "\"12:30\"");
        check("a: b # c", "\"a: b # c\"");
        check("a\"b\\c\nd\u{7}", "\"a\\\"b\\\\c\\nd\\U00000007\"");
        check("größe", "\"größe\"");
    }

    #[test]
    fn a_comment_cannot_end_early() {
        assert_eq!(comment("a\nb: 1\r!!x\u{2028}y"), "# a\n# b: 1 !!x y\n");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut dice = Dice::new(3);
        for _ in 0..2000 {
            let document = made_up(&mut dice, 3);
            let text = write(&document);
            let read = crate::document::yaml::read(&text).unwrap();
            assert_eq!(read, document, "{text}");
            let text = crate::document::json::write(&document);
            let read = crate::document::json::read(&text).unwrap();
            assert_eq!(read, document, "{text}");
        }
    }

    fn made_up(dice: &mut Dice, depth: u64) -> Document {
        let word = |dice: &mut Dice| match dice.below(4) {
            0 => char::from_u32(dice.below(0x11_0000) as u32).map_or("x".into(), String::from),
            _ => dice.one_of(HOSTILE).to_string(),
        };
        match dice.below(if depth == 0 { 5 } else { 8 }) {
            0 => Document::Null,
            1 => Document::Bool(dice.below(2) == 0),
            2 => Document::Int(i128::from(dice.roll())),
            3 => Document::Number(dice.roll() as f64 * 10_f64.powi(dice.below(40) as i32 - 30)),
            4 => Document::Text(word(dice)),
            5 => (0..dice.below(4)).map(|_| made_up(dice, depth - 1)).fold(
                Document::List(vec![]),
                |list, item| match list {
                    Document::List(mut items) => {
                        items.push(item);
                        Document::List(items)
                    }
                    other => other,
                },
            ),
            _ => {
                let mut map = Document::new();
                for _ in 0..dice.below(4) {
                    let key = word(dice);
                    if map.get(&key).is_none() {
                        map = map.with(key, made_up(dice, depth - 1));
                    }
                }
                map
            }
        }
    }
}
