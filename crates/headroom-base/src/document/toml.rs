//! Reading TOML: tables, keys, texts, numbers, switches and lists, which is what configurations hold. Dates, tables within lines
//! and lists of tables are refused.

use super::{Document, json};

/// The most keys that are read, and the longest list in bytes.
const MOST_KEYS: usize = 2_000;
const LONGEST_LIST: usize = 1 << 16;
const DEEPEST: usize = 8;

/// Whether a text begins as TOML does and neither YAML nor JSON: with a table's name, or a key and a value.
pub fn recognises(text: &str) -> bool {
    let lines = text.lines().map(code);
    let first = lines.map(str::trim).find(|line| !line.is_empty());
    first.is_some_and(|line| match line.strip_prefix('[') {
        Some(table) => table.strip_suffix(']').and_then(path).is_some(),
        None => line
            .split_once('=')
            .is_some_and(|(key, _)| path(key).is_some()),
    })
}

/// The document, or what was wrong and where.
pub fn read(text: &str) -> Result<Document, String> {
    let mut document = Document::new();
    let mut table: Vec<&str> = Vec::new();
    let mut lines = (1_usize..).zip(text.lines());
    let mut keys = 0;
    while let Some((number, line)) = lines.next() {
        let expected = |what: &str| format!("line {number}: expected {what}");
        let line = code(line).trim();
        if line.is_empty() {
            continue;
        }
        keys += 1;
        if keys > MOST_KEYS {
            return Err(expected(&format!("at most {MOST_KEYS} keys")));
        }
        if let Some(name) = line.strip_prefix('[') {
            let name = name.strip_suffix(']').and_then(path);
            table = name.ok_or_else(|| expected("the name of a table"))?;
            continue;
        }
        let (key, first) = line
            .split_once('=')
            .ok_or_else(|| expected("key = value"))?;
        let key = path(key).ok_or_else(|| expected("a key"))?;
        let mut whole = first.trim().to_string();
        // A list may go on. No text does, so each line is read once.
        let mut lists = open(&whole);
        while lists > 0 {
            let more = lines.next().filter(|_| whole.len() < LONGEST_LIST);
            let (_, more) = more.ok_or_else(|| expected("the end of the list"))?;
            let more = code(more).trim();
            lists += open(more);
            whole.push_str(more);
        }
        let value =
            value(&whole, 0).ok_or_else(|| expected("a text, a number, true, false or a list"))?;
        *document.at(table.iter().copied().chain(key)) = value;
    }
    Ok(document)
}

/// Where the letters stand that no quotes enclose.
fn unquoted(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut quote, mut escaped) = (None, false);
    text.char_indices().filter(move |(_, letter)| {
        match quote {
            None if matches!(letter, '"' | '\'') => quote = Some(*letter),
            None => return true,
            Some('"') if escaped => escaped = false,
            Some('"') if *letter == '\\' => escaped = true,
            Some(closing) if closing == *letter => quote = None,
            Some(_) => {}
        }
        false
    })
}

/// A line without its comment.
fn code(line: &str) -> &str {
    let comment = unquoted(line).find(|(_, letter)| *letter == '#');
    comment.and_then(|(at, _)| line.get(..at)).unwrap_or(line)
}

/// How many lists are open at the end.
fn open(text: &str) -> i64 {
    unquoted(text).fold(0, |open, (_, letter)| match letter {
        '[' => open + 1,
        ']' => open - 1,
        _ => open,
    })
}

/// The parts of a key, such as `quantize.linear`.
fn path(key: &str) -> Option<Vec<&str>> {
    let bare = |part: &&str| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        !part.is_empty() && part.chars().all(plain)
    };
    let parts: Vec<&str> = key
        .split('.')
        .map(|part| part.trim().trim_matches(['"', '\'']))
        .collect();
    (parts.len() <= DEEPEST && parts.iter().all(bare)).then_some(parts)
}

