//! Several GPUs.

pub const PER_GPU: &str = "What each GPU holds";
pub const PER_GPU_ABOUT: &str = "The fullest decides whether the job fits.";
pub const PIPELINE: &str = "When each stage computes";

/// What the chart of a pipeline's passes shows.
pub fn pipeline_about(unit: &str, micro_batches: usize, of: u64, waits: f64) -> String {
    let waits = 100.0 * waits;
    let first = if micro_batches as u64 == of {
        String::new()
    } else {
        format!(" The first {micro_batches} of {of} micro-batches are drawn.")
    };
    format!(
        "A row for each stage, in {unit}; numbers are micro-batches. In a whole step each GPU waits {waits:.0} % of the time for the others.{first}"
    )
}

/// "Machine 3", "Machines 1–16".
pub fn machines(first: u32, last: u32) -> String {
    if first == last {
        format!("Machine {first}")
    } else {
        format!("Machines {first}–{last}")
    }
}

/// Machines for which there was no room.
pub fn more_machines(count: u32) -> String {
    format!("and {count} more machines")
}

/// GPUs of a process that copies its model to all but the first.
pub const fn of_copies(others: bool) -> &'static str {
    if others { "Other GPUs" } else { "First GPU" }
}

pub const EVERY_GPU: &str = "Every GPU";
pub const LAYOUTS: &str = "Layouts";
pub const LAYOUTS_ABOUT: &str = "How these GPUs can share the run: data, tensor, pipeline and context parallelism, with the batch kept. Those that no other beats in both time and memory.";
pub const NO_LAYOUT: &str = "No layout of these GPUs fits.";

pub fn layouts_tried(tried: u64) -> String {
    format!("{tried} layouts tried so far.")
}

pub fn layouts_found(tried: u64, too_large: u64, left_out: u64) -> String {
    format!(
        "{tried} layouts tried: {too_large} need too much memory. {left_out} more are not valid or not modelled."
    )
}

pub fn fewest_gpus(gpus: u32) -> String {
    match gpus {
        1 => "The fewest GPUs that train it: 1.".into(),
        _ => format!("The fewest GPUs that train it: {gpus}."),
    }
}
