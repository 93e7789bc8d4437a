//! What parameters stand for: variables, elements, and the operations on them.

use super::parse::literal;
use super::pattern;
use super::state::Shell;
use super::syntax::{Operation, Parameter, Raw};
use super::value::{Known, Part, Value, Variable};

/// What a parameter stands for.
pub(super) enum Found {
    Nothing,
    One(Value),
    Many(Vec<Value>),
}

impl Shell<'_> {
    pub(super) fn parameter(&mut self, parameter: &Parameter) -> Found {
        self.fuel.burn(48);
        let Parameter {
            name,
            index,
            operation,
            written,
        } = parameter;
        let all = index
            .as_ref()
            .and_then(literal)
            .is_some_and(|index| matches!(index, "@" | "*"));
        if *operation == Operation::Indirect {
            return self.indirect(parameter, all);
        }
        let base = match index {
            None => self.lookup(name),
            Some(_) if all => match self.variables.get(name) {
                Some(variable) => Found::Many(variable.values()),
                None if name == "BASH_SOURCE" => Found::One(Value::unknown(written, written)),
                None => Found::Many(Vec::new()),
            },
            Some(index) => self.element(name, index, written),
        };
        self.operate(parameter, base)
    }

    fn indirect(&mut self, parameter: &Parameter, all: bool) -> Found {
        let Parameter { name, written, .. } = parameter;
        if all {
            let number = |count: usize| (0..count).map(|at| Value::text(at.to_string())).collect();
            return Found::Many(match self.variables.get(name) {
                Some(Variable::Map(values)) => values.keys().map(Value::text).collect(),
                Some(Variable::List(values)) => number(values.len()),
                Some(Variable::Text(_)) => number(1),
                None => Vec::new(),
            });
        }
        let Found::One(other) = self.lookup(name) else {
            return Found::Nothing;
        };
        match other.known() {
            Some(other) => match self.lookup(&other) {
                Found::Nothing => Found::One(Value::not_given(written)),
                found => found,
            },
            None => Found::One(Value::unknown(written, &other.why().unwrap_or_default())),
        }
    }

    fn element(&mut self, name: &str, index: &Raw, written: &str) -> Found {
        match self.variables.get(name).cloned() {
            Some(Variable::Map(values)) => {
                let key = self.single(index);
                match key.known() {
                    Some(key) => values
                        .get(&key)
                        .map_or(Found::Nothing, |value| Found::One(value.clone())),
                    None => Found::One(Value::unknown(written, &key.why().unwrap_or_default())),
                }
            }
            Some(variable) => {
                let values = variable.values();
                let at = self.arithmetic(index, written);
                let Some(at) = at.known().and_then(|at| at.parse::<i64>().ok()) else {
                    let why = at.why().unwrap_or_else(|| written.into());
                    return Found::One(Value::unknown(written, &why));
                };
                let at = if at < 0 { at + values.len() as i64 } else { at };
                let value = usize::try_from(at)
                    .ok()
                    .and_then(|at| values.get(at).cloned());
                Found::One(value.unwrap_or_else(|| Value::text("")))
            }
            None if is_ambient(name) => Found::One(Value::unknown(written, written)),
            None => Found::Nothing,
        }
    }

    /// A variable or special parameter by its name.
    pub fn lookup(&mut self, name: &str) -> Found {
        if let Some(variable) = self.variables.get(name) {
            return match variable {
                Variable::Text(value) => Found::One(value.clone()),
                variable => variable
                    .values()
                    .into_iter()
                    .next()
                    .map_or(Found::Nothing, Found::One),
            };
        }
        if let Ok(place) = name.parse::<usize>() {
            if place == 0 {
                return Found::One(Value::unknown("$0", "$0"));
            }
            return match self.arguments.values.get(place - 1) {
                Some(value) => Found::One(value.clone()),
                None if self.arguments.given => Found::One(Value::text("")),
                None => Found::Nothing,
            };
        }
        match name {
            "@" | "*" => Found::Many(self.arguments.values.clone()),
            "#" => Found::One(Value::text(self.arguments.values.len().to_string())),
            "?" => Found::One(Value::text("0")),
            "IFS" => Found::One(Value::text(" \t\n")),
            name if is_ambient(name) => {
                let written = format!("${name}");
                Found::One(Value::unknown(&written, &written))
            }
            name => match self.scheduled(name) {
                Some(value) => Found::One(Value::text(value)),
                None => Found::Nothing,
            },
        }
    }

    /// What a scheduler sets by the directives of its script.
    fn scheduled(&self, name: &str) -> Option<String> {
        let name = name.strip_prefix("SLURM_")?;
        let directives = &self.out.directives;
        let find = |keys: &[&str]| {
            let found = directives
                .iter()
                .rev()
                .find(|(key, _)| keys.contains(&key.as_str()));
            found.map(|(_, value)| value.clone())
        };
        let gpus = |text: &str| text.rsplit(':').next().map(str::to_string);
        let nodes = || find(&["nodes", "N"]).filter(|nodes| nodes.parse::<u64>().is_ok());
        let per_node = || {
            find(&["gpus-per-node"])
                .or_else(|| find(&["gres"]).filter(|gres| gres.starts_with("gpu")))
                .and_then(|text| gpus(&text))
        };
        match name {
            "NNODES" | "JOB_NUM_NODES" => {
                nodes().or_else(|| (!directives.is_empty()).then(|| "1".into()))
            }
            "GPUS_ON_NODE" | "GPUS_PER_NODE" => per_node(),
            "GPUS" => find(&["gpus", "G"]).and_then(|text| gpus(&text)),
            "NTASKS_PER_NODE" | "TASKS_PER_NODE" => find(&["ntasks-per-node", "tasks-per-node"]),
            "CPUS_PER_TASK" => find(&["cpus-per-task", "c"]),
            "NTASKS" | "NPROCS" => find(&["ntasks", "n"]).or_else(|| {
                let tasks: u64 = find(&["ntasks-per-node", "tasks-per-node"])?.parse().ok()?;
                let nodes: u64 = nodes().unwrap_or_else(|| "1".into()).parse().ok()?;
                Some(tasks.checked_mul(nodes)?.to_string())
            }),
            _ => None,
        }
    }

    fn operate(&mut self, parameter: &Parameter, base: Found) -> Found {
        let written = &parameter.written;
        match &parameter.operation {
            Operation::None | Operation::Indirect => base,
            Operation::Length => Found::One(match base {
                Found::Many(values) => Value::text(values.len().to_string()),
                Found::One(value) => match value.known() {
                    Some(text) => Value::text(text.chars().count().to_string()),
                    None => Value::unknown(written, &value.why().unwrap_or_default()),
                },
                Found::Nothing => Value::not_given(written),
            }),
            Operation::Default { colon, kind, word } => {
                let empty = match &base {
                    Found::Nothing => true,
                    Found::One(value) => {
                        let given = value.given();
                        let unset = given.as_deref() == Some("") && !value.is_known();
                        unset || (*colon && given.as_deref() == Some(""))
                    }
                    Found::Many(values) => values.is_empty(),
                };
                match (kind, empty) {
                    (b'-' | b'=', false) | (b'?', _) => base,
                    (b'+', true) => Found::Many(Vec::new()).or_blank(parameter),
                    (kind, _) => {
                        if *kind == b'+' && parameter.index.is_some() {
                            return Found::Many(self.fields(word));
                        }
                        let value = self.single(word);
                        if *kind == b'=' {
                            self.set_text(&parameter.name, value.clone());
                        }
                        Found::One(value)
                    }
                }
            }
            Operation::Slice { offset, length } => {
                self.slice(parameter, base, offset, length.as_ref())
            }
            _ => match base {
                Found::Nothing => Found::Nothing,
                Found::One(value) => Found::One(self.change(parameter, &value)),
                Found::Many(values) => Found::Many(
                    values
                        .iter()
                        .map(|value| self.change(parameter, value))
                        .collect(),
                ),
            },
        }
    }

    fn slice(
        &mut self,
        parameter: &Parameter,
        base: Found,
        offset: &Raw,
        length: Option<&Raw>,
    ) -> Found {
        let written = &parameter.written;
        let mut number = |raw: &Raw| {
            let value = self.arithmetic(raw, written);
            value.known().and_then(|text| text.parse::<i64>().ok())
        };
        let offset = number(offset);
        let length = match length.map(number) {
            None => Some(i64::MAX),
            Some(length) => length,
        };
        let (Some(offset), Some(length)) = (offset, length) else {
            return Found::One(Value::unknown(written, written));
        };
        let bounds = |count: i64| {
            let start = if offset < 0 { count + offset } else { offset };
            let start = start.clamp(0, count);
            let end = if length < 0 {
                count + length
            } else {
                start.saturating_add(length)
            };
            (start as usize, end.clamp(start, count) as usize)
        };
        match base {
            Found::Nothing => Found::Nothing,
            Found::One(value) => Found::One(match value.known() {
                Some(text) => {
                    let (start, end) = bounds(text.chars().count() as i64);
                    Value::text(
                        text.chars()
                            .skip(start)
                            .take(end - start)
                            .collect::<String>(),
                    )
                }
                None => Value::unknown(written, &value.why().unwrap_or_default()),
            }),
            Found::Many(mut values) => {
                if parameter.index.is_none() {
                    values.insert(0, Value::unknown("$0", "$0"));
                }
                let (start, end) = bounds(values.len() as i64);
                Found::Many(values.into_iter().skip(start).take(end - start).collect())
            }
        }
    }

    fn change(&mut self, parameter: &Parameter, value: &Value) -> Value {
        let written = &parameter.written;
        let unknown =
            || Value::unknown(written, &value.why().unwrap_or_else(|| written.to_string()));
        if !value.is_known() && value.parts().iter().all(|part| part.known != Known::Yes) {
            return unknown();
        }
        if !self.fuel.burn(value.len()) {
            return unknown();
        }
        match &parameter.operation {
            Operation::Strip {
                end,
                longest,
                pattern: raw,
            } => {
                let Some(pattern) = self.pattern(raw) else {
                    return unknown();
                };
                // Unknown parts are characters that no pattern names.
                let masked: String = value.parts().iter().map(masked).collect();
                match pattern::strip(&pattern, &masked, *end, *longest, &mut self.fuel) {
                    Some(cut) if *end => value.slice(0, masked.len() - cut),
                    Some(cut) => value.slice(cut, masked.len()),
                    None => value.clone(),
                }
            }
            Operation::Replace {
                how,
                pattern: raw,
                by,
            } => {
                let Some(pattern) = self.pattern(raw) else {
                    return unknown();
                };
                let by = self.single(by);
                let Some(by) = by.given() else {
                    return unknown();
                };
                let mut part = |part: &Part| Part {
                    text: match part.known {
                        Known::Yes => {
                            pattern::replace(&pattern, &part.text, &by, *how, &mut self.fuel)
                        }
                        _ => part.text.clone(),
                    },
                    known: part.known.clone(),
                };
                Value::of(value.parts().iter().map(&mut part).collect())
            }
            Operation::Case { upper, all } => {
                let change = |text: &str| {
                    let case = |text: &str| {
                        if *upper {
                            text.to_uppercase()
                        } else {
                            text.to_lowercase()
                        }
                    };
                    let first = text.chars().next().map_or(0, char::len_utf8);
                    match (all, text.get(..first), text.get(first..)) {
                        (false, Some(first), Some(rest)) => case(first) + rest,
                        _ => case(text),
                    }
                };
                let part = |part: &Part| Part {
                    text: if part.known == Known::Yes {
                        change(&part.text)
                    } else {
                        part.text.clone()
                    },
                    known: part.known.clone(),
                };
                Value::of(value.parts().iter().map(part).collect())
            }
            _ => value.clone(),
        }
    }
}

impl Parameter {
    /// Whether a list becomes one word between quotes.
    pub(super) fn is_joined(&self) -> bool {
        self.name == "*" || self.index.as_ref().and_then(literal) == Some("*")
    }
}

impl Found {
    /// An empty text where a list is not meant.
    fn or_blank(self, parameter: &Parameter) -> Self {
        let list = parameter.index.is_some() || matches!(parameter.name.as_str(), "@" | "*");
        if list {
            self
        } else {
            Self::One(Value::text(""))
        }
    }
}

fn masked(part: &Part) -> String {
    match part.known {
        Known::Yes => part.text.clone(),
        _ => "\u{1}".repeat(part.text.len()),
    }
}

/// Variables that every shell has, whose values a run decides.
fn is_ambient(name: &str) -> bool {
    matches!(
        name,
        "HOME"
            | "USER"
            | "PWD"
            | "OLDPWD"
            | "PATH"
            | "HOSTNAME"
            | "SHELL"
            | "RANDOM"
            | "SECONDS"
            | "UID"
            | "LINENO"
            | "BASH_SOURCE"
            | "LOGNAME"
            | "$"
            | "!"
            | "-"
            | "_"
            | "EPOCHSECONDS"
            | "TMPDIR"
    )
}
