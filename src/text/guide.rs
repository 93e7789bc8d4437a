//! Texts of a system's guide.

pub const GUIDE_TABLE: &str = "Claims of the guide";
pub const SEE_GUIDE: &str = "See what it gets right and wrong";

pub fn guide_banner(claims: usize) -> String {
    format!("This system has a memory guide of its own: {claims} of its claims are checked here.")
}

/// A quotation without Markdown's emphasis.
pub fn without_marks(text: &str) -> String {
    text.replace("**", "")
}

pub const GUIDE: &str = "What this system’s guide says";
pub const SAID: &str = "The guide says";
pub const COMPUTED: &str = "Computed here";
pub const WHY: &str = "Why they differ";
pub const KNOBS: &str = "Its flags and what they do";
pub const STACK_DEFAULTS: &str = "Assumed defaults";
pub const OF_THE_METHOD: &str = "LoRA";
pub const DEFAULT: &str = "default";
pub const CHANGED: &str = "changed";
pub const EFFECTIVE: &str = "effective";
