//! Command lines that libraries make of dataclasses and functions: `HfArgumentParser`, `tyro`, `fire`, `typer`, `click`.

use std::rc::Rc;

use super::Machine;
use super::arg_option::{Action, ArgOption, Number, is_flag};
use super::argparse::{ParserKind, stands_for_something};
use super::value::{Args, Class, Field, Hint, Id, Name, V};

/// Dataclasses inside dataclasses.
const DEEPEST_CLASSES: usize = 6;

impl Machine<'_> {
    /// Constructors of parsers.
    pub(super) fn parser_of(&mut self, path: &str, args: &Args) -> Option<V> {
        let last = path.rsplit('.').next().unwrap_or("");
        let classes = matches!(
            last,
            "HfArgumentParser"
                | "TrlParser"
                | "H4ArgumentParser"
                | "ArgumentParserPlus"
                | "DataClassArgumentParser"
        );
        if classes {
            let given = args
                .named("dataclass_types")
                .or_else(|| args.plain.first())?
                .clone();
            let types = self.elements(&given).unwrap_or_else(|| vec![given]);
            return Some(self.new_parser(ParserKind::Classes(types)));
        }
        let plain = matches!(
            last,
            "ArgumentParser"
                | "ArgParser"
                | "ConfigArgumentParser"
                | "LightningArgumentParser"
                | "FlexibleArgumentParser"
        );
        plain.then(|| self.new_parser(ParserKind::Options))
    }

    /// The given words of options that no own dataclass has, as a class of another module takes them.
    pub(super) fn leftover(&mut self, words: &[String], known: &[Name]) -> Vec<(Name, V)> {
        let mut named: Vec<(Name, V)> = Vec::new();
        for (flag, values) in flags(words) {
            let name: Name = flag.trim_start_matches('-').replace('-', "_").into();
            self.spend(1 + known.len() / 16);
            if known.contains(&name) {
                continue;
            }
            let value = match values.as_slice() {
                [] => V::Bool(true),
                [one] => guessed(one),
                many => {
                    let many = many.iter().map(|word| guessed(word)).collect();
                    self.list(many)
                }
            };
            match named.iter_mut().find(|(own, _)| *own == name) {
                Some((_, old)) => *old = value,
                None => named.push((name, value)),
            }
        }
        named
    }

    /// `HfArgumentParser((A, B)).parse_args_into_dataclasses()` and its kin.
    pub(super) fn parse_classes(&mut self, id: Id, method: &str, args: &Args) -> V {
        let types = match self.parser(id) {
            Some(parser) => match &parser.kind {
                ParserKind::Classes(types) => types.clone(),
                ParserKind::Options => Vec::new(),
            },
            None => return V::None,
        };
        let mut words = self.arguments.to_vec();
        if let Some(V::List(id)) = args.named("args") {
            let items = self.items(*id).to_vec();
            words = items.iter().filter_map(|item| self.shown(item)).collect();
        }
        let mut values = Vec::new();
        let mut unread = None;
        let file = match args.get(0, "json_file") {
            Some(V::Text(path)) if method.ends_with("_file") => Some(path.to_string()),
            Some(other) if method.ends_with("_file") => {
                unread = Some(self.why(other));
                None
            }
            _ => config_file(&mut words),
        };
        if let Some(path) = file {
            match self.config_of(&path) {
                V::Dict(id) => values = self.text_entries(id),
                other => unread = Some(other),
            }
        }
        if let (Some(V::Dict(id)), "parse_dict") = (args.plain.first(), method) {
            values = self.text_entries(*id);
        }
        let mut known = Vec::new();
        for class in &types {
            if let V::Class(class) = class {
                known.extend(self.fields(class).into_iter().map(|field| field.name));
            }
        }
        self.taken.clone_from(&known);
        let mut made = Vec::new();
        for class in &types {
            let value = match class {
                V::Class(class) => self.filled_class(&class.clone(), "", &words, &values),
                V::Name(path) => {
                    let mut all = values.clone();
                    all.retain(|(name, _)| !known.contains(name));
                    for (name, value) in self.leftover(&words, &known) {
                        match all.iter_mut().find(|(own, _)| *own == name) {
                            Some((_, old)) => *old = value,
                            None => all.push((name, value)),
                        }
                    }
                    let args = Args {
                        named: all,
                        unknown: unread.clone(),
                        ..Args::default()
                    };
                    self.record(path, None, args, None)
                }
                other => other.clone(),
            };
            made.push(value);
        }
        if (method == "parse" || method == "parse_args") && made.len() == 1 {
            return made.pop().unwrap_or(V::None);
        }
        self.tuple(made)
    }

    pub(super) fn text_entries(&mut self, id: Id) -> Vec<(Name, V)> {
        let entries = self.entries(id).to_vec();
        self.spend(entries.len());
        entries
            .into_iter()
            .filter_map(|(key, value)| match key {
                V::Text(key) => Some((key, value)),
                _ => None,
            })
            .collect()
    }

    /// A dataclass with the values that were given for its fields: by words, by a file, by default.
    pub(super) fn filled_class(
        &mut self,
        class: &Rc<Class>,
        prefix: &str,
        words: &[String],
        values: &[(Name, V)],
    ) -> V {
        let fields = self.fields(class);
        let depth = prefix.matches('.').count();
        let options: Vec<ArgOption> = fields
            .iter()
            .map(|field| field_option(field, prefix))
            .collect();
        let given = flags(words);
        let mut attributes = Vec::new();
        for (field, option) in fields.iter().zip(&options) {
            self.spend(1 + given.len() / 16 + values.len() / 16);
            let found = given.iter().rev().find(|(flag, _)| same_flag(flag, option));
            let in_file = values.iter().find(|(name, _)| *name == field.name);
            let value = match (found, in_file) {
                (Some((flag, words)), _) => self.field_value(field, flag, words),
                (None, Some((_, value))) => value.clone(),
                (None, None) => self.field_default(class, field, prefix, words, depth),
            };
            attributes.push((field.name.clone(), value));
        }
        let more = match class.external_base() {
            Some(_) => {
                let mut known = self.taken.clone();
                known.extend(fields.iter().map(|field| field.name.clone()));
                let mut more: Vec<(Name, V)> = values.to_vec();
                more.retain(|(name, _)| !known.contains(name));
                more.extend(self.leftover(words, &known));
                more
            }
            None => Vec::new(),
        };
        self.finish_dataclass(class, attributes, more)
    }

    pub(super) fn field_default(
        &mut self,
        class: &Rc<Class>,
        field: &Field,
        prefix: &str,
        words: &[String],
        depth: usize,
    ) -> V {
        if let Some(inner) = self.field_class(field)
            && depth < DEEPEST_CLASSES
            && inner.dataclass
            && !Rc::ptr_eq(&inner, class)
        {
            let deeper = format!("{prefix}{}.", field.name);
            let begins = format!("--{deeper}").replace('_', "-");
            let any = words
                .iter()
                .any(|word| word.replace('_', "-").starts_with(&begins));
            if any || (field.default.is_none() && field.factory.is_none()) {
                return self.filled_class(&inner, &deeper, words, &[]);
            }
        }
        if let Some(default) = self.default_of(field) {
            return match default {
                V::None => V::Absent(format!("--{prefix}{}", field.name).into()),
                default => default,
            };
        }
        let option = format!("--{prefix}{}", field.name);
        self.missing(&option);
        V::unknown(format!("{option} is required and was not given"))
    }

    pub(super) fn field_class(&mut self, field: &Field) -> Option<Rc<Class>> {
        let name = field.class.as_ref()?;
        let before = std::mem::replace(&mut self.scope, field.scope);
        let found = self.lookup(name);
        self.scope = before;
        match found {
            Some(V::Class(class)) => Some(class),
            _ => None,
        }
    }

    pub(super) fn field_value(&mut self, field: &Field, flag: &str, words: &[String]) -> V {
        if flag.starts_with("--no") && !field.name.starts_with("no") && words.is_empty() {
            return V::Bool(false);
        }
        match (field.hint, words) {
            (Hint::Many, [one]) if one.starts_with('[') => self.literal(one),
            (_, []) => V::Bool(true),
            (Hint::Many, many) => {
                let many = many.iter().map(|word| guessed(word)).collect();
                self.list(many)
            }
            (Hint::Any, [one, ..]) => guessed(one),
            (hint, [one, ..]) => self.hinted(hint, &one.as_str().into()),
        }
    }
}

