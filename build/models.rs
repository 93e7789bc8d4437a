//! `catalog/models/*.yaml` as constants.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

use crate::sourced::{Confidence, Sources};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    sources: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    models: Vec<Model>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    id: String,
    name: String,
    #[serde(default)]
    hf_id: String,
    arch: String,
    #[serde(default)]
    class: String,
    sizes: Sizes,
    #[serde(default)]
    traits: Vec<String>,
    parameters: u64,
    #[serde(default)]
    active: u64,
    confidence: Confidence,
    sources: Vec<String>,
    #[serde(default)]
    note: String,
}

/// Sizes in the order of the file: the same keys in the same order share one table of names.
struct Sizes(Vec<(String, u32)>);

#[derive(Deserialize)]
#[serde(untagged)]
enum Size {
    One(u32),
    Many(Vec<u32>),
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Sizes;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a map of sizes")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Sizes, A::Error> {
                let mut all = Vec::new();
                while let Some((key, size)) = map.next_entry::<String, Size>()? {
                    match size {
                        Size::One(value) => all.push((key, value)),
                        Size::Many(values) => {
                            all.extend(values.into_iter().map(|value| (key.clone(), value)));
                        }
                    }
                }
                Ok(Sizes(all))
            }
        }
        from.deserialize_map(Visitor)
    }
}

/// `files` are the stems of the files with their content; the stem is the models' category.
pub fn table(sources: &SourceFile, files: &[(String, File)]) -> Result<String, String> {
    let mut sources = Sources::new(&sources.sources);
    let mut models: Vec<(&str, &Model)> = files
        .iter()
        .flat_map(|(category, file)| file.models.iter().map(move |it| (category.as_str(), it)))
        .collect();
    models.sort_by(|a, b| a.1.id.cmp(&b.1.id));
    let mut shapes: Vec<Vec<&str>> = Vec::new();
    let mut rows = String::new();
    for (category, model) in &models {
        let keys: Vec<&str> = model.sizes.0.iter().map(|(key, _)| key.as_str()).collect();
        let shape = shapes.iter().position(|it| *it == keys).unwrap_or_else(|| {
            shapes.push(keys);
            shapes.len() - 1
        });
        let values: Vec<u32> = model.sizes.0.iter().map(|(_, value)| *value).collect();
        // What was read where, after the colon, is for people who edit the file.
        let named: Vec<&str> = model
            .sources
            .iter()
            .map(|it| it.split_once(':').map_or(it.as_str(), |(key, _)| key))
            .collect();
        let set = sources.set(&named.join(" "), &model.id)?;
        let _ = writeln!(
            rows,
            "    ModelEntry {{ id: {:?}, name: {:?}, hf_id: {:?}, category: Category::{}, arch: {:?}, class: {:?}, \
             keys: SHAPES[{shape}], values: &{values:?}, traits: &{:?}, parameters: {}, active: {}, \
             confidence: Confidence::{:?}, set: {set}, note: {:?} }},",
            model.id,
            model.name,
            model.hf_id,
            variant(category),
            model.arch,
            model.class,
            model.traits,
            model.parameters,
            model.active,
            model.confidence,
            model.note.trim(),
        );
    }
    let mut rust = sources.table();
    rust.push_str("const SHAPES: &[&[&str]] = &[\n");
    for shape in shapes {
        let _ = writeln!(rust, "    &{shape:?},");
    }
    let _ = writeln!(
        rust,
        "];\npub static MODELS: [ModelEntry; {}] = [\n{rows}];",
        models.len()
    );
    Ok(rust)
}

/// `encoder-decoders` names the variant `EncoderDecoders`.
fn variant(stem: &str) -> String {
    stem.split('-')
        .map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_uppercase() + rest
        })
        .collect()
}
