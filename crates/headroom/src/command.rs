//! A command's arguments and options, as rows of a table from which parser, help, completions and man page are made.

use super::answer::{Answer, Refusal};
use super::args::Args;
use super::what::{self, Given};

/// One command.
pub(super) struct Command {
    pub name: &'static str,
    /// Positional arguments; in brackets if optional, the last with `…` if it may be repeated.
    pub words: &'static [&'static str],
    pub options: &'static [Opt],
    /// The help text, without a full stop.
    pub about: &'static str,
    pub run: Run,
}

/// What carries a command out.
#[derive(Clone, Copy)]
pub(super) enum Run {
    Plain(fn(&Args) -> Result<Answer, Refusal>),
    /// Advice about the run that its words name or describe: the answer says first what was assumed.
    OnRun(fn(&Given, &Args) -> Result<Answer, Refusal>),
}

impl Run {
    pub(super) fn on(self, args: &Args) -> Result<Answer, Refusal> {
        match self {
            Self::Plain(run) => run(args),
            Self::OnRun(run) => {
                let given = what::resolved(args)?;
                let mut answer = run(&given, args)?;
                answer.text = format!("{}{}", given.said(), answer.text);
                Ok(answer)
            }
        }
    }
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
