//! Tables of advice that the worker fills, each row with its effect and a button.

mod changes;
mod panel;
mod sheet;
mod steps;
mod table;

pub use changes::{MOVES, programs, seconds};
pub use panel::{Advice, Panel};
pub use sheet::{Cell, Sheet};
pub use steps::{KIND as STEPS, ManySteps};
pub use table::SheetTable;
