//! Advice: what to change, worked out by the worker for the scenario on the screen, each row with a button that takes it.

mod jobs;
mod search;
mod sheet;
mod solve;
mod steps;

pub use jobs::{GPUS, LADDER, MOVES, TIERS};
pub use search::{KIND as SEARCH, view as fastest};
pub use solve::SOLVE;
pub use steps::{KIND as STEPS, view as steps};

use leptos::prelude::*;
use web_sys::Event;

use super::effects::once_rested;
use super::part::Part;
use super::session::Session;
use super::worker::{Helper, JobKind};
use super::{browser, text};
use crate::share;
use sheet::{Heads, Sheet};

/// A table that a worker fills.
#[derive(Debug)]
pub struct Panel {
    pub kind: JobKind,
    pub title: &'static str,
    pub about: &'static str,
    pub head: &'static [&'static str],
    /// How many of the last columns are numbers.
    pub numbers: usize,
    /// Whether it is asked for unfolded.
    pub open: bool,
    /// Whether its columns can put it in order.
    pub sortable: bool,
}

/// Takes the scenario of the button that was pressed.
fn apply(session: Session, event: &Event) {
    let link = browser::attribute_under(event, "data-link");
    if !link.is_empty() {
        session.try_out(share::read(&link).scenario);
    }
}

/// Asks the worker about the scenario on the screen, once it has rested, for as long as `wanted` says so.
pub fn follow(session: Session, helper: Helper, wanted: impl Fn() -> bool + Copy + 'static) {
    let ask = move || {
        if untrack(wanted) {
            let scenario = session.answer.with_untracked(|it| (*it.scenario).clone());
            helper.ask(scenario);
        }
    };
    once_rested(250, ask, move |_| {
        let wanted = wanted();
        if wanted {
            session.answer.with(|_| ());
        } else {
            helper.stop();
        }
        wanted
    });
}

pub fn view(session: Session, panel: &'static Panel) -> Part {
    let helper = Helper::new(panel.kind.id);
    let open = RwSignal::new(panel.open);
    follow(session, helper, move || open.get());
    let order = RwSignal::new(None);
    let shown = move || {
        helper.reply.with(|reply| {
            let mut sheet = Sheet::read(&reply.lines);
            order.get().into_iter().for_each(|it| sheet.sort(it));
            let heads = if panel.sortable {
                Heads::Sort(order.get())
            } else {
                Heads::Plain
            };
            sheet.html_with(panel.head, panel.numbers, session.units.get(), heads)
        })
    };
    let id = panel.kind.id;
    let press = move |event: Event| {
        apply(session, &event);
        if let Ok(column) = browser::attribute_under(&event, "data-sort").parse::<usize>() {
            // The same column again turns the order round.
            let largest_first = order.get_untracked() == Some((column, false));
            order.set(Some((column, largest_first)));
            browser::focus_soon(format!("[data-testid=\"{id}\"] [data-sort=\"{column}\"]"));
        }
    };
    let waiting = move || !helper.reply.with(|it| it.done);
    // A table that comes in one piece says that it will.
    let nothing_yet = move || !helper.reply.with(|it| it.done || !it.lines.is_empty());
    let (title, about, working) = (panel.title, panel.about, text::WORKING);
    let unfolded = if panel.open { " open" } else { "" };
    Part::new(&format!(
        r#"<section class="panel" aria-labelledby="{id}-title" data-testid="{id}">
            <details class="more"{unfolded}>
                <summary><h2 id="{id}-title">{title}</h2></summary>
                <p class="quiet">{about}</p>
                <p class="working">{working}</p>
                <div class="scroller advice"></div>
            </details>
        </section>"#
    ))
    .class("", "stale", move || session.stale.get())
    .tells_open("details", open)
    .flag(".working", "hidden", move || !nothing_yet())
    .attribute(".advice", "aria-busy", move || waiting().to_string())
    .html(".advice", shown)
    .on(".advice", "click", press)
}
