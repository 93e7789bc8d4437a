//! What every place of the page uses: the session, the browser, the worker, charts and tables.

pub mod bar;
pub mod browser;
pub mod chart;
pub mod colours;
pub mod copy;
pub mod draft;
pub mod effects;
pub mod follow;
pub mod graphs;
pub mod history;
pub mod later;
pub mod masthead;
pub mod menu;
pub mod origin;
pub mod places;
pub mod plan_store;
pub mod preferences;
#[cfg(test)]
pub mod sample;
pub mod saves;
pub mod session;
pub mod signals;
pub mod table;
pub mod tone;
pub mod worker;
