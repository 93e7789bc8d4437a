//! The page's texts, kept together so that they can be reviewed and translated.

mod advice;
mod breakdown;
mod chips;
mod compare;
mod doctor;
mod files;
mod form;
mod gpus;
mod guide;
mod lists;
mod many_steps;
mod network;
mod parts;
mod plans;
mod snapshot;
mod start;
mod verdict;

pub use advice::*;
pub use breakdown::*;
pub use chips::*;
pub use compare::*;
pub use doctor::*;
pub use files::*;
pub use form::*;
pub use gpus::*;
pub use guide::*;
pub use lists::*;
pub use many_steps::*;
pub use network::*;
pub use parts::*;
pub use plans::*;
pub use snapshot::*;
pub use start::*;
pub use verdict::*;

pub const WORKING: &str = "Working…";
pub const APPLY: &str = "Apply";
pub const COPY: &str = "Copy";
pub const COPIED: &str = "Copied";
pub const COPY_YOURSELF: &str = "Select the text and press Ctrl+C";

/// A count of parameters with three figures: `124 M`.
pub fn count(number: u64) -> String {
    let (size, unit) = match number {
        0..1_000 => return number.to_string(),
        1_000..1_000_000 => (1e3, "k"),
        1_000_000..1_000_000_000 => (1e6, "M"),
        1_000_000_000..1_000_000_000_000 => (1e9, "B"),
        _ => (1e12, "T"),
    };
    let value = number as f64 / size;
    let digits = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_three_figures() {
        let check = |number, expected: &str| assert_eq!(count(number), expected);
        check(7, "7");
        check(124_439_808, "124 M");
        check(8_030_261_248, "8.03 B");
        check(70_553_706_496, "70.6 B");
    }
}
