//! The command line: the same library, in a terminal.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Option<Vec<String>> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.into_string().ok())
        .collect();
    let outcome = headroom::run(&arguments.unwrap_or_default());
    // A reader that has gone away (a closed pipe) is no reason to panic.
    let written = std::io::stdout().write_all(outcome.stdout.as_bytes());
    let told = std::io::stderr().write_all(outcome.stderr.as_bytes());
    match written.and(told) {
        Ok(()) => ExitCode::from(outcome.code),
        Err(_) => ExitCode::from(2),
    }
}
