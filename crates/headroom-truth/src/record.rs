//! Reads a truth file: one JSON object a line, in the form of its recorder.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};

use super::metric::Metric;
use headroom_core::estimate::Phase;

/// Parses a line. Recorders write null for what they leave out.
pub fn parse(line: &str) -> Result<Value, String> {
    serde_json::from_str(line)
        .map(without_nulls)
        .map_err(|problem| format!("not a JSON object: {problem}"))
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name, without_nulls(value)))
                .collect()
        }
        other => other,
    }
}

/// Every line that parses and has the fields of `T`.
pub fn read_all<T: DeserializeOwned>(text: &str) -> Vec<T> {
    let values = text.lines().filter_map(|line| parse(line).ok());
    values.filter_map(|value| read(&value).ok()).collect()
}

pub fn read<T: DeserializeOwned>(record: &Value) -> Result<T, String> {
    T::deserialize(record).map_err(|problem| problem.to_string())
}

/// A value that is written as a switch, as a number or as text.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Mixed {
    Switch(bool),
    Number(u64),
    Text(String),
    Other(IgnoredAny),
}

impl Default for Mixed {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl Mixed {
    pub fn switch(&self) -> Option<bool> {
        match self {
            Self::Switch(on) => Some(*on),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }
}

/// Refuses fields that are not read, except for those that change no memory.
pub fn refuse(rest: &Map<String, Value>, without_effect: &[&str]) -> Result<(), String> {
    match rest
        .keys()
        .find(|name| !without_effect.contains(&name.as_str()))
    {
        Some(name) => Err(format!("`{name}` is not modelled")),
        None => Ok(()),
    }
}

/// What a run measured.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Numbers {
    peak_allocated: Option<u64>,
    peak_reserved: Option<u64>,
    peak_reserved_expandable: Option<u64>,
    /// Of a second run, or of the first one's events through a simulated allocator.
    expandable: Reserved,
    sim: Simulated,
    fwd_end: Option<u64>,
    static_end: Option<u64>,
    phase_peaks: BTreeMap<String, u64>,
    host_pinned: Pinned,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Simulated {
    expandable: Reserved,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reserved {
    peak_reserved: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pinned {
    allocated_peak: Option<u64>,
}

impl Numbers {
    pub fn get(&self, metric: Metric) -> Option<u64> {
        match metric {
            Metric::Allocated => self.peak_allocated,
            Metric::Reserved => self.peak_reserved,
            Metric::Expandable => (self.sim.expandable.peak_reserved)
                .or(self.expandable.peak_reserved)
                .or(self.peak_reserved_expandable),
            Metric::Forward => self.fwd_end,
            Metric::Static => self.static_end,
            Metric::Pinned => self.host_pinned.allocated_peak,
            Metric::Phase(phase) => {
                let name = match phase {
                    Phase::Forward => "forward",
                    Phase::Backward => "backward",
                    Phase::Optimizer => "optimizer",
                    Phase::Evaluation => "evaluation",
                    Phase::Setup | Phase::Generation | Phase::Reference | Phase::Resume => {
                        return None;
                    }
                };
                self.phase_peaks.get(name).copied()
            }
        }
    }
}
