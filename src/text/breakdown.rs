//! What holds the memory.

pub const FORWARD_END: &str = "After the forward pass";
pub const BETWEEN: &str = "Between steps";
pub const WHOLE_MODEL: &str = "Everything";
pub const MODULE_PATH: &str = "Path of the module";
pub const TABLE: &str = "Table";
pub const BY_MODULE: &str = "By module";
pub const TENSORS: &str = "Tensors alive at the peak";
pub const INSIDE: &str = "Tensors of";
pub const OUTSIDE: &str = "outside the model";
pub const BESIDE_GPU: &str = "Host memory and disk";
pub const SMALLER: &str = "smaller items";

/// Why a tensor lives until backward.
pub fn kept_for(operations: &str) -> String {
    format!("backward of {operations}")
}

pub fn largest_of(name: &str) -> String {
    format!("largest {name}")
}

pub const ALIVE: &str = "Alive at this point";
