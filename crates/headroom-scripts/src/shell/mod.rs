//! Shell scripts read as programs: their commands with every variable replaced, as far as it can be known. Nothing is executed.

mod allocation;
mod arithmetic;
mod assign;
mod builtin;
mod command;
mod compound;
mod dollar;
mod expand;
mod filter;
mod flags;
mod launch;
mod options;
mod own;
mod parameter;
mod parse;
mod pattern;
mod prepare;
mod regex;
mod run;
mod simple;
mod state;
mod syntax;
mod test;
mod value;
mod word;
mod wrap;

#[cfg(test)]
mod tests;

pub use flags::{Flag, Form, flags};
pub use launch::{Count, Launch, Launcher, launch, launches};

use super::Beside;
use std::collections::BTreeMap;

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Its text; a part that cannot be known stands as it is written, such as `$1`.
    pub text: String,
    /// What it depends on that was not given, such as `$1` or `$(nvidia-smi -L | wc -l)`.
    pub unknown: Option<String>,
}

/// One simple command, in the order in which a run would reach it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    pub words: Vec<Word>,
    /// Variables that it gets: exported ones, and those in front of it.
    pub environment: BTreeMap<String, Word>,
    /// What runs the shell that it stands in, such as the words of `srun --nodes 2` before `bash -c`.
    pub within: Vec<Word>,
}

/// What a script does, as far as it can be known without running it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub commands: Vec<Command>,
    /// `#SBATCH --gres=gpu:8`, one entry an option, dashes removed: (`gres`, `gpu:8`).
    pub directives: Vec<(String, String)>,
    /// Files that it writes by a heredoc or `cat >`, by name.
    pub files: Vec<(String, String)>,
    /// All variables at the end.
    pub variables: BTreeMap<String, Word>,
}

/// The work that a script may cost, in units of about a byte that is copied.
const FUEL: u64 = 3_000_000;

/// Evaluates a script; `beside` has the files that it sources. Work is bounded, whatever the text.
pub fn evaluate(text: &str, beside: &dyn Beside) -> Script {
    let mut shell = state::Shell::new(beside, FUEL);
    let Some(text) = prepare::prepare(text, &mut shell.out.directives) else {
        return shell.out;
    };
    shell.list(&parse::parse(&text, 0));
    finish(shell)
}

/// Evaluates one command whose words are known apart, such as a manifest's `command` and `args`.
pub fn evaluate_words(words: &[String], beside: &dyn Beside) -> Script {
    let mut shell = state::Shell::new(beside, FUEL);
    let words: Vec<value::Value> = words.iter().map(value::Value::text).collect();
    shell.command(&[], &words);
    finish(shell)
}

fn finish(shell: state::Shell) -> Script {
    let mut script = shell.out;
    for (name, variable) in shell.variables.iter() {
        let value = value::Value::joined(&variable.values(), " ");
        script.variables.insert(name.clone(), value.word());
    }
    script
}
