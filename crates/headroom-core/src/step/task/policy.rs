//! The model that is trained, and what for.

use crate::nets::LanguageModel;
use headroom_scenario::{Data, Task};

/// The model that is trained, and what for.
#[derive(Clone, Copy)]
pub(super) struct Policy<'a> {
    pub model: &'a dyn LanguageModel,
    pub task: &'a Task,
    pub data: &'a Data,
}
