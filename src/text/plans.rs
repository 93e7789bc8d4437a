//! Texts of saved plans and sharing.

use crate::shared::plan_store::MOST;

pub const PLANS: &str = "Saved plans";
pub const PLAN_NAME: &str = "Name of this plan";
pub const PLANS_ARE_LOCAL: &str =
    "Stored only in this browser, which may clear them: a bookmark or a file is safer.";
pub const NOT_KEPT: &str =
    "This browser does not allow storage: save plans as a file or a bookmark.";
pub const FORGET: &str = "Delete";
pub const SHARE: &str = "Share";

/// Where another plan finds no place.
pub fn too_many_plans() -> String {
    format!("{MOST} plans are saved, the most there may be: delete one first.")
}
