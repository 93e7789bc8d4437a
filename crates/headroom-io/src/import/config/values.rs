//! Values of a configuration as what they are.

use headroom_base::document::Document;

pub(super) fn text<'a>(document: &'a Document, key: &str) -> Option<&'a str> {
    match document.get(key)? {
        Document::Text(value) => Some(value),
        _ => None,
    }
}

/// A single value as text; `None` for `null`, lists and groups.
pub(super) fn shown(value: &Document) -> Option<String> {
    match value {
        Document::Bool(value) => Some(value.to_string()),
        Document::Int(value) => Some(value.to_string()),
        Document::Number(value) => Some(value.to_string()),
        Document::Text(value) => Some(value.clone()),
        Document::Null | Document::List(_) | Document::Map(_) => None,
    }
}

pub(super) fn number(value: &Document) -> Option<f64> {
    match value {
        Document::Int(value) => Some(*value as f64),
        Document::Number(value) => Some(*value),
        _ => None,
    }
}

pub(super) fn keys(document: &Document) -> impl Iterator<Item = &str> {
    let entries = match document {
        Document::Map(entries) => entries.as_slice(),
        _ => &[],
    };
    entries.iter().map(|entry| entry.key.as_str())
}

/// The rates of dropout layers in the training of this model.
pub(super) fn dropouts(document: &Document) -> Vec<f64> {
    // Heads of other tasks have a rate of their own.
    let is_rate = |key: &&str| {
        key.contains("drop")
            && !key.contains("classif")
            && *key != "token_dropout"
            && !key.starts_with("qa_")
            && !key.starts_with("summary_")
    };
    keys(document)
        .filter(is_rate)
        .filter_map(|key| document.get(key).and_then(number))
        .collect()
}

/// How many labels the file has names for.
pub(super) fn labels(document: &Document) -> Option<u64> {
    match document.get("id2label") {
        Some(Document::Map(labels)) => Some(labels.len().max(1) as u64),
        _ => match document.get("num_labels") {
            Some(Document::Int(count)) => u64::try_from(*count).ok(),
            _ => None,
        },
    }
}
