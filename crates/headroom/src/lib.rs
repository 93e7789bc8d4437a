//! The command line: arguments in, text and an exit code out.
//!
//! Exit codes: 0 for success (and "fits", for commands that check it), 1 for "does not fit", 2 for bad input.

mod answer;
mod args;
mod batches;
mod calibrate;
mod check;
mod command;
mod commands;
mod convert;
mod doctor;
mod drawing;
mod estimate;
mod flags;
mod guide;
mod input;
mod lists;
mod mcp;
mod parser;
mod probe;
mod ranks;
mod replay;
mod score;
mod shell;
mod snapshot;
mod steps;
mod strategy;
mod terminal;
mod what;

pub use terminal::Terminal;

use answer::{Answer, Refusal};
use headroom_systems as systems;
use parser::Parsed;

/// The output and the exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub stdout: String,
    pub stderr: String,
    pub code: u8,
}

/// Runs the program with its arguments (without the program name), for a file or a pipe.
pub fn run(arguments: &[String]) -> Outcome {
    run_on(arguments, Terminal::Plain)
}

/// The same for what reads standard output.
pub fn run_on(arguments: &[String], terminal: Terminal) -> Outcome {
    systems::install();
    if arguments.is_empty() {
        return Outcome {
            stderr: parser::program(&parser::Settings::Common)
                .render_help()
                .to_string(),
            code: 2,
            ..Outcome::default()
        };
    }
    let (command, args) = match parser::parse(arguments) {
        Ok(Parsed::Run(command, args)) => (command, args),
        Ok(Parsed::Print(text)) => {
            return Outcome {
                stdout: match terminal {
                    Terminal::Styled => text.ansi().to_string(),
                    Terminal::Plain => text.to_string(),
                },
                ..Outcome::default()
            };
        }
        Err(refusal) => return refused(&refusal, arguments.iter().any(|word| word == "--json")),
    };
    match command.run.on(&args) {
        Ok(answer) => Outcome {
            stdout: shown(&answer, args.json, terminal),
            stderr: lines(&answer.notes),
            code: answer.code(),
        },
        Err(refusal) => refused(&refusal, args.json),
    }
}

fn shown(answer: &Answer, as_json: bool, terminal: Terminal) -> String {
    let text = || terminal::inert(&answer.text);
    match (&answer.drawing, terminal) {
        _ if as_json => answer.json.clone(),
        (Some(drawing), Terminal::Styled) => drawing.over(&text()),
        _ => text(),
    }
}

/// What is wrong, for people; with `--json` for programs, too.
fn refused(refusal: &Refusal, as_json: bool) -> Outcome {
    Outcome {
        stdout: if as_json {
            refusal.json()
        } else {
            String::new()
        },
        stderr: lines(&refusal.0),
        code: 2,
    }
}

fn lines(lines: &[String]) -> String {
    lines
        .iter()
        .map(|line| format!("headroom: {}\n", terminal::line(line)))
        .collect::<Vec<_>>()
        .concat()
}

#[cfg(test)]
mod tests {
    use super::run;
    use headroom_core::estimate::runs_of;

    /// A command runs the network once for each distinct question.
    #[track_caller]
    fn check(arguments: &str, runs: u32) {
        let arguments: Vec<String> = arguments.split(' ').map(String::from).collect();
        let (outcome, ran) = runs_of(|| run(&arguments));
        assert!(
            outcome.code < 2 && !outcome.stdout.is_empty(),
            "{outcome:?}"
        );
        assert_eq!(ran, runs, "{arguments:?}");
    }

    #[test]
    fn a_command_runs_the_network_once_for_each_question() {
        check("estimate gpt2-small --json", 1);
        check("estimate gpt2-small", 1);
        check("time gpt2-small", 1);
        // Without checkpoints for the model's own arithmetic.
        check("time gpt2-small --set ckpt=layers", 2);
        // Names of adapters' targets are looked up in the model as constructed.
        check("estimate llama-8b-lora-24gb --json", 1);
        // All steps are alike, and an estimate shows them.
        check("steps gpt2-small --steps 5", 1);
    }
}