fn value(text: &str, depth: usize) -> Option<Document> {
    let text = text.trim();
    if let Some(literal) = text.strip_prefix('\'') {
        return literal.strip_suffix('\'').map(Document::from);
    }
    if let Some(list) = text.strip_prefix('[') {
        let list = list.strip_suffix(']').filter(|_| depth < DEEPEST)?;
        return items(list, depth + 1).map(Document::List);
    }
    let number = text.starts_with(|letter: char| letter.is_ascii_digit() || "+-".contains(letter));
    let plain = if number {
        text.trim_start_matches('+').replace('_', "")
    } else {
        text.into()
    };
    match json::read(&plain).ok()? {
        Document::Null | Document::Map(_) | Document::List(_) => None,
        scalar => Some(scalar),
    }
}

/// The items of a list, behind the last of which a comma may stand.
fn items(list: &str, depth: usize) -> Option<Vec<Document>> {
    let mut items = Vec::new();
    let (mut start, mut inner) = (0, 0);
    let ends = unquoted(list).chain([(list.len(), ',')]);
    for (at, letter) in ends {
        match letter {
            '[' => inner += 1,
            ']' => inner -= 1,
            ',' if inner == 0 => {
                let item = list.get(start..at)?.trim();
                start = at + 1;
                if !item.is_empty() || at < list.len() {
                    items.push(value(item, depth)?);
                }
            }
            _ => {}
        }
    }
    (inner == 0).then_some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let document = read(text).map(|document| json::write(&document));
        let expected = json::write(&json::read(expected).unwrap());
        assert_eq!(document, Ok(expected), "{text}");
        assert!(recognises(text), "{text}");
    }

    #[test]
    fn what_configurations_hold_is_read() {
        check(
            "# a preset\n[training]\nseq_len = 8_192  # long\nlr = 3e-4\nname = \"a # \\\"b\\\"\"\nmode = 'full'\nfast=true\n",
            r#"{"training": {"seq_len": 8192, "lr": 3e-4, "name": "a # \"b\"", "mode": "full", "fast": true}}"#,
        );
        check(
            "x = -1\n[a.b]\nlist = [\"m\", # one\n  \"l\",\n]\nempty = []\nc.d = [[1, 2], [3]]",
            r#"{"x": -1, "a": {"b": {"list": ["m", "l"], "empty": [], "c": {"d": [[1, 2], [3]]}}}}"#,
        );
    }

    #[test]
    fn what_is_not_read_is_refused_where_it_stands() {
        for (text, expected) in [
            ("a = 1\nb = 2020-01-01", "line 2: expected a text"),
            ("a = {b = 1}", "line 1: expected a text"),
            ("[[a]]", "line 1: expected the name of a table"),
            ("a = [1,\n2", "line 1: expected the end of the list"),
            ("a = null", "line 1: expected a text"),
            ("a", "line 1: expected key = value"),
            ("a = 'b", "line 1: expected a text"),
            ("a = [1]]", "line 1: expected a text"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.starts_with(expected), "{text}: {problem}");
        }
        let many = "a = 1\n".repeat(MOST_KEYS + 1);
        assert!(read(&many).unwrap_err().contains("at most 2000 keys"));
        for text in ["a: 1", "{\"a\": 1}", "- b", "python train.py --lr=1", ""] {
            assert!(!recognises(text), "{text}");
        }
    }

    #[test]
    fn no_text_is_too_odd() {
        let mut state = 1_u64;
        let mut letters = move || {
            const LETTERS: &[u8] = b"[]=\"'\\#,.a1-_\n ";
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            LETTERS[(state >> 33) as usize % LETTERS.len()]
        };
        for _ in 0..5_000 {
            let bytes: Vec<u8> = (0..24).map(|_| letters()).collect();
            let text = String::from_utf8_lossy(&bytes);
            let _ = (read(&text), recognises(&text));
        }
    }
}
