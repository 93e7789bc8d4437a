//! A network as a document: maps and lists with names, as YAML and JSON have them.

use super::items::{Item, Position};
use super::{FIELD, Network};
use crate::Problem;
use headroom_base::document::{Document, Entry};

impl Network {
    /// The network as maps and lists; of a recorded model the name alone.
    pub fn document(&self) -> Document {
        if self.recording().is_some() {
            return Document::Text(self.text());
        }
        let mut top = Document::new();
        let mut parts: Vec<Document> = Vec::new();
        let mut layers: Vec<Vec<Document>> = Vec::new();
        let mut tensors = Vec::new();
        for item in &self.items {
            let fields = fields(item);
            match item.kind.place {
                Position::Top => top = top.with(item.kind.name, fields),
                Position::Part => {
                    parts.push(fields);
                    layers.push(Vec::new());
                }
                Position::Layer => {
                    let kind = Document::new().with("layer", item.kind.name);
                    if let Some(last) = layers.last_mut() {
                        last.push(joined(kind, fields));
                    }
                }
                Position::Tensor => tensors.push(fields),
            }
        }
        let parts = parts.into_iter().zip(layers);
        let parts = parts.map(|(part, layers)| part.with("layers", Document::List(layers)));
        top = top.with("parts", Document::List(parts.collect()));
        if !tensors.is_empty() {
            top = top.with("tensors", Document::List(tensors));
        }
        top
    }

    /// Reads a network from maps and lists.
    pub fn from_document(document: &Document) -> Result<Self, Problem> {
        let Document::Map(entries) = document else {
            return Err(Problem::new(FIELD, "", "a group of fields such as parts"));
        };
        let mut items = Vec::new();
        for Entry { key, value, .. } in entries {
            let at = format!("{FIELD}.{key}");
            match key.as_str() {
                "sizes" | "input" | "loss" => items.push(item(key, value, &at, &[])?),
                "parts" => {
                    for (i, part) in list(value, &at)?.iter().enumerate() {
                        read_part(part, &format!("{at}.{i}"), &mut items)?;
                    }
                }
                "tensors" => {
                    for (i, tensor) in list(value, &at)?.iter().enumerate() {
                        items.push(item("tensor", tensor, &format!("{at}.{i}"), &[])?);
                    }
                }
                _ => {
                    let expected = "one of sizes, input, parts, tensors, loss";
                    return Err(Problem::new(at, "", expected));
                }
            }
        }
        Self::of(items)
    }
}

fn read_part(part: &Document, at: &str, items: &mut Vec<Item>) -> Result<(), Problem> {
    items.push(item("part", part, at, &["layers"])?);
    let at = format!("{at}.layers");
    let empty = Document::List(Vec::new());
    for (i, layer) in list(part.get("layers").unwrap_or(&empty), &at)?
        .iter()
        .enumerate()
    {
        let at = format!("{at}.{i}");
        let kind = layer.get("layer").and_then(scalar);
        let Some(kind) = kind.filter(|kind| is_layer(kind)) else {
            let shown = layer.get("layer").and_then(scalar).unwrap_or_default();
            let expected = format!("one of {}", layer_names().join(", "));
            return Err(Problem::new(format!("{at}.layer"), shown, expected));
        };
        items.push(item(&kind, layer, &at, &["layer"])?);
    }
    Ok(())
}

fn layer_names() -> Vec<&'static str> {
    let layers = super::item_types()
        .iter()
        .filter(|item| item.place == Position::Layer);
    layers.map(|item| item.name).collect()
}

fn is_layer(name: &str) -> bool {
    layer_names().contains(&name)
}

fn item(kind: &str, value: &Document, at: &str, besides: &[&str]) -> Result<Item, Problem> {
    let Document::Map(entries) = value else {
        return Err(Problem::new(at, "", "a group of fields"));
    };
    let mut fields = Vec::new();
    for Entry { key, value, .. } in entries {
        if besides.contains(&key.as_str()) {
            continue;
        }
        let text = match value {
            Document::List(sizes) => {
                let sizes: Option<Vec<String>> = sizes.iter().map(scalar).collect();
                sizes.map(|size| size.join(":"))
            }
            other => scalar(other),
        };
        // What parts the compact text would make two of a value.
        let Some(text) = text.filter(|text| !text.contains([',', ';', '='])) else {
            return Err(Problem::new(format!("{at}.{key}"), "", "a plain value"));
        };
        fields.push((key.clone(), text));
    }
    Item::read(kind, fields, at)
}

fn list<'a>(value: &'a Document, at: &str) -> Result<&'a [Document], Problem> {
    match value {
        Document::List(items) => Ok(items),
        _ => Err(Problem::new(at, "", "a list")),
    }
}

fn scalar(value: &Document) -> Option<String> {
    match value {
        Document::Bool(value) => Some(if *value { "on" } else { "off" }.into()),
        Document::Int(value) => Some(value.to_string()),
        Document::Number(value) => Some(value.to_string()),
        Document::Text(value) => Some(value.clone()),
        Document::Null | Document::List(_) | Document::Map(_) => None,
    }
}

fn fields(item: &Item) -> Document {
    let value = |text: &str| match text.parse::<u64>() {
        Ok(number) if number.to_string() == text => Document::from(number),
        _ => Document::from(text),
    };
    let field = |(name, text): &(String, String)| {
        let shown = if name == "shape" {
            Document::List(text.split(':').map(value).collect())
        } else {
            value(text)
        };
        (name.clone(), shown)
    };
    item.fields().iter().map(field).collect()
}

fn joined(first: Document, second: Document) -> Document {
    match (first, second) {
        (Document::Map(mut a), Document::Map(b)) => {
            a.extend(b);
            Document::Map(a)
        }
        (first, _) => first,
    }
}
