//! Numbers with a confidence and sources, and the source tables they point into.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

/// `[value, confidence, source keys separated by spaces]` in the files.
#[derive(Deserialize)]
pub struct Sourced<T>(pub T, Confidence, String);

#[derive(Clone, Copy, Debug, Deserialize)]
pub enum Confidence {
    A,
    B,
    C,
    E,
}

/// The sources of one file, and the distinct sets of them that its numbers name.
pub struct Sources<'a> {
    texts: &'a BTreeMap<String, String>,
    sets: Vec<Vec<usize>>,
}

impl<'a> Sources<'a> {
    pub fn new(texts: &'a BTreeMap<String, String>) -> Self {
        Self {
            texts,
            sets: Vec::new(),
        }
    }

    /// The index of the set that `keys` names.
    pub fn set(&mut self, keys: &str, what: &str) -> Result<usize, String> {
        let set = keys
            .split_whitespace()
            .map(|key| {
                self.texts
                    .keys()
                    .position(|it| it == key)
                    .ok_or_else(|| format!("{what}: unknown source `{key}`"))
            })
            .collect::<Result<Vec<_>, _>>()?;
        if set.is_empty() {
            return Err(format!("{what}: no source"));
        }
        Ok(self
            .sets
            .iter()
            .position(|it| *it == set)
            .unwrap_or_else(|| {
                self.sets.push(set);
                self.sets.len() - 1
            }))
    }

    /// The Rust expression of a number, unknown where it is missing.
    pub fn number(&mut self, number: Option<&Sourced<f64>>, what: &str) -> Result<String, String> {
        let Some(Sourced(value, confidence, keys)) = number else {
            return Ok("Sourced::UNKNOWN".into());
        };
        let set = self.set(keys, what)?;
        Ok(format!(
            "Sourced::new({value:?}, Confidence::{confidence:?}, {set})"
        ))
    }

    /// The constants `SOURCES` and `SOURCE_SETS`.
    pub fn table(&self) -> String {
        let mut rust = String::from("pub static SOURCES: &[&str] = &[\n");
        for text in self.texts.values() {
            let _ = writeln!(rust, "    {text:?},");
        }
        rust.push_str("];\npub static SOURCE_SETS: &[&[u8]] = &[\n");
        for set in &self.sets {
            let _ = writeln!(rust, "    &{set:?},");
        }
        rust.push_str("];\n");
        rust
    }
}
