//! The command line: arguments in, text and an exit code out.
//!
//! Exit codes: 0 for success (and "fits", for commands that check it), 1 for "does not fit", 2 for bad input.

mod answer;
mod args;
mod batches;
mod brought;
mod calibrate;
mod check;
mod command;
mod commands;
mod convert;
mod doctor;
mod estimate;
mod guide;
mod lists;
mod ranks;
mod replay;
mod score;
mod snapshot;
mod steps;
mod strategy;
mod what;

use answer::Refusal;
use commands::COMMANDS;

use headroom_scenario::Problem;
use headroom_systems as systems;

/// The output and the exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub stdout: String,
    pub stderr: String,
    pub code: u8,
}

/// Runs the program with its arguments (without the program name).
pub fn run(arguments: &[String]) -> Outcome {
    systems::install();
    let Some((name, rest)) = arguments.split_first() else {
        return Outcome {
            stderr: help(),
            code: 2,
            ..Outcome::default()
        };
    };
    if matches!(name.as_str(), "--help" | "-h" | "help") {
        return printed(help());
    }
    if matches!(name.as_str(), "--version" | "-V") {
        return printed(format!("headroom {}\n", env!("CARGO_PKG_VERSION")));
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
        let expected = format!("one of {}", names.join(", "));
        return refused(Problem::new("command", name, expected).into());
    };
    if rest
        .iter()
        .any(|word| matches!(word.as_str(), "--help" | "-h"))
    {
        return printed(command.help());
    }
    let answer = command
        .parse(rest)
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

fn printed(stdout: String) -> Outcome {
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
        "headroom: does this training run fit, what can I change, how do I run it?\n\nusage:\n",
    );
    for command in COMMANDS {
        text.push_str(&format!("  {:<64} {}\n", command.usage(), command.about));
    }
    text.push_str(
        "\nWHAT is a preset's id, a scenario file (YAML or JSON), a link, or - for standard input.\nEvery command takes \
         --json. `headroom COMMAND --help` explains one.\nExit codes: 0 success (and it fits, for commands that check \
         it), 1 does not fit, 2 bad input.\n",
    );
    text
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
