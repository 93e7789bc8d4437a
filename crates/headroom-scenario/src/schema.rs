//! The scenario's JSON Schema and its documentation, derived from the settings.

use super::Scenario;
use super::network::{self, Position, item_types};
use super::settings::{self, LARGEST_SIZE, LONGEST_LIST, LONGEST_NAME, Setting, Value, ValueType};
use headroom_base::document::Document;

/// The JSON Schema (2020-12) of a scenario file.
pub fn schema() -> Document {
    let mut schema = object()
        .with("$schema", "https://json-schema.org/draft/2020-12/schema")
        .with(
            "$id",
            format!("urn:headroom:scenario:{}", Scenario::VERSION),
        )
        .with("title", "Headroom scenario");
    *schema.at(["properties", "version"].into_iter()) = Document::new()
        .with("const", Scenario::VERSION)
        .with("description", "The version of this format.");
    for setting in settings::all() {
        let parts: Vec<&str> = setting.path.split('.').collect();
        let (name, groups) = parts.split_last().unwrap_or((&"", &[]));
        let mut node = &mut schema;
        for group in groups {
            node = node.at(["properties", group].into_iter());
            if node.get("properties").is_none() {
                *node = object();
            }
        }
        *node.at(["properties", name].into_iter()) = property(setting);
    }
    schema
}

fn object() -> Document {
    Document::new()
        .with("type", "object")
        .with("additionalProperties", false)
        .with("properties", Document::new())
}

fn has_fields(setting: &Setting) -> bool {
    settings::all()
        .iter()
        .any(|other| other.parent == Some(setting.path))
}

fn property(setting: &Setting) -> Document {
    let base = Document::new().with("title", setting.label).with(
        "description",
        format!("{} {}", setting.help, setting.memory),
    );
    let typed = match setting.value_type {
        ValueType::Whole { low, high } => base
            .with("type", "integer")
            .with("minimum", low)
            .with("maximum", high),
        ValueType::Number { low, high } => base
            .with("type", "number")
            .with("minimum", low)
            .with("maximum", high),
        ValueType::Switch if has_fields(setting) => {
            // Its fields say that it is on; it may also be just on, off or null.
            let types = ["object", "boolean", "null"].map(Document::from);
            base.with("type", Document::List(types.into()))
                .with("additionalProperties", false)
                .with("properties", Document::new())
        }
        ValueType::Switch => base.with("type", "boolean"),
        ValueType::Choice(choices) => {
            let ids = choices.iter().map(|choice| choice.id.into()).collect();
            base.with("type", "string")
                .with("enum", Document::List(ids))
        }
        ValueType::Gpu | ValueType::Model => base
            .with("type", "string")
            .with("maxLength", LONGEST_NAME as u64),
        ValueType::Version { .. } => base
            .with("type", "string")
            .with("pattern", "^[0-9]+\\.[0-9]+"),
        ValueType::Words => base
            .with("type", "array")
            .with("maxItems", LONGEST_LIST as u64)
            .with("items", Document::new().with("type", "string")),
        ValueType::Network => network(base),
        ValueType::Sizes => {
            let size = Document::new()
                .with("type", "integer")
                .with("minimum", 0_u64)
                .with("maximum", LARGEST_SIZE);
            base.with("type", "object")
                .with("additionalProperties", size)
        }
    };
    let default: Document = match setting.value(&Scenario::default()) {
        Value::Whole(value) => value.into(),
        Value::Number(value) => value.into(),
        Value::Switch(value) => value.into(),
        Value::Text(value) => value.into(),
        version @ Value::Version(..) => version.to_string().into(),
        Value::Words(value) => value.into(),
        Value::Sizes(_) => Document::new(),
        Value::Network(_) => Document::Null,
    };
    let typed = typed
        .with("default", default)
        .with("x-link-key", setting.key);
    if setting.unit.is_empty() {
        typed
    } else {
        typed.with("x-unit", setting.unit)
    }
}

/// A declared network: its item_types of items, each with its fields.
fn network(base: Document) -> Document {
    let list = |of: Document| Document::new().with("type", "array").with("items", of);
    let of = |place| item_types().iter().filter(move |kind| kind.place == place);
    let mut layers = Vec::new();
    for kind in of(Position::Layer) {
        let named = Document::new().with("const", kind.name);
        let required = Document::List(vec!["layer".into()]);
        layers.push(item(kind, &[("layer", named)]).with("required", required));
    }
    let layers = list(Document::new().with("oneOf", Document::List(layers)));
    let mut typed = base
        .with("type", "object")
        .with("additionalProperties", false);
    for kind in of(Position::Top) {
        let fields = if kind.name == "sizes" {
            let size = Document::new()
                .with("type", "integer")
                .with("minimum", 0_u64);
            Document::new()
                .with("type", "object")
                .with("description", kind.about)
                .with("additionalProperties", size)
        } else {
            item(kind, &[])
        };
        *typed.at(["properties", kind.name].into_iter()) = fields;
    }
    for kind in of(Position::Part) {
        let parts = list(item(kind, &[("layers", layers.clone())]));
        *typed.at(["properties", "parts"].into_iter()) = parts;
    }
    for kind in of(Position::Tensor) {
        *typed.at(["properties", "tensors"].into_iter()) = list(item(kind, &[]));
    }
    typed
}

