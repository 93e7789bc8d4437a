//! Files to run.

pub const RUN: &str = "Files to run";
pub const STARTED_BY: &str = "started by";
pub const COPY_COMMAND: &str = "Copy command";
pub const SAVE_COMMAND: &str = "Download as a script";
pub const COMMAND_ABOUT: &str =
    "One command writes these files and starts the run; it needs nothing else but the program.";
pub const ALL_PROGRAMS: &str = "All programs (.zip)";
pub const CHANGE_ALL: &str = "Make all these changes";

pub fn cannot_run(program: &str) -> String {
    format!("{program} cannot run this as it is. It has no setting for:")
}

/// What a button does that mends what a program refuses.
pub fn change_to(label: &str, value: &str) -> String {
    format!("Change {label} to {value}")
}

pub fn program_needs(expected: &str) -> String {
    format!("It needs {expected}.")
}

pub fn lines_changed(count: usize) -> String {
    match count {
        1 => "1 line changed by your last edit".into(),
        _ => format!("{count} lines changed by your last edit"),
    }
}
