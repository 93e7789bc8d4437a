//! Numbers with a confidence and sources, and the source tables they point into.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

/// `[value, confidence, source keys separated by spaces]` in the files.
#[derive(Deserialize)]
pub struct Sourced<T>(pub T, Confidence, String);

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
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
    origins: Vec<(Confidence, usize)>,
}

impl<'a> Sources<'a> {
    pub fn new(texts: &'a BTreeMap<String, String>) -> Self {
        Self {
            texts,
            sets: Vec::new(),
            origins: Vec::new(),
        }
    }

    /// The index of the set that `keys` names.
    pub fn set(&mut self, keys: &str, what: &str) -> Result<usize, String> {
        let set = keys
            .split_whitespace()
            .map(|key| {
                self.texts
                    .keys()
                    .position(|name| name == key)
                    .ok_or_else(|| format!("{what}: unknown source `{key}`"))
            })
            .collect::<Result<Vec<_>, _>>()?;
        if set.is_empty() {
            return Err(format!("{what}: no source"));
        }
        Ok(self
            .sets
            .iter()
            .position(|known| *known == set)
            .unwrap_or_else(|| {
                self.sets.push(set);
                self.sets.len() - 1
            }))
    }

    /// The Rust expression of a number, unknown where it is missing; see `Sourced` of the crate.
    pub fn number(&mut self, number: Option<&Sourced<f64>>, what: &str) -> Result<String, String> {
        let Some(Sourced(value, confidence, keys)) = number else {
            return Ok("Sourced::UNKNOWN".into());
        };
        let set = self.set(keys, what)?;
        Ok(format!(
            "Sourced::new({})",
            self.packed(*value, *confidence, set, what)?
        ))
    }

    /// A number and where it comes from in 32 bits.
    pub fn packed(
        &mut self,
        value: f64,
        confidence: Confidence,
        set: usize,
        what: &str,
    ) -> Result<u32, String> {
        const LIMIT: f64 = 8_388_608.0;
        let origin = (confidence, set);
        let at = self.origins.iter().position(|known| *known == origin);
        let at = at.unwrap_or_else(|| {
            self.origins.push(origin);
            self.origins.len() - 1
        });
        let (number, flag) = if value.fract() == 0.0 {
            (value, 0)
        } else {
            (value * 100.0, 1 << 23)
        };
        let exact = (number - number.round()).abs() < 1e-6;
        match u8::try_from(at + 1) {
            Ok(origin) if exact && (0.0..LIMIT).contains(&number) => {
                Ok((u32::from(origin) << 24) | flag | number.round() as u32)
            }
            Ok(_) => Err(format!(
                "{what}: {value}: expected a number below 8388608 with at most two decimals"
            )),
            Err(_) => Err(format!(
                "{what}: more than 255 pairs of confidence and sources"
            )),
        }
    }

    /// The constant `ORIGINS`, into which packed numbers point.
    pub fn origins(&self) -> String {
        let mut rust = String::from("pub static ORIGINS: &[Origin] = &[\n");
        for (confidence, set) in &self.origins {
            let _ = writeln!(
                rust,
                "    (Confidence::{confidence:?}, &{:?}),",
                self.sets[*set]
            );
        }
        rust.push_str("];\n");
        rust
    }

    /// The constant `SOURCES`.
    pub fn texts(&self) -> String {
        let mut rust = String::from("pub static SOURCES: &[&str] = &[\n");
        for text in self.texts.values() {
            let _ = writeln!(rust, "    {text:?},");
        }
        rust.push_str("];\n");
        rust
    }

    /// The constants `SOURCES` and `SOURCE_SETS`.
    pub fn table(&self) -> String {
        let mut rust = self.texts();
        rust.push_str("pub static SOURCE_SETS: &[&[u8]] = &[\n");
        for set in &self.sets {
            let _ = writeln!(rust, "    &{set:?},");
        }
        rust.push_str("];\n");
        rust
    }
}

/// Ids must rise, so that a person finds an entry and nobody adds it twice.
pub fn in_order<'a>(file: &str, ids: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut last = "";
    for id in ids {
        if id <= last {
            return Err(format!(
                "{file}: `{id}` stands after `{last}`; expected ids in order, each once"
            ));
        }
        last = id;
    }
    Ok(())
}
