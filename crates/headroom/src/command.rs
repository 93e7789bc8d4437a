//! A command's arguments and options, and their parsing.

use super::answer::{Answer, Refusal};
use super::args::Args;
use headroom_scenario::{NameKind, Problem};

/// One command.
pub(super) struct Command {
    pub name: &'static str,
    /// Positional arguments; in brackets if optional, the last with `…` if it may be repeated.
    pub words: &'static [&'static str],
    pub options: &'static [Opt],
    /// The help text, without a full stop.
    pub about: &'static str,
    pub run: fn(&Args) -> Result<Answer, Refusal>,
}

/// An option and the name of its value; none for a switch.
pub(super) struct Opt {
    pub name: &'static str,
    pub value: &'static str,
    pub about: &'static str,
}

impl Opt {
    /// As it is typed: `--set path=value`.
    fn flag(&self) -> String {
        format!("--{} {}", self.name, self.value).trim_end().into()
    }
}

impl Command {
    pub(super) fn parse(&'static self, given: &[String]) -> Result<Args, Problem> {
        let mut args = Args {
            words: Vec::new(),
            options: Vec::new(),
            json: false,
        };
        let mut rest = given.iter();
        while let Some(argument) = rest.next() {
            if argument == "--json" {
                args.json = true;
            } else if let Some(flag) = argument.strip_prefix("--") {
                let (name, value) = match flag.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_string())),
                    None => (flag, None),
                };
                let Some(option) = self.options.iter().find(|option| option.name == name) else {
                    return Err(self.unknown_option(argument));
                };
                if option.value.is_empty() {
                    args.options.push((option.name, String::new()));
                    continue;
                }
                let value = value.or_else(|| rest.next().cloned());
                let expected = || format!("{} after it", option.value);
                let value = value.ok_or_else(|| Problem::new("option", argument, expected()))?;
                args.options.push((option.name, value));
            } else {
                args.words.push(argument.clone());
            }
        }
        let required = self.words.iter().filter(|word| !word.starts_with('['));
        let repeats = self.words.last().is_some_and(|word| word.ends_with('…'));
        let too_many = args.words.len() > self.words.len() && !repeats;
        if args.words.len() < required.count() || too_many {
            let expected = if self.words.is_empty() {
                "nothing".into()
            } else {
                self.words.join(" ")
            };
            let field = format!("headroom {}", self.name);
            return Err(Problem::new(field, args.words.join(" "), expected));
        }
        Ok(args)
    }

    fn unknown_option(&self, given: &str) -> Problem {
        let names = self.options.iter().map(|option| option.name);
        let names = names
            .chain(["json", "help"])
            .map(|name| format!("--{name}"));
        let names: Vec<String> = names.collect();
        let names = names.iter().map(String::as_str);
        Problem::unknown_name(NameKind::Option, "option", given, names)
    }

    /// The command line in the short form of the help.
    pub(super) fn usage(&self) -> String {
        let mut usage = format!("headroom {}", self.name);
        for word in self.words {
            usage.push_str(&format!(" {word}"));
        }
        for option in self.options {
            usage.push_str(&format!(" [{}]", option.flag()));
        }
        usage
    }

    pub(super) fn help(&self) -> String {
        let mut text = format!("{}\n\n{}.\n", self.usage(), self.about);
        for option in self.options {
            let flag = option.flag();
            text.push_str(&format!("\n  {flag:<20} {}", option.about));
        }
        text.push_str(&format!("\n  {:<20} print JSON\n", "--json"));
        text
    }
}
