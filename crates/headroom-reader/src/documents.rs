//! Documents as keys: YAML, JSON and TOML, with the `${…}` of OmegaConf replaced.

use std::collections::BTreeMap;

use headroom_base::document::{Document, json, toml, yaml};

use super::keys::Keys;

/// Replacements of one text, so that references to each other end.
const MOST_REPLACED: usize = 64;

/// The document in a text; `None` where it is none that has keys.
pub fn read(text: &str) -> Option<Keys> {
    raw(text).map(interpolated)
}

/// The same with references as they are written, for documents that are put together first.
pub fn raw(text: &str) -> Option<Document> {
    let trimmed = text.trim_start_matches('\u{feff}').trim_start();
    let tree = if trimmed.starts_with('{') {
        // A YAML document may be one map in braces, with `#` for comments.
        json::read(text)
            .or_else(|_| json::read(&without_comments(text)))
            .or_else(|_| yaml::read_lenient(text))
    } else if toml::recognises(text) {
        toml::read(text)
    } else {
        yaml::read_lenient(text)
    };
    let tree = match tree {
        Ok(tree @ Document::Map(_)) => tree,
        // What follows the first document changes nothing that decides memory: multi-part manifests are read elsewhere.
        _ => yaml::read_lenient(first_of_many(text)?).ok()?,
    };
    matches!(&tree, Document::Map(entries) if !entries.is_empty()).then(|| merged(tree))
}

/// JSON with `//` comments and commas before a closing bracket, as people keep it.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.lines() {
        // A comment begins outside quotes: an even number of them before it.
        let comment = line.match_indices("//").find(|(at, _)| {
            let before = line.get(..*at).unwrap_or_default();
            before.matches('"').count() % 2 == 0
        });
        plain.push_str(comment.map_or(line, |(at, _)| line.get(..at).unwrap_or_default()));
        plain.push('\n');
    }
    let mut closed = plain;
    for (from, to) in [(",\n}", "\n}"), (", }", "}"), (",}", "}"), (",]", "]")] {
        closed = closed.replace(from, to);
    }
    closed
}

/// Anchors that are merged by `<<: *name`: keys that the map itself has are stronger.
fn merged(node: Document) -> Document {
    match node {
        Document::Map(entries) => {
            let mut own = Vec::with_capacity(entries.len());
            let mut merges = Vec::new();
            for mut entry in entries {
                entry.value = merged(entry.value);
                match (entry.key.as_str(), entry.value) {
                    ("<<", Document::Map(more)) => merges.extend(more),
                    ("<<", Document::List(all)) => {
                        for one in all {
                            if let Document::Map(more) = one {
                                merges.extend(more);
                            }
                        }
                    }
                    (_, value) => {
                        entry.value = value;
                        own.push(entry);
                    }
                }
            }
            for more in merges {
                if own.iter().all(|entry| entry.key != more.key) {
                    own.push(more);
                }
            }
            Document::Map(own)
        }
        Document::List(items) => Document::List(items.into_iter().map(merged).collect()),
        other => other,
    }
}

/// The first document of a YAML stream with several.
fn first_of_many(text: &str) -> Option<&str> {
    let start = text.strip_prefix("---\n").map_or(0, |_| 4);
    let rest = text.get(start..)?;
    let end = rest.find("\n---")?;
    rest.get(..end)
}

/// References to other keys get their values; what refers to something else is unknown.
pub fn interpolated(tree: Document) -> Keys {
    let mut references = BTreeMap::new();
    collect(&tree, "", &mut references);
    let mut keys = Keys::new(tree);
    for (path, text) in references {
        match resolved(&text, &keys, &path, MOST_REPLACED) {
            Some(value) => keys.set(&path, value),
            None => keys.set_unknown(&path, format!("`{text}` is set elsewhere")),
        }
    }
    keys
}

fn collect(node: &Document, path: &str, into: &mut BTreeMap<String, String>) {
    match node {
        Document::Map(entries) => {
            for entry in entries.iter().filter(|entry| !entry.key.contains('.')) {
                let path = if path.is_empty() {
                    entry.key.clone()
                } else {
                    format!("{path}.{}", entry.key)
                };
                collect(&entry.value, &path, into);
            }
        }
        Document::Text(text) if text.contains("${") && !path.is_empty() => {
            into.insert(path.into(), text.clone());
        }
        _ => {}
    }
}

