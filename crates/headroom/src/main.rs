//! The command line: the same library, in a terminal.

use std::io::Write;
use std::process::ExitCode;

use headroom::Terminal;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let outcome = headroom::run_on(&arguments, Terminal::detect());
    // A reader that has gone away (a closed pipe) is no reason to panic.
    let written = std::io::stdout().write_all(outcome.stdout.as_bytes());
    let told = std::io::stderr().write_all(outcome.stderr.as_bytes());
    match written.and(told) {
        Ok(()) => ExitCode::from(outcome.code),
        Err(_) => ExitCode::from(2),
    }
}
