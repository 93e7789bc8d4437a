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
pub const LAYOUTS: &str = "Layouts";
pub const LAYOUTS_ABOUT: &str = "Ways to split the run over these GPUs with data, tensor, pipeline and context parallelism, at the same effective batch. Only layouts on the Pareto front of time and memory are listed.";
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
        1 => "Fewest GPUs that can train it: 1.".into(),
        _ => format!("Fewest GPUs that can train it: {gpus}."),
    }
}