/// The value of a text with references: `${a.b}`, `${.sibling}`, `${oc.env:X,default}`, `${mul:${a},2}`.
fn resolved(text: &str, keys: &Keys, path: &str, left: usize) -> Option<Document> {
    let mut text = text.to_string();
    for _ in 0..left.min(MOST_REPLACED) {
        // The innermost reference has no other inside.
        let Some(end) = text.find('}') else { break };
        let Some(start) = text.get(..end)?.rfind("${") else {
            break;
        };
        let name = text.get(start + 2..end)?.trim().to_string();
        let value = referred(&name, keys, path, left.saturating_sub(1))?;
        if start == 0 && end + 1 == text.len() {
            return match value {
                Document::Text(inner) if inner.contains("${") => {
                    resolved(&inner, keys, path, left.saturating_sub(1).min(8))
                }
                value => Some(value),
            };
        }
        text.replace_range(start..=end, &plain(&value)?);
    }
    (!text.contains("${")).then_some(Document::Text(text))
}

fn referred(name: &str, keys: &Keys, path: &str, left: usize) -> Option<Document> {
    if left == 0 {
        return None;
    }
    if let Some((function, arguments)) = name.split_once(':') {
        let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
        return match (function, arguments.as_slice()) {
            ("oc.env", [_, default]) => Some(Document::Text((*default).trim_matches('"').into())),
            ("mul", [a, b]) => arithmetic(a, b, i128::checked_mul),
            ("div", [a, b]) => arithmetic(a, b, i128::checked_div),
            _ => None,
        };
    }
    let full = match name.strip_prefix('.') {
        Some(sibling) => match path.rsplit_once('.') {
            Some((parent, _)) => format!("{parent}.{}", sibling.trim_start_matches('.')),
            None => sibling.trim_start_matches('.').to_string(),
        },
        None => name.to_string(),
    };
    // LLM-Foundry's `variables` are referred to with their section or without.
    let found = [full.clone(), format!("variables.{full}")];
    let value = found.iter().find_map(|path| keys.peek(path))?.clone();
    match value {
        Document::Text(inner) if inner.contains("${") => {
            resolved(&inner, keys, &full, left.saturating_sub(1).min(8))
        }
        Document::Map(_) if full == path => None,
        value => Some(value),
    }
}

fn arithmetic(a: &str, b: &str, of: impl FnOnce(i128, i128) -> Option<i128>) -> Option<Document> {
    of(a.parse().ok()?, b.parse().ok()?).map(Document::Int)
}

fn plain(value: &Document) -> Option<String> {
    match value {
        Document::Text(text) => Some(text.clone()),
        Document::Int(value) => Some(value.to_string()),
        Document::Number(value) => Some(value.to_string()),
        Document::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_have_the_values_they_name() {
        #[track_caller]
        fn check(text: &str, path: &str, expected: Option<Document>) {
            let keys = read(text).unwrap();
            let value = keys.text(path).is_known().then(|| keys.peek(path).cloned());
            assert_eq!(value.flatten(), expected, "{text}");
        }
        check("a: 3\nb: ${a}", "b", Some(Document::Int(3)));
        check("variables:\n  n: x\nb: ${n}-y", "b", Some("x-y".into()));
        check("a:\n  b: 4\n  c: ${.b}", "a.c", Some(Document::Int(4)));
        check("a: ${b}\nb: ${a}", "a", None);
        check("a: ${oc.env:HOME}", "a", None);
        check("a: ${oc.env:N,8}", "a", Some("8".into()));
        check("n: 4\na: ${mul:${n},2}", "a", Some(Document::Int(8)));
        check(
            "{\"a\": 1, // one\n \"b\": 2,\n}",
            "b",
            Some(Document::Int(2)),
        );
        check("a: 1\n---\nb: 2", "a", Some(Document::Int(1)));
    }
}
