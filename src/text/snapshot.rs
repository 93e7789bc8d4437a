//! Texts of memory snapshots.

pub const SNAPSHOT: &str = "This is the text of a memory snapshot. Open the file itself (“Open a file”, or drop it on the page) to see which lines of code hold the memory.";
pub const SNAPSHOT_TITLE: &str = "Memory snapshot";
pub const SNAPSHOT_CLOSE: &str = "Close the snapshot";
pub const SNAPSHOT_TOO_LARGE: &str = "This file cannot be read here: the limit for snapshots is 64 MiB. On the command line, `headroom snapshot FILE` reads larger ones.";
pub const HOLDERS: &str = "Lines that hold memory";
pub const NOT_IN_THE_RUN: &str = "Not in the run on the screen";
pub const NOT_IN_THE_SNAPSHOT: &str = "In the run, not in the snapshot";
pub const OF_ANOTHER_SIZE: &str = "Different size than in the run";
pub const SAME_AS_THE_RUN: &str =
    "Every allocation is in the run, and every tensor of the run is in the snapshot.";
pub const NOT_RECORDED: &str = "no recorded stack";

pub fn no_snapshot(why: &str) -> String {
    format!("This is not a PyTorch memory snapshot: {why}.")
}
