//! Texts of the breakdown.

use headroom_core::estimate::Phase;

pub const BAR: &str = "GPU memory";
pub const BREAKDOWN: &str = "Where the memory goes";

pub fn at_the_peak(phase: Phase) -> String {
    format!(
        "at the peak of a step, in {}",
        super::phase(phase).to_ascii_lowercase()
    )
}

pub const FORWARD_END: &str = "After the forward pass";
pub const BETWEEN: &str = "Between steps";
pub const WHOLE_MODEL: &str = "Everything";
pub const MODULE_PATH: &str = "Module path";
pub const TABLE: &str = "Table";
pub const BY_MODULE: &str = "By module";
pub const TENSORS: &str = "Tensors alive at the peak";
pub const INSIDE: &str = "Tensors of";
pub const OUTSIDE: &str = "outside the model";
pub const HOST_AND_DISK: &str = "Host memory and disk";
pub const SMALLER: &str = "smaller items";

/// Why a tensor is kept until backward.
pub fn kept_for(operations: &str) -> String {
    format!("backward of {operations}")
}

pub const ALIVE: &str = "Alive at this point";
