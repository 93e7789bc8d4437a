//! One field of a scenario: what it is called, what it accepts, how it is read and written.

use super::network::Network;
use super::values::{
    LARGEST_SIZE, LONGEST_LIST, is_key, name, sizes, switch, version, whole, words,
};
use super::{Choice, Problem, Scenario, quantity};
use headroom_base::decimal::decimal;
use headroom_base::order::Map;
use headroom_catalog as catalog;

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
    /// The writer says whether it knows the id.
    Choice(
        fn(&Scenario) -> &'static str,
        fn(&mut Scenario, &str) -> bool,
    ),
    Text(fn(&Scenario) -> String, fn(&mut Scenario, String)),
    Version(fn(&Scenario) -> (u8, u8), fn(&mut Scenario, (u8, u8))),
    Words(fn(&Scenario) -> Vec<String>, fn(&mut Scenario, Vec<String>)),
    Network(
        fn(&Scenario) -> Option<Network>,
        fn(&mut Scenario, Option<Network>),
    ),
    Sizes(
        fn(&Scenario) -> Map<String, u64>,
        fn(&mut Scenario, Map<String, u64>),
    ),
}

/// A setting's value with its type, for writers of files.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Whole(u64),
    Number(f64),
    Switch(bool),
    Text(String),
    Words(Vec<String>),
    Sizes(Map<String, u64>),
    Network(Option<Network>),
}

/// The number, with what is too small to mean anything taken for nought: so each value has one text, which reads as itself.
fn rounded(number: f64) -> f64 {
    const SMALLEST: f64 = 1e-20;
    if number.abs() < SMALLEST { 0.0 } else { number }
}

impl Setting {
    /// The value as text, the form that `set` reads.
    pub fn get(&self, scenario: &Scenario) -> String {
        match self.value(scenario) {
            Value::Whole(value) => value.to_string(),
            Value::Number(value) => value.to_string(),
            Value::Switch(value) => if value { "on" } else { "off" }.into(),
            Value::Text(value) => value,
            Value::Words(value) => value.join(","),
            Value::Network(value) => value.map_or_else(String::new, |network| network.text()),
            Value::Sizes(value) => {
                let pairs: Vec<String> = value.iter().map(|(k, v)| format!("{k}={v}")).collect();
                pairs.join(",")
            }
        }
    }

    /// Reads the text and writes the field; a value that is not accepted leaves the scenario as it was.
    pub fn set(&self, scenario: &mut Scenario, text: &str) -> Result<(), Problem> {
        let text = text.trim();
        let mut changed = scenario.clone();
        if let Access::Network(_, write) = self.access {
            // A network says itself which of its fields is wrong.
            let network = (!text.is_empty()).then(|| Network::parse(text));
            write(scenario, network.transpose()?);
            return Ok(());
        }
        if self.write(&mut changed, text).is_none() || self.check(&changed).is_some() {
            return Err(self.problem(text));
        }
        *scenario = changed;
        Ok(())
    }

    fn write(&self, scenario: &mut Scenario, text: &str) -> Option<()> {
        match self.access {
            Access::Whole(_, write) => {
                let read = || whole(&quantity::plain(text, self.unit)?);
                write(scenario, whole(text).or_else(read)?);
            }
            Access::Number(_, write) => {
                let read = || decimal(&quantity::plain(text, self.unit)?);
                write(scenario, rounded(decimal(text).or_else(read)?));
            }
            Access::Switch(_, write) => write(scenario, switch(text)?),
            Access::Choice(_, write) => return write(scenario, text).then_some(()),
            Access::Text(_, write) => write(scenario, self.meant(name(text)?)),
            Access::Version(_, write) => write(scenario, version(text)?),
            Access::Words(_, write) => write(scenario, words(text)?),
            Access::Sizes(_, write) => write(scenario, sizes(text)?),
            Access::Network(_, write) => write(scenario, Some(Network::parse(text).ok()?)),
        }
        Some(())
    }

    /// The catalogue's id where a text is another name of what stands there, such as a driver's of its card; else the text.
    fn meant(&self, text: String) -> String {
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
                Value::Text(format!("{major}.{minor}"))
            }
            Access::Words(read, _) => Value::Words(read(scenario)),
            Access::Sizes(read, _) => Value::Sizes(read(scenario)),
            Access::Network(read, _) => Value::Network(read(scenario)),
        }
    }

    /// The value when nobody says otherwise, as text.
    pub fn default(&self) -> String {
        self.get(&Scenario::default())
    }

    /// The first part of the path: where the setting stands in forms and files.
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

    /// The problem of this value, where the scenario holds one that is not accepted.
    pub fn check(&self, scenario: &Scenario) -> Option<Problem> {
        let fine = match (self.value_type, self.value(scenario)) {
            (ValueType::Whole { low, high }, Value::Whole(value)) => low <= value && value <= high,
            (ValueType::Number { low, high }, Value::Number(value)) => {
                low <= value && value <= high
            }
            (ValueType::Gpu | ValueType::Model, Value::Text(value)) => {
                name(&value).as_ref() == Some(&value)
            }
            (ValueType::Version { low, high }, Value::Text(value)) => {
                version(&value).is_some_and(|version| low <= version && version <= high)
            }
            (ValueType::Words, Value::Words(value)) => {
                words(&value.join(",")).as_ref() == Some(&value)
            }
            (ValueType::Sizes, Value::Sizes(value)) => {
                value.len() <= LONGEST_LIST
                    && value.iter().all(|(k, v)| is_key(k) && *v <= LARGEST_SIZE)
            }
            _ => true,
        };
        (!fine).then(|| self.problem(&self.get(scenario)))
    }

    fn problem(&self, value: &str) -> Problem {
        Problem::new(self.path, value, self.expected())
    }
}