/// A word's value where its type is not known.
pub fn guessed(word: &str) -> V {
    if stands_for_something(word) {
        return V::unknown(word);
    }
    match word {
        "True" | "true" => V::Bool(true),
        "False" | "false" => V::Bool(false),
        "None" => V::None,
        word => match (word.parse::<i128>(), word.parse::<f64>()) {
            (Ok(number), _) => V::Int(number),
            (Err(_), Ok(number)) if number.is_finite() => V::Float(number),
            _ => V::text(word),
        },
    }
}

/// Options with the words behind them.
pub fn flags(words: &[String]) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let mut inline = true;
    for word in words {
        if is_flag(word) {
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) => (flag, vec![value.to_string()]),
                None => (word.as_str(), Vec::new()),
            };
            inline = !value.is_empty();
            found.push((flag.to_string(), value));
        } else if !inline && let Some((_, values)) = found.last_mut() {
            values.push(word.clone());
        }
    }
    found
}

/// Takes the configuration file out of a command line: `--config x.yaml`, or `x.yaml` first.
fn config_file(words: &mut Vec<String>) -> Option<String> {
    let is_file = |word: &str| {
        [".yaml", ".yml", ".json"]
            .iter()
            .any(|end| word.ends_with(end))
    };
    if let Some(at) = words.iter().position(|word| word == "--config") {
        words.remove(at);
        return (at < words.len()).then(|| words.remove(at));
    }
    if let Some(at) = words.iter().position(|word| word.starts_with("--config=")) {
        let word = words.remove(at);
        return word.split_once('=').map(|(_, path)| path.to_string());
    }
    match words.first() {
        Some(first) if is_file(first) => Some(words.remove(0)),
        _ => None,
    }
}

fn same_flag(flag: &str, option: &ArgOption) -> bool {
    let plain = |flag: &str| flag.trim_start_matches('-').replace('-', "_");
    let (flag, own) = (plain(flag), plain(&option.written()));
    flag == own || flag.strip_prefix("no_") == Some(&own)
}

fn field_option(field: &Field, prefix: &str) -> ArgOption {
    ArgOption {
        flags: vec![format!("--{prefix}{}", field.name).into()],
        name: field.name.clone(),
        default: None,
        convert: None,
        hint: field.hint,
        action: Action::Store,
        number: Number::One,
        required: false,
        constant: None,
    }
}
