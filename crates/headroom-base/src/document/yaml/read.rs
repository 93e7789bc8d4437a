//! Reading YAML.

use serde_yaml::Value;

use crate::document::{Document, Entry};

/// The document, or what was wrong and where.
pub fn read(text: &str) -> Result<Document, String> {
    let value: Value = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
    document(value)
}

fn document(value: Value) -> Result<Document, String> {
    Ok(match value {
        Value::Null => Document::Null,
        Value::Bool(value) => Document::Bool(value),
        Value::Number(value) => match (value.as_u64(), value.as_i64()) {
            (Some(whole), _) => Document::Int(whole.into()),
            (_, Some(whole)) => Document::Int(whole.into()),
            _ => Document::Number(value.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(value) => Document::Text(value),
        Value::Sequence(items) => {
            Document::List(items.into_iter().map(document).collect::<Result<_, _>>()?)
        }
        Value::Mapping(entries) => {
            let entry = |(key, value): (Value, Value)| {
                Ok(Entry {
                    key: self::key(key)?,
                    value: document(value)?,
                    comment: "",
                })
            };
            Document::Map(
                entries
                    .into_iter()
                    .map(entry)
                    .collect::<Result<_, String>>()?,
            )
        }
        Value::Tagged(tagged) => return Err(format!("expected no tag, found {}", tagged.tag)),
    })
}

fn key(key: Value) -> Result<String, String> {
    match key {
        Value::String(value) => Ok(value),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Number(value) => Ok(value.to_string()),
        _ => Err("expected keys to be text".into()),
    }
}
