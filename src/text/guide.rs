//! A system's own guide.

pub const GUIDE_TABLE: &str = "Claims of the guide";
pub const SEE_GUIDE: &str = "See what it gets right and wrong";

pub fn guide_banner(claims: usize) -> String {
    format!("This system has a memory guide of its own: {claims} of its claims are checked here.")
}

pub const GUIDE: &str = "What this system’s guide says";
pub const SAID: &str = "The guide says";
pub const COMPUTED: &str = "Computed here";
pub const WHY: &str = "Why they differ";
pub const KNOBS: &str = "Its flags and what they do";
pub const BROUGHT: &str = "Defaults that were taken for you";
pub const OF_THE_METHOD: &str = "LoRA";
pub const HOLDS: &str = "default";
pub const CHANGED: &str = "changed";
pub const EFFECTIVE: &str = "effective batch";
