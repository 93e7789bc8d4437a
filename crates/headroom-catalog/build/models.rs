//! `catalog/models/*.yaml` as constants.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::Deserialize;

use crate::sourced::{Confidence, Sources, in_order};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    sources: BTreeMap<String, String>,
}

/// `catalog/architectures.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architectures {
    without_forward: Vec<String>,
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
    /// For a model that answers by its recorded graph, graphs/ID.json.gz: the size that is the graph's length, or `sequence`.
    #[serde(default)]
    graph: String,
    /// The library class that was counted; for people.
    #[serde(default)]
    #[expect(dead_code, reason = "kept in the file, left out of the program")]
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
    #[expect(dead_code, reason = "kept in the file, left out of the program")]
    note: String,
}

/// Sizes in the order of the file: the same keys in the same order share one table of names.
struct Sizes(Vec<(String, Size)>);

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
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(Sizes(all))
            }
        }
        from.deserialize_map(Visitor)
    }
}

/// The ids of all models.
pub fn ids(files: &[(String, File)]) -> BTreeSet<&str> {
    let models = files.iter().flat_map(|(_, file)| &file.models);
    models.map(|model| model.id.as_str()).collect()
}

/// The ids of the models that answer by a recorded graph.
pub fn recorded(files: &[(String, File)]) -> Vec<&str> {
    let models = files.iter().flat_map(|(_, file)| &file.models);
    models
        .filter(|model| !model.graph.is_empty())
        .map(|model| model.id.as_str())
        .collect()
}

/// `files` are the stems of the files with their content; the stem is the models' category.
pub fn table(
    sources: &SourceFile,
    architectures: &Architectures,
    files: &[(String, File)],
) -> Result<String, String> {
    let absent = &architectures.without_forward;
    in_order("architectures", absent.iter().map(String::as_str))?;
    for (category, file) in files {
        in_order(category, file.models.iter().map(|model| model.id.as_str()))?;
    }
    let mut sources = Sources::new(&sources.sources);
    let mut models: Vec<(&str, &Model)> = files
        .iter()
        .flat_map(|(category, file)| {
            file.models
                .iter()
                .map(move |model| (category.as_str(), model))
        })
        .collect();
    models.sort_by(|a, b| a.1.id.cmp(&b.1.id));
    let mut shapes: Vec<Vec<&str>> = Vec::new();
    let mut trait_sets: Vec<&[String]> = Vec::new();
    let mut rows = String::new();
    for (category, model) in &models {
        let keys: Vec<&str> = model.sizes.0.iter().map(|(key, _)| key.as_str()).collect();
        let shape = intern(&mut shapes, keys);
        let traits = intern(&mut trait_sets, model.traits.as_slice());
        let values: Vec<u8> = model
            .sizes
            .0
            .iter()
            .flat_map(|(_, size)| packed(size))
            .collect();
        // What was read where, after the colon, is for people who edit the file.
        let named: Vec<&str> = model
            .sources
            .iter()
            .map(|text| text.split_once(':').map_or(text.as_str(), |(key, _)| key))
            .collect();
        let set = sources.set(&named.join(" "), &model.id)?;
        let _ = writeln!(
            rows,
            "    ModelEntry {{ id: {:?}, name: {:?}, hf_id: {:?}, category: ModelCategory::{}, arch: {:?}, runs: {}, graph: {:?}, \
             keys: SHAPES[{shape}], packed: &{values:?}, traits: TRAITS[{traits}], parameters: {}, active: {}, \
             confidence: Confidence::{:?}, set: {set} }},",
            model.id,
            model.name,
            model.hf_id,
            variant(category),
            model.arch,
            !model.graph.is_empty() || !absent.contains(&model.arch),
            model.graph,
            model.parameters,
            model.active,
            model.confidence,
        );
    }
    let mut rust = sources.table();
    rust.push_str("const SHAPES: &[&[&str]] = &[\n");
    for shape in shapes {
        let _ = writeln!(rust, "    &{shape:?},");
    }
    rust.push_str("];\nconst TRAITS: &[&[&str]] = &[\n");
    for traits in trait_sets {
        let _ = writeln!(rust, "    &{traits:?},");
    }
    let _ = writeln!(
        rust,
        "];\npub static MODELS: [ModelEntry; {}] = [\n{rows}];",
        models.len()
    );
    Ok(rust)
}

/// Where a value stands in a table, added at its end if it is new.
fn intern<T: PartialEq>(table: &mut Vec<T>, value: T) -> usize {
    table
        .iter()
        .position(|known| *known == value)
        .unwrap_or_else(|| {
            table.push(value);
            table.len() - 1
        })
}

/// One number as twice its value; a list as twice its length and one, then its numbers. Seven bits a byte, the low ones first.
fn packed(size: &Size) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut push = |mut value: u64| {
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    };
    match size {
        Size::One(value) => push(u64::from(*value) << 1),
        Size::Many(values) => {
            push(((values.len() as u64) << 1) | 1);
            for value in values {
                push(u64::from(*value));
            }
        }
    }
    bytes
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
