//! Texts about several GPUs.

pub const PER_GPU: &str = "What each GPU holds";
pub const PER_GPU_ABOUT: &str = "The fullest GPU decides whether the job fits.";
pub const PIPELINE: &str = "When each stage computes";

/// The description of the pipeline chart.
pub fn pipeline_about(unit: &str, micro_batches: usize, of: u64, waits: f64) -> String {
    let waits = 100.0 * waits;
    let first = if micro_batches as u64 == of {
        String::new()
    } else {
        format!(" The first {micro_batches} of {of} micro-batches are drawn.")
    };
    format!(
        "One row per stage, in {unit}; numbers are micro-batches. Over a full step each GPU is idle {waits:.0} % of the time.{first}"
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

/// The omitted machines.
pub fn more_machines(count: u32) -> String {
    format!("and {count} more machines")
}

/// The GPUs of a `DataParallel` process.
pub const fn of_copies(others: bool) -> &'static str {
    if others { "Other GPUs" } else { "First GPU" }
}

pub const EVERY_GPU: &str = "Every GPU";
