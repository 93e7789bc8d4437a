//! Files for other programs. User text goes through one quoting function for each language.

pub mod json;
pub mod yaml;
