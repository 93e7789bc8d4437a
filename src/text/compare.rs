//! Texts of the comparison.

pub const COMPARE: &str =
    "Pin this scenario, change any setting, and compare the two side by side.";
pub const NO_DIFFERENCE: &str = "No difference yet: change a setting.";
pub const KEEP_AS_A: &str = "Keep this as A";
pub const COMPARED: &str = "Compared with A";
pub const SWAP: &str = "Swap";
pub const STOP_COMPARING: &str = "Stop comparing";
pub const SEE_COMPARISON: &str = "See the comparison";
pub const NOW: &str = "Now";

pub fn compared(change: &str, differ: usize) -> String {
    let settings = match differ {
        1 => "1 setting differs".into(),
        _ => format!("{differ} settings differ"),
    };
    match change {
        "same" => format!("Compared with A: the same memory, {settings}."),
        _ => format!("Compared with A: {change}, {settings}."),
    }
}
