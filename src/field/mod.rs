//! What a person says about a run: the field, the form, files and saved plans.

pub mod ask;
pub mod chips;
pub mod combo;
pub mod form;
pub mod lists;
pub mod open;
pub mod plans;
