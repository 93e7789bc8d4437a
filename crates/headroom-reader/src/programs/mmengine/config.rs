//! A configuration in Python: its module's names over those of its `_base_` files, as MMEngine merges them.

use headroom_base::document::{Document, Entry};
use headroom_scripts::Beside;
use headroom_scripts::python::{Module, Value, evaluate};

use super::super::calls;
use crate::keys::Keys;

/// Files of a chain of bases.
const MOST_FILES: usize = 32;

#[derive(Debug)]
pub struct Config {
    pub keys: Keys,
    /// Bases that are not at hand, by the path that names them.
    pub missing: Vec<String>,
}

impl Config {
    pub fn of(module: &Module, text: &str, beside: &dyn Beside) -> Self {
        let mut missing = Vec::new();
        let mut left = MOST_FILES;
        let tree = merged(module, text, beside, &mut missing, &mut left);
        Self {
            keys: Keys::new(tree),
            missing,
        }
    }
}

fn merged(
    module: &Module,
    text: &str,
    beside: &dyn Beside,
    missing: &mut Vec<String>,
    left: &mut usize,
) -> Document {
    let mut tree = Document::new();
    for base in bases(module, text) {
        let found = beside.text(&base).filter(|own| own != text && *left > 0);
        match found {
            Some(own) => {
                *left -= 1;
                let module = evaluate(&own, &[], beside);
                let below = merged(&module, &own, beside, missing, left);
                merge(&mut tree, below);
            }
            None => missing.push(base),
        }
    }
    merge(&mut tree, names(module));
    tree
}

/// What `_base_` names, or `with read_base():` imports.
pub fn bases(module: &Module, text: &str) -> Vec<String> {
    let of = |value: &Value| match value {
        Value::Text(path) => Some(path.clone()),
        _ => None,
    };
    let said = module.names.iter().find(|(name, _)| name == "_base_");
    match said.map(|(_, value)| value) {
        Some(Value::List(items)) => return items.iter().filter_map(of).collect(),
        Some(value) => return of(value).into_iter().collect(),
        None => {}
    }
    if !text.contains("read_base()") {
        return Vec::new();
    }
    let imports = text.lines().filter_map(|line| {
        let path = line.trim().strip_prefix("from ")?;
        let (path, _) = path.split_once(" import ")?;
        let own = path.starts_with('.') || path.contains("configs") || path.contains("_base_");
        own.then(|| format!("{}.py", path.trim_start_matches('.').replace('.', "/")))
    });
    imports.collect()
}

fn names(module: &Module) -> Document {
    let entry = |(name, value): &(String, Value)| {
        let value = calls::document(value, 24)?;
        (name != "_base_").then(|| (name.clone(), value))
    };
    module.names.iter().filter_map(entry).collect()
}

/// Maps are merged; `_delete_=True` replaces what lies below.
fn merge(into: &mut Document, over: Document) {
    match (into, over) {
        (Document::Map(entries), Document::Map(more)) => {
            for Entry { key, value, .. } in more {
                match entries.iter_mut().find(|entry| entry.key == key) {
                    Some(known) if value.get("_delete_") != Some(&Document::Bool(true)) => {
                        merge(&mut known.value, value);
                    }
                    Some(known) => known.value = value,
                    None => entries.push(Entry {
                        key,
                        value,
                        comment: "",
                    }),
                }
            }
        }
        (into, over) => *into = over,
    }
}
