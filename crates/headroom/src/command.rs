//! What a command is: its words and options, and how its arguments are parsed.

use super::answer::{Answer, Refusal};
use super::args::Args;
use headroom_scenario::{Problem, nearest};

/// One command.
pub(super) struct Command {
    pub name: &'static str,
    /// Arguments without a name; in brackets where they are optional.
    pub words: &'static [&'static str],
    pub options: &'static [Opt],
    /// What it does, as a sentence of the help without its full stop.
    pub about: &'static str,
    pub run: fn(&Args) -> Result<Answer, Refusal>,
}

/// An option and the name of its value.
pub(super) struct Opt {
    pub name: &'static str,
    pub value: &'static str,
    pub about: &'static str,
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
                    return Err(self.unknown_option(argument, name));
                };
                let value = value.or_else(|| rest.next().cloned());
                let expected = || format!("{} after it", option.value);
                let value = value.ok_or_else(|| Problem::new("option", argument, expected()))?;
                args.options.push((option.name, value));
            } else {
                args.words.push(argument.clone());
            }
        }
        let required = self.words.iter().filter(|word| !word.starts_with('['));
        if args.words.len() < required.count() || args.words.len() > self.words.len() {
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

    fn unknown_option(&self, given: &str, name: &str) -> Problem {
        let names = self.options.iter().map(|option| option.name);
        let names: Vec<&str> = names.chain(["json", "help"]).collect();
        let expected = match nearest(name, names.iter().copied()) {
            Some(near) => format!("a known option; did you mean --{near}?"),
            None => {
                let all: Vec<String> = names.iter().map(|name| format!("--{name}")).collect();
                format!("one of {}", all.join(", "))
            }
        };
        Problem::new("option", given, expected)
    }

    /// The command line in the short form of the help.
    pub(super) fn usage(&self) -> String {
        let mut usage = format!("headroom {}", self.name);
        for word in self.words {
            usage.push_str(&format!(" {word}"));
        }
        for option in self.options {
            usage.push_str(&format!(" [--{} {}]", option.name, option.value));
        }
        usage
    }

    pub(super) fn help(&self) -> String {
        let mut text = format!("{}\n\n{}.\n", self.usage(), self.about);
        for option in self.options {
            let flag = format!("--{} {}", option.name, option.value);
            text.push_str(&format!("\n  {flag:<20} {}", option.about));
        }
        text.push_str(&format!("\n  {:<20} print JSON\n", "--json"));
        text
    }
}
