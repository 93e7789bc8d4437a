//! Texts of the exported files.

pub const RUN: &str = "Files to run";
pub const WRITTEN_FOR: &str = "Written for";
pub const STARTED_BY: &str = "started by";
pub const COPY_COMMAND: &str = "Copy command";
pub const SAVE_COMMAND: &str = "Download as a script";
pub const COMMAND_ABOUT: &str =
    "One command writes these files and starts the run; only the program must be installed.";
pub const ALL_PROGRAMS: &str = "All programs (.zip)";
/// What a repair would need, before it is pressed.
pub fn would_need(memory: &str, fits: &str) -> String {
    format!(": {memory}, {fits}")
}

pub fn batch_changes(before: u64, after: u64) -> String {
    format!("; effective batch {before} → {after}")
}

pub const CHANGE_ALL: &str = "Make all these changes";

pub fn cannot_run(program: &str) -> String {
    format!("{program} can't express:")
}

/// The label of a button that fixes a refusal.
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
