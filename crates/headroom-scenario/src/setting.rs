//! One field of a scenario: what it is called, what it accepts, how it is read and written.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use super::network::Network;
use super::problem::shortened;
use super::values::{
    LARGEST_SIZE, LONGEST_LIST, is_key, name, sizes, switch, version, whole, words,
};
use super::{Choice, Problem, Scenario, quantity};
use headroom_catalog as catalog;

/// A setting as a key: settings are equal and ordered by their paths.
pub type SettingId = &'static Setting;

/// One field of the scenario: what it is called, what it accepts, what it means for memory.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its place in the scenario, and its name in files and flags.
    pub path: &'static str,
    /// Its name in links. A key, once published, keeps its meaning.
    pub key: &'static str,
    pub label: &'static str,
    /// Empty where the value is not a quantity.
    pub unit: &'static str,
    pub value_type: ValueType,
    pub help: &'static str,
    /// What the setting does to memory, in a sentence.
    pub memory: &'static str,
    pub(super) access: Access,
    /// The switch that must be on for this setting to mean anything.
    pub parent: Option<&'static str>,
}

/// What values a setting accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueType {
    Whole {
        low: u64,
        high: u64,
    },
    Number {
        low: f64,
        high: f64,
    },
    Switch,
    Choice(&'static [Choice]),
    /// An entry of the catalogue's GPUs.
    Gpu,
    /// An entry of the catalogue's models.
    Model,
    /// Words separated by commas, such as module names.
    Words,
    /// Sizes by name, such as `layers=2,hidden=128`.
    Sizes,
    /// A declared network, as compact text.
    Network,
    /// A version, major and minor.
    Version {
        low: (u8, u8),
        high: (u8, u8),
    },
}

/// How to read and write the field in the struct.
#[derive(Clone, Copy, Debug)]
pub(super) enum Access {
    Whole(fn(&Scenario) -> u64, fn(&mut Scenario, u64)),
    Number(fn(&Scenario) -> f64, fn(&mut Scenario, f64)),
    Switch(fn(&Scenario) -> bool, fn(&mut Scenario, bool)),
    Choice(fn(&Scenario) -> &'static str, fn(&mut Scenario, &str)),
    Text(fn(&Scenario) -> String, fn(&mut Scenario, String)),
    Version(fn(&Scenario) -> (u8, u8), fn(&mut Scenario, (u8, u8))),
    Words(fn(&Scenario) -> Vec<String>, fn(&mut Scenario, Vec<String>)),
    Network(
        fn(&Scenario) -> Option<Network>,
        fn(&mut Scenario, Option<Network>),
    ),
    Sizes(
        fn(&Scenario) -> BTreeMap<String, u64>,
        fn(&mut Scenario, BTreeMap<String, u64>),
    ),
}

/// A setting's value with its type, for writers of files.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Whole(u64),
    Number(f64),
    Switch(bool),
    Text(String),
    Version(u8, u8),
    Words(Vec<String>),
    Sizes(BTreeMap<String, u64>),
    Network(Option<Network>),
}

/// The number, zero where it is tiny: so the text of each value reads as itself.
fn rounded(number: f64) -> f64 {
    const SMALLEST: f64 = 1e-20;
    if number.abs() < SMALLEST { 0.0 } else { number }
}

impl Setting {
    /// The value as text, the form that `parse` reads.
    pub fn get(&self, scenario: &Scenario) -> String {
        self.value(scenario).to_string()
    }

    /// Reads the text and writes the field; a value that is not accepted leaves the scenario as it was.
    pub fn set(&'static self, scenario: &mut Scenario, text: &str) -> Result<(), Problem> {
        self.write(scenario, self.parse(text)?);
        Ok(())
    }

    /// Reads a text as a value that the setting accepts.
    pub fn parse(&'static self, text: &str) -> Result<Value, Problem> {
        let text = text.trim();
        let plain = || quantity::plain(text, self.unit);
        let value = match self.value_type {
            ValueType::Whole { .. } => whole(text).or_else(|| whole(&plain()?)).map(Value::Whole),
            ValueType::Number { .. } => text
                .parse()
                .ok()
                .or_else(|| plain()?.parse().ok())
                .map(|number| Value::Number(rounded(number))),
            ValueType::Switch => switch(text).map(Value::Switch),
            ValueType::Choice(choices) => {
                let mut ids = choices.iter().map(|choice| choice.id);
                let id = ids.find(|id| *id == text);
                id.map(|id| Value::Text(id.into()))
            }
            ValueType::Gpu | ValueType::Model => {
                name(text).map(|name| Value::Text(self.resolve_alias(name)))
            }
            ValueType::Version { .. } => {
                version(text).map(|(major, minor)| Value::Version(major, minor))
            }
            ValueType::Words => words(text).map(Value::Words),
            ValueType::Sizes => sizes(text).map(Value::Sizes),
            ValueType::Network => {
                // A network says itself which of its fields is wrong.
                let network = (!text.is_empty()).then(|| Network::parse(text));
                return Ok(Value::Network(network.transpose()?));
            }
        };
        match value {
            Some(value) if self.accepts(&value) => Ok(value),
            Some(_) => Err(self.out_of_range(text)),
            None => Err(Problem::NotAccepted {
                id: self,
                given: shortened(text),
            }),
        }
    }