fn item(kind: &network::ItemType, extra: &[(&str, Document)]) -> Document {
    let mut item = object().with("description", kind.about);
    for (name, typed) in extra {
        *item.at(["properties", name].into_iter()) = typed.clone();
    }
    for field in kind.fields {
        let described = Document::new().with("description", field.takes.expected());
        *item.at(["properties", field.name].into_iter()) = described;
    }
    item
}

/// What a declared network is made of, for `docs/scenario.md`.
pub fn network_markdown() -> String {
    let mut text =
        String::from("| item | fields, with what holds by default | what it is |\n|---|---|---|\n");
    for kind in item_types() {
        let fields: Vec<String> = kind
            .fields
            .iter()
            .map(|field| {
                if field.default.is_empty() {
                    format!("`{}`", field.name)
                } else {
                    format!("`{}` ({})", field.name, field.default)
                }
            })
            .collect();
        let fields = if fields.is_empty() {
            "any names".into()
        } else {
            fields.join(", ")
        };
        text.push_str(&format!(
            "| `{}` | {fields} | {} |\n",
            kind.name, kind.about
        ));
    }
    text
}

/// A Markdown table of each section's settings, for `docs/scenario.md`.
pub fn markdown() -> String {
    let mut text = String::new();
    for (section, title) in settings::SECTIONS {
        text.push_str(&format!(
            "### {title}\n\n| field | link key | accepts | default | what it is, and what it means for memory |\n|---|---|---|---|---|\n"
        ));
        let of_section = |setting: &&Setting| setting.section() == *section;
        for setting in settings::all().iter().filter(of_section) {
            let default = setting.default();
            let default = if default.is_empty() {
                "(none)".into()
            } else {
                format!("`{default}`")
            };
            let unit = if setting.unit.is_empty() {
                String::new()
            } else {
                format!(" {}", setting.unit)
            };
            text.push_str(&format!(
                "| `{}` | `{}` | {}{unit} | {default} | {} *{}* |\n",
                setting.path,
                setting.key,
                setting.expected(),
                setting.help,
                setting.memory
            ));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;

    /// Whether the schema allows the document, as far as types, bounds and names go.
    fn allows(schema: &Document, document: &Document) -> bool {
        let whole = |key: &str| match schema.get(key) {
            Some(Document::Int(value)) => Some(*value as f64),
            Some(Document::Number(value)) => Some(*value),
            _ => None,
        };
        let within = |number: f64| {
            whole("minimum").is_none_or(|low| low <= number)
                && whole("maximum").is_none_or(|high| number <= high)
        };
        let is = |name: &str| match schema.get("type") {
            Some(Document::List(all)) => all.contains(&name.into()),
            Some(value) => *value == name.into(),
            None => true,
        };
        let listed = |document: &Document| match schema.get("enum") {
            Some(Document::List(all)) => all.contains(document),
            _ => schema.get("const").is_none_or(|only| only == document),
        };
        if let Some(Document::List(all)) = schema.get("oneOf") {
            return all.iter().filter(|option| allows(option, document)).count() == 1;
        }
        listed(document)
            && match document {
                Document::Null => is("null"),
                Document::Bool(_) => is("boolean"),
                Document::Int(value) => (is("integer") || is("number")) && within(*value as f64),
                Document::Number(value) => is("number") && within(*value),
                Document::Text(_) => is("string"),
                Document::List(items) => {
                    let each = schema.get("items");
                    is("array")
                        && items
                            .iter()
                            .all(|item| each.is_none_or(|each| allows(each, item)))
                }
                Document::Map(entries) => {
                    let one = |entry: &headroom_base::document::Entry| {
                        let field = schema
                            .get("properties")
                            .and_then(|properties| properties.get(&entry.key));
                        match (field, schema.get("additionalProperties")) {
                            (Some(field), _) => allows(field, &entry.value),
                            (None, Some(other @ Document::Map(_))) => allows(other, &entry.value),
                            (None, _) => false,
                        }
                    };
                    is("object") && entries.iter().all(one)
                }
            }
    }

    #[test]
    fn the_schema_allows_what_is_written_and_no_other_name() {
        let schema = schema();
        let mut dice = headroom_testing::Dice::new(4);
        for _ in 0..300 {
            let written = document::write(&crate::sample::scenario(&mut dice));
            assert!(allows(&schema, &written), "{written:?}");
            assert!(!allows(&schema, &written.clone().with("colour", "red")));
        }
        let misspelt = Document::new().with("data", Document::new().with("micro_bach", 4_u64));
        assert!(!allows(&schema, &misspelt));
        let too_few = Document::new().with("data", Document::new().with("micro_batch", 0_u64));
        assert!(!allows(&schema, &too_few));
    }

    #[test]
    fn the_schema_has_every_setting_where_files_have_it() {
        let schema = schema();
        for setting in settings::all() {
            let mut node = &schema;
            for part in setting.path.split('.') {
                node = node
                    .get("properties")
                    .and_then(|properties| properties.get(part))
                    .unwrap();
            }
            assert_eq!(node.get("x-link-key"), Some(&setting.key.into()));
        }
        let lora = |key: &str| {
            let training = schema
                .get("properties")?
                .get("training")?
                .get("properties")?;
            training.get("lora")?.get(key)
        };
        assert!(lora("properties").is_some_and(|properties| properties.get("rank").is_some()));
        assert_eq!(lora("title"), Some(&"LoRA adapters".into()));
    }
}
