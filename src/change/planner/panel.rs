//! All of the planner in one place: what may change, the chart, the plans, how far the run can go, and on which GPUs.

use leptos::prelude::*;

use super::Planned;
use super::chart::TimeMemory;
use super::cost::Hourly;
use super::locks::Locks;
use super::proposal::Proposal;
use super::reach::{CARDS_PANEL, REACH_PANEL};
use crate::change::advice::{Advice, Cell, Sheet, SheetTable};
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::text;
use headroom_base::units::Seconds;

const HEAD: &[&str] = &["Plan", "Needs", "Step time", "Results", "Supported by"];

/// The plans as a table.
fn sheet(runs: &[&Proposal]) -> Sheet {
    let mut sheet = Sheet::default();
    for run in runs {
        let time = run.seconds.map(Seconds::new);
        let cells = vec![
            Cell::Steps(run.name.clone(), run.changes.clone()),
            Cell::Size(run.needs),
            time.map_or("–".into(), |time| {
                Cell::Shown(time.get(), time.to_string())
            }),
            run.results.clone().into(),
            run.programs.clone().into(),
        ];
        sheet.link(&run.link, cells);
    }
    sheet
}

#[component]
pub fn PlannerPanel() -> impl IntoView {
    let session = Session::current();
    let planned = Planned::current();
    let sheet = memo(move || {
        planned
            .found
            .with(|found| sheet(&found.plans().collect::<Vec<_>>()))
    });
    let message = move || {
        let said = planned.found.with(|found| found.message.clone());
        if said.is_empty() {
            text::PLANNING.into()
        } else {
            said
        }
    };
    let busy = move || (!planned.is_done()).to_string();
    view! {
        <section
            class="panel"
            class:stale=move || session.stale.get()
            aria-labelledby="planner-title"
            data-testid="planner"
        >
            <header>
                <h3 id="planner-title">{text::WHAT_TO_CHANGE}</h3>
                <p class="quiet" role="status">{message}</p>
            </header>
            <Locks/>
            <TimeMemory/>
            <div class="scroller advice" aria-busy=busy>
                <SheetTable sheet head=HEAD focus="#place-change"/>
            </div>
            <Advice panel=&REACH_PANEL/>
            <Advice panel=&CARDS_PANEL><Hourly/></Advice>
        </section>
    }
}
