//! `catalog/model-types.yaml` and `catalog/configurations.yaml` as constants.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;
use serde_yaml::{Mapping, Value};

use crate::sourced::in_order;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelType {
    name: String,
    #[serde(default)]
    arch: String,
    #[serde(default)]
    activations: Vec<String>,
    #[serde(default)]
    sizes: BTreeMap<String, u64>,
    #[serde(default)]
    fixed: Mapping,
    #[serde(default)]
    parts: Vec<(String, String, String)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    model: String,
    model_type: String,
    #[serde(default)]
    required: Mapping,
    #[serde(default)]
    defaults: Mapping,
}

pub fn table(types: &[ModelType], configurations: &[Configuration]) -> Result<String, String> {
    in_order("model types", types.iter().map(|row| row.name.as_str()))?;
    let models = configurations.iter().map(|row| row.model.as_str());
    in_order("configurations", models)?;
    let mut rust = String::from("pub static MODEL_TYPES: &[ModelType] = &[\n");
    for row in types {
        let sizes: Vec<_> = row.sizes.iter().collect();
        let _ = writeln!(
            rust,
            "    ModelType {{ name: {:?}, arch: {:?}, activations: &{:?}, sizes: &{sizes:?}, fixed: &{:?}, parts: &{:?} }},",
            row.name,
            row.arch,
            row.activations,
            flat(&row.fixed, &row.name)?,
            row.parts,
        );
    }
    rust.push_str("];\npub static CONFIGURATIONS: &[Configuration] = &[\n");
    for row in configurations {
        let _ = writeln!(
            rust,
            "    Configuration {{ model: {:?}, model_type: {:?}, required: &{:?}, defaults: &{:?} }},",
            row.model,
            row.model_type,
            flat(&row.required, &row.model)?,
            flat(&row.defaults, &row.model)?,
        );
    }
    rust.push_str("];\n");
    Ok(rust)
}

/// The values of all groups as text, by dotted key.
fn flat(group: &Mapping, name: &str) -> Result<Vec<(String, String)>, String> {
    let mut all = Vec::new();
    for (key, value) in group {
        let key = key.as_str().ok_or_else(|| format!("{name}: {key:?}"))?;
        match value {
            Value::Mapping(inner) => {
                let inner = flat(inner, name)?.into_iter();
                all.extend(inner.map(|(below, value)| (format!("{key}.{below}"), value)));
            }
            value => all.push((key.into(), text(value, name)?)),
        }
    }
    Ok(all)
}

fn text(value: &Value, name: &str) -> Result<String, String> {
    match value {
        Value::Bool(value) => Ok(value.to_string()),
        Value::Number(value) => Ok(value.to_string()),
        Value::String(value) => Ok(value.clone()),
        Value::Sequence(items) => {
            let items: Result<Vec<_>, _> = items.iter().map(|item| text(item, name)).collect();
            Ok(items?.join(","))
        }
        value => Err(format!("{name}: {value:?}: expected a value or a list")),
    }
}
