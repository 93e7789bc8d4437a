//! Texts of saved plans and sharing.

pub const PLANS: &str = "Saved plans";
pub const PLAN_NAME: &str = "Name of this plan";
pub const PLANS_ARE_LOCAL: &str =
    "Stored only in this browser, which may clear them: a bookmark or a file is safer.";
pub const NOT_KEPT: &str =
    "This browser does not allow storage: save plans as a file or a bookmark.";
pub const FORGET: &str = "Delete";
pub const SHARE: &str = "Share";
