//! Texts of the doctor.

use headroom_advice::doctor::Cause;
use headroom_base::units::{Bytes, UnitStyle};

pub const DIAGNOSE: &str = "Ran out of memory?";
pub const PASTE: &str = "Paste the error, an nvidia-smi table, torch.cuda.memory_summary() or a probe log, or open a memory snapshot. Nothing leaves this tab.";
pub const NOT_UNDERSTOOD: &str =
    "No known PyTorch error, nvidia-smi table or probe log found in this text.";
pub const YOUR_RUN: &str = "Is this the run on the screen?";
pub const YES_COMPARE: &str = "Yes, compare with it";
pub const NO_COMPARE: &str = "No";
pub const OTHER_RUN: &str =
    "Not compared with your settings. Enter your model and settings to compare them.";
pub const COMPARED_WITH_RUN: &str = "Compared with your settings.";
pub const NO_NUMBERS: &str = "This error has no numbers, so it cannot be diagnosed on its own. Paste nvidia-smi or torch.cuda.memory_summary() as well, or log a few steps with the probe.";
pub const OF_THE_HOST: &str =
    "This is the computer's own memory, not the GPU's: see “Host memory and disk”.";
pub const ON_THE_GPUS: &str = "GPUs in the table";
pub const ITS_PROCESSES: &str = "Processes on them";

/// The label of the button that applies a message's GPU.
pub fn use_card(card: &str, memory: &str) -> String {
    format!("Use this GPU: {card} with {memory}")
}

pub const EVIDENCE: &str = "Evidence";
pub const ADVICE: &str = "What to change";
pub const WHAT_FITS: &str = "Plans that make this run fit";
pub const CHECKS: &str = "How to be sure";
pub const OR_ELSE: &str = "Other possible causes";
pub const MEASURED: &str = "measured peak";
pub const PREDICTED: &str = "predicted";
pub const OFFSET: &str = "difference";
pub const OUTSIDE_PYTORCH: &str = "on the GPU outside PyTorch";
pub const PREDICTED_AND_MEASURED: &str = "Predicted and measured";
pub const CALIBRATE: &str = "Apply this correction";
pub const REMOVE: &str = "Remove";
pub const SAVE_PROBE: &str = "Download the probe";
pub const PROBE_ABOUT: &str =
    "A Python file for your training loop that logs one line per step. Open its log here.";

/// The title of a measured run's chart.
pub fn measured_axis(units: UnitStyle, largest: Bytes) -> String {
    format!(
        "Peak allocated {} per step; the grey line is the prediction",
        units.scale(largest).1
    )
}

pub fn confidence(confidence: f64) -> String {
    format!("({:.0} % sure)", confidence * 100.0)
}

pub fn likely(cause: &str, confidence: f64) -> String {
    format!("{cause} ({:.0} %)", confidence * 100.0)
}

pub const fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Capacity => "The run needs more memory than the GPU has",
        Cause::Outlier => "One batch was larger than the ones before it",
        Cause::Leak => "Memory leak: something is kept from step to step",
        Cause::Fragmentation => "Fragmentation: enough memory, but not contiguous",
        Cause::Evaluation => "An evaluation or a generation needs more than training steps do",
        Cause::Checkpoint => "A checkpoint is written or read on the GPU",
        Cause::Schedule => "Something new started at this step",
        Cause::OptimizerStep => "The optimizer allocates its states in its first step",
        Cause::Attention => "A tensor is quadratic in the sequence length or in the pixels",
        Cause::Logits => "The logits and their loss do not fit",
        Cause::HostMemory => "The host's memory is full, not the GPU's",
        Cause::SharedMemory => "The data loader's shared memory is full, not the GPU's",
        Cause::LibraryBug => "A driver or a library is at fault",
        Cause::NotOutOfMemory => "Not a PyTorch out-of-memory error",
        Cause::OtherProcess => "Another process is using the memory",
        Cause::WrongDevice => "The run is on the wrong GPU",
        Cause::Unknown => "The cause cannot be determined from this",
    }
}
