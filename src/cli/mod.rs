//! The command line: arguments in, text and an exit code out.
//!
//! Exit codes: 0 for success (and "fits", where that was asked), 1 for "does not fit", 2 for bad input.

mod args;
mod batches;
mod commands;
mod convert;
mod doctor;
mod estimate;
mod guide;
mod lists;
mod replay;
mod score;
mod steps;
mod strategy;
mod what;

use args::Args;
use commands::{COMMANDS, Command};

use crate::document::json;
use crate::estimate::Unsupported;
use crate::scenario::Problem;

/// What to print and how to end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub stdout: String,
    pub stderr: String,
    pub code: u8,
}

/// What a command has to say, for people and for programs.
struct Answer {
    text: String,
    json: String,
    /// Notes beside the answer.
    notes: Vec<String>,
    fits: bool,
}

impl Answer {
    fn new(text: String, document: &crate::document::Document) -> Self {
        Self {
            text,
            json: json::write(document),
            notes: Vec::new(),
            fits: true,
        }
    }
}

/// Why a command has no answer; each line names what is wrong.
struct Refusal(Vec<String>);

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(vec![problem.to_string()])
    }
}
impl From<Vec<Problem>> for Refusal {
    fn from(problems: Vec<Problem>) -> Self {
        Self(problems.iter().map(ToString::to_string).collect())
    }
}
impl From<Unsupported> for Refusal {
    fn from(unsupported: Unsupported) -> Self {
        Self(vec![format!("cannot be estimated: {}", unsupported.0)])
    }
}

/// Runs the program with its arguments (without its own name).
pub fn run(arguments: &[String]) -> Outcome {
    let Some((name, rest)) = arguments.split_first() else {
        return Outcome {
            stderr: help(),
            code: 2,
            ..Outcome::default()
        };
    };
    let asks_for_help = |it: &str| matches!(it, "--help" | "-h" | "help");
    if asks_for_help(name) {
        return said(help());
    }
    if matches!(name.as_str(), "--version" | "-V") {
        return said(format!("headroom {}\n", env!("CARGO_PKG_VERSION")));
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
        let expected = format!("one of {}", names.join(", "));
        return refused(Problem::new("command", name, expected).into());
    };
    if rest.iter().any(|it| matches!(it.as_str(), "--help" | "-h")) {
        return said(command.help());
    }
    let answer = Args::parse(command, rest)
        .map_err(Refusal::from)
        .and_then(|args| Ok(((command.run)(&args)?, args.json)));
    match answer {
        Ok((answer, as_json)) => Outcome {
            stdout: if as_json { answer.json } else { answer.text },
            stderr: lines(&answer.notes),
            code: u8::from(!answer.fits),
        },
        Err(refusal) => refused(refusal),
    }
}

fn said(stdout: String) -> Outcome {
    Outcome {
        stdout,
        ..Outcome::default()
    }
}

fn refused(refusal: Refusal) -> Outcome {
    Outcome {
        stderr: lines(&refusal.0),
        code: 2,
        ..Outcome::default()
    }
}

fn lines(lines: &[String]) -> String {
    lines
        .iter()
        .map(|line| format!("headroom: {line}\n"))
        .collect::<Vec<_>>()
        .concat()
}

fn help() -> String {
    let mut text = String::from(
        "headroom: does this training run fit, what do I change, what do I run?\n\nusage:\n",
    );
    for command in COMMANDS {
        text.push_str(&format!("  {:<64} {}\n", command.usage(), command.about));
    }
    text.push_str(
        "\nWHAT is a preset's id, a scenario file (YAML or JSON), a link, or - for standard input.\n\
         Every command takes --json. `headroom COMMAND --help` explains one.\n\
         Exit codes: 0 success (and it fits, where that was asked), 1 it does not fit, 2 bad input.\n",
    );
    text
}

impl Command {
    fn usage(&self) -> String {
        let mut usage = format!("headroom {}", self.name);
        for word in self.words {
            usage.push_str(&format!(" {word}"));
        }
        for option in self.options {
            usage.push_str(&format!(" [--{} {}]", option.name, option.value));
        }
        usage
    }

    fn help(&self) -> String {
        let mut text = format!("{}\n\n{}.\n", self.usage(), self.about);
        for option in self.options {
            let flag = format!("--{} {}", option.name, option.value);
            text.push_str(&format!("\n  {flag:<20} {}", option.about));
        }
        text.push_str(&format!("\n  {:<20} print JSON\n", "--json"));
        text
    }
}
