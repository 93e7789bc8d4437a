//! Arguments, read by the command's own table.

use super::commands::Command;
use crate::scenario::Problem;
use crate::scenario::nearest;

/// A command's arguments.
pub(super) struct Args {
    /// What stands without a name, as many as the command has words.
    pub words: Vec<String>,
    /// Options in the order given.
    options: Vec<(&'static str, String)>,
    pub json: bool,
}

impl Args {
    pub(super) fn parse(command: &'static Command, given: &[String]) -> Result<Self, Problem> {
        let mut args = Self {
            words: Vec::new(),
            options: Vec::new(),
            json: false,
        };
        let mut rest = given.iter();
        while let Some(it) = rest.next() {
            if it == "--json" {
                args.json = true;
            } else if let Some(flag) = it.strip_prefix("--") {
                let (name, value) = match flag.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_string())),
                    None => (flag, None),
                };
                let Some(option) = command.options.iter().find(|it| it.name == name) else {
                    return Err(unknown(command, it, name));
                };
                let value = value.or_else(|| rest.next().cloned());
                let expected = || format!("{} after it", option.value);
                let value = value.ok_or_else(|| Problem::new("option", it, expected()))?;
                args.options.push((option.name, value));
            } else {
                args.words.push(it.clone());
            }
        }
        let required = command.words.iter().filter(|word| !word.starts_with('['));
        let least = required.count();
        if args.words.len() < least || args.words.len() > command.words.len() {
            let shown = args.words.join(" ");
            let expected = if command.words.is_empty() {
                "nothing".into()
            } else {
                command.words.join(" ")
            };
            return Err(Problem::new(
                format!("headroom {}", command.name),
                shown,
                expected,
            ));
        }
        Ok(args)
    }

    /// The last value given for an option.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.all(name).last()
    }

    /// Every value given for an option.
    pub(super) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let of_name = move |(given, value): &'a (&'static str, String)| {
            (*given == name).then_some(value.as_str())
        };
        self.options
            .iter()
            .filter_map(of_name)
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// The word at this place, or nothing.
    pub(super) fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }
}

fn unknown(command: &Command, given: &str, name: &str) -> Problem {
    let names: Vec<&str> = command.options.iter().map(|it| it.name).collect();
    let all = names.iter().copied().chain(["json", "help"]);
    let expected = match nearest(name, all.clone()) {
        Some(near) => format!("a known option; did you mean --{near}?"),
        None => {
            let all: Vec<String> = all.map(|it| format!("--{it}")).collect();
            format!("one of {}", all.join(", "))
        }
    };
    Problem::new("option", given, expected)
}
