//! A command's arguments and options, as rows of a table from which parser, help, completions and man page are made.

use super::answer::{Answer, Refusal};
use super::args::Args;

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

impl Command {
    /// Whether it changes a scenario: then each setting is an option.
    pub(super) fn takes_settings(&self) -> bool {
        self.options.iter().any(|option| option.name == "set")
    }

    /// Whether its words are a run, which `--model` can name as well.
    pub(super) fn takes_run(&self) -> bool {
        self.takes_settings() && self.words.first() == Some(&"WHAT…")
    }
}