    /// Writes a value that `parse` returned.
    pub fn write(&self, scenario: &mut Scenario, value: Value) {
        match (self.access, value) {
            (Access::Whole(_, write), Value::Whole(value)) => write(scenario, value),
            (Access::Number(_, write), Value::Number(value)) => write(scenario, value),
            (Access::Switch(_, write), Value::Switch(value)) => write(scenario, value),
            (Access::Choice(_, write), Value::Text(id)) => write(scenario, &id),
            (Access::Text(_, write), Value::Text(value)) => write(scenario, value),
            (Access::Version(_, write), Value::Version(major, minor)) => {
                write(scenario, (major, minor));
            }
            (Access::Words(_, write), Value::Words(value)) => write(scenario, value),
            (Access::Sizes(_, write), Value::Sizes(value)) => write(scenario, value),
            (Access::Network(_, write), Value::Network(value)) => write(scenario, value),
            _ => {}
        }
    }

    /// The catalogue's id where a text is an alias, such as the name that a driver reports; else the text.
    fn resolve_alias(&self, text: String) -> String {
        let id = match self.value_type {
            ValueType::Gpu if catalog::gpu(&text).is_none() => {
                catalog::gpu_named(&text).map(|gpu| gpu.id)
            }
            ValueType::Model if catalog::model(&text).is_none() => {
                catalog::model_named(&text).map(|model| model.id)
            }
            _ => None,
        };
        id.map_or(text, String::from)
    }

    /// The value with its type.
    pub fn value(&self, scenario: &Scenario) -> Value {
        match self.access {
            Access::Whole(read, _) => Value::Whole(read(scenario)),
            Access::Number(read, _) => Value::Number(read(scenario)),
            Access::Switch(read, _) => Value::Switch(read(scenario)),
            Access::Choice(read, _) => Value::Text(read(scenario).into()),
            Access::Text(read, _) => Value::Text(read(scenario)),
            Access::Version(read, _) => {
                let (major, minor) = read(scenario);
                Value::Version(major, minor)
            }
            Access::Words(read, _) => Value::Words(read(scenario)),
            Access::Sizes(read, _) => Value::Sizes(read(scenario)),
            Access::Network(read, _) => Value::Network(read(scenario)),
        }
    }

    /// The default value, as text.
    pub fn default(&self) -> String {
        self.get(&Scenario::default())
    }

    /// The first part of the path: the setting's section in forms and files.
    pub fn section(&self) -> &'static str {
        self.path.split('.').next().unwrap_or(self.path)
    }

    /// The last part of the path.
    pub fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// What the setting accepts, as the end of "expected ...".
    pub fn expected(&self) -> String {
        match self.value_type {
            ValueType::Whole { low, high } => format!("a whole number from {low} to {high}"),
            ValueType::Number { low, high } => format!("a number from {low} to {high}"),
            ValueType::Switch => "on or off".into(),
            ValueType::Choice(choices) => {
                let ids: Vec<&str> = choices.iter().map(|choice| choice.id).collect();
                format!("one of {}", ids.join(", "))
            }
            ValueType::Gpu => "a GPU's id or name; `headroom catalog` lists them".into(),
            ValueType::Model => "a model's id or name; `headroom catalog` lists them".into(),
            ValueType::Version { low, high } => format!(
                "a version from \"{}.{}\" to \"{}.{}\" in quotes",
                low.0, low.1, high.0, high.1
            ),
            ValueType::Words => "names separated by commas".into(),
            ValueType::Network => "parts, layers and tensors (docs/scenario.md)".into(),
            ValueType::Sizes => {
                format!("sizes such as layers=2,hidden=128, each from 0 to {LARGEST_SIZE}")
            }
        }
    }

    /// The problem of the scenario's value, if it is not accepted.
    pub fn check(&'static self, scenario: &Scenario) -> Option<Problem> {
        let value = self.value(scenario);
        (!self.accepts(&value)).then(|| self.out_of_range(&value.to_string()))
    }

    fn accepts(&self, value: &Value) -> bool {
        match (self.value_type, value) {
            (ValueType::Whole { low, high }, Value::Whole(value)) => (low..=high).contains(value),
            (ValueType::Number { low, high }, Value::Number(value)) => (low..=high).contains(value),
            (ValueType::Version { low, high }, Value::Version(major, minor)) => {
                (low..=high).contains(&(*major, *minor))
            }
            (ValueType::Gpu | ValueType::Model, Value::Text(value)) => {
                name(value).as_ref() == Some(value)
            }
            (ValueType::Words, Value::Words(value)) => {
                words(&value.join(",")).as_ref() == Some(value)
            }
            (ValueType::Sizes, Value::Sizes(value)) => {
                value.len() <= LONGEST_LIST
                    && value.iter().all(|(k, v)| is_key(k) && *v <= LARGEST_SIZE)
            }
            _ => true,
        }
    }

    fn out_of_range(&'static self, given: &str) -> Problem {
        let (id, given) = (self, shortened(given));
        let (min, max) = match self.value_type {
            ValueType::Whole { low, high } => (low.to_string(), high.to_string()),
            ValueType::Number { low, high } => (low.to_string(), high.to_string()),
            ValueType::Version { low, high } => (
                Value::Version(low.0, low.1).to_string(),
                Value::Version(high.0, high.1).to_string(),
            ),
            _ => return Problem::NotAccepted { id, given },
        };
        Problem::OutOfRange {
            id,
            given,
            min,
            max,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Switch(value) => f.write_str(if *value { "on" } else { "off" }),
            Self::Text(value) => f.write_str(value),
            Self::Version(major, minor) => write!(f, "{major}.{minor}"),
            Self::Words(value) => f.write_str(&value.join(",")),
            Self::Sizes(value) => {
                let pairs: Vec<String> = value.iter().map(|(k, v)| format!("{k}={v}")).collect();
                f.write_str(&pairs.join(","))
            }
            Self::Network(value) => match value {
                Some(network) => f.write_str(&network.text()),
                None => Ok(()),
            },
        }
    }
}

impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for Setting {}

impl PartialOrd for Setting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Setting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.path.cmp(other.path)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path)
    }
}
