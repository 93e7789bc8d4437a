//! A memory snapshot of PyTorch.

pub const SNAPSHOT: &str = "This is the text of a memory snapshot. Open its file here (“Open a file”, or drop it on the page): it says which lines hold the memory.";
pub const SNAPSHOT_TITLE: &str = "Memory snapshot";
pub const SNAPSHOT_CLOSE: &str = "Close the snapshot";
pub const SNAPSHOT_TOO_LARGE: &str = "This file cannot be read here: snapshots of up to 64 MiB can. On the command line, `headroom snapshot FILE` reads larger ones.";
pub const HOLDERS: &str = "Lines that hold memory";
pub const NOT_IN_THE_RUN: &str = "Not in the run on the screen";
pub const NOT_IN_THE_SNAPSHOT: &str = "In the run, not in the snapshot";
pub const OF_ANOTHER_SIZE: &str = "Of another size than in the run";
pub const SAME_AS_THE_RUN: &str =
    "Every allocation is in the run, and every tensor of the run is in the snapshot.";
pub const NOT_RECORDED: &str = "a line that was not recorded";

pub fn no_snapshot(why: &str) -> String {
    format!("This is no memory snapshot of PyTorch: {why}.")
}
