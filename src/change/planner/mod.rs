//! The planner's view: whole runs that fit, in brief below the verdict and in full with a chart of memory against time.

mod chart;
mod cloud;
mod cost;
mod job;
mod locks;
mod panel;
mod proposal;
mod reach;
mod strip;

pub use job::KIND;
pub use panel::PlannerPanel;
pub use reach::{CARDS, REACH};
pub use strip::{PlanRows, PlanStrip};

use leptos::prelude::*;

use crate::shared::follow::follow_preferences;
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::shared::worker::Helper;
use proposal::{Found, Kind};

/// The plans of the run on the screen, for every part of the page that shows them.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    helper: Helper,
    found: Memo<Found>,
}

impl Planned {
    pub fn new() -> Self {
        let helper = Helper::new(KIND.id);
        let found = memo(move || helper.reply.with(|reply| Found::read(&reply.lines)));
        Self { helper, found }
    }

    /// The plans of the page that a component is part of.
    pub fn current() -> Self {
        expect_context()
    }

    /// Whether the run does not fit as it is, and something would.
    pub fn is_needed(self) -> bool {
        self.found.with(|found| {
            let now = found.runs.iter().find(|run| run.kind == Kind::Now);
            now.is_some_and(|now| !now.fits) && found.plans().next().is_some()
        })
    }

    /// From here on the plans follow the run: once the worker is there.
    fn follow(self, session: Session) {
        follow_preferences(session, self.helper, || true);
    }

    fn is_done(self) -> bool {
        self.helper.reply.with(|reply| reply.done)
    }
}
