//! The command line: the same library, in a terminal.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(2)
}
