//! Advice: what to change, worked out by the worker for the scenario on the screen; each row says what a change saves and
//! costs and can be taken.

mod cards;
mod changes;
mod cloud;
mod cost;
mod layouts;
mod search;
mod sheet;
mod solve;
mod steps;
mod table;

pub use cards::GPUS;
pub use changes::{LADDER, MOVES, TIERS};
pub use layouts::LAYOUTS;
pub use search::KIND as SEARCH;
pub use solve::SOLVE;
pub use steps::{KIND as STEPS, ManySteps};

use leptos::prelude::*;
use web_sys::Event;

use self::cost::Hourly;
use self::search::Fastest;
use self::sheet::Sheet;
use self::table::SheetTable;
use super::session::Session;
use super::signals::{memo, once_rested};
use super::wishes::{Keep, Wishes};
use super::worker::{Helper, JobKind};
use super::{Later, browser, text};

/// A table that a worker fills.
#[derive(Debug)]
pub struct Panel {
    pub kind: JobKind,
    pub title: &'static str,
    pub about: &'static str,
    pub head: &'static [&'static str],
    /// Whether it is asked for unfolded.
    pub open: bool,
    /// Whether its columns can put it in order.
    pub sortable: bool,
}

/// Tells a signal whether the folded element that an event is of is open.
pub fn tell_open(event: &Event, open: RwSignal<bool>) {
    let now = browser::is_open(event);
    if open.get_untracked() != now {
        open.set(now);
    }
}

/// Asks the worker about the scenario on the screen within limits, once both have rested, for as long as `wanted` says so.
pub fn follow(
    session: Session,
    helper: Helper,
    wanted: impl Fn() -> bool + Copy + 'static,
    limits: impl Fn() -> String + Copy + 'static,
) {
    let ask = move || {
        if untrack(wanted) {
            let scenario = session
                .answer
                .with_untracked(|answer| (*answer.scenario).clone());
            helper.ask_within(scenario, &untrack(limits));
        }
    };
    once_rested(250, ask, move |_| {
        let wanted = wanted();
        if wanted {
            session.answer.with(|_| ());
            limits();
        } else {
            helper.stop();
        }
        wanted
    });
}

/// The same within what the person wants of advice.
pub fn follow_wishes(session: Session, helper: Helper, wanted: impl Fn() -> bool + Copy + 'static) {
    let wishes = Wishes::current();
    follow(session, helper, wanted, move || wishes.limits().write());
}

/// Everything that can be changed, in one language.
#[component]
pub fn Advised(width: ReadSignal<u32>) -> impl IntoView {
    let advice = |panel: &'static Panel| view! { <Later><Advice panel/></Later> };
    let session = Session::current();
    let several = memo(move || session.scenario.with(|scenario| scenario.hardware.gpus > 1));
    view! {
        <Later><Locks/></Later>
        {[&LADDER, &TIERS, &MOVES, &SOLVE].map(advice).collect_view()}
        <Later>
            <Show when=move || several.get()><Advice panel=&LAYOUTS/></Show>
        </Later>
        <Later><Fastest width/></Later>
        {advice(&GPUS)}
    }
}

/// What advice must keep, and for which program it is.
#[component]
fn Locks() -> impl IntoView {
    let wishes = Wishes::current();
    let lock = move |(at, (label, _)): (usize, (&'static str, _))| {
        let toggle = move |_| wishes.keep.update(|keep| keep.toggle(at));
        view! {
            <label><input type="checkbox" prop:checked=move || wishes.keep.get().has(at) on:change=toggle/>" "{label}</label>
        }
    };
    let program = move || {
        wishes.program.get().map(|target| {
            let free = move |_| {
                wishes.program.set(None);
                browser::focus_soon("#place-change".into());
            };
            view! {
                <p>
                    {text::only_what(target.title)}" "
                    <button type="button" class="plain" on:click=free>{text::ANY_PROGRAM}</button>
                </p>
            }
        })
    };
    view! {
        <fieldset class="locks">
            <legend>{text::KEEP}</legend>
            {Keep::ALL.into_iter().enumerate().map(lock).collect_view()}
        </fieldset>
        {program}
    }
}

/// A folded table of advice.
#[component]
fn Advice(panel: &'static Panel) -> impl IntoView {
    let session = Session::current();
    let helper = Helper::new(panel.kind.id);
    let open = RwSignal::new(panel.open);
    follow_wishes(session, helper, move || open.get());
    let sheet = memo(move || helper.reply.with(|reply| Sheet::read(&reply.lines)));
    let waiting = move || !helper.reply.with(|reply| reply.done);
    // A table that comes in one piece says that it will.
    let nothing_yet = move || {
        !helper
            .reply
            .with(|reply| reply.done || !reply.lines.is_empty())
    };
    let id = panel.kind.id;
    let title = format!("{id}-title");
    let labelled = title.clone();
    let hourly = (id == GPUS.kind.id).then(|| view! { <Hourly/> });
    // What takes long can be ended.
    let stop = (id == LAYOUTS.kind.id).then(|| {
        let stop = move |_| {
            helper.stop();
            browser::focus_soon("#place-change".into());
        };
        view! {
            <div class="actions" hidden=move || !waiting()>
                <button type="button" on:click=stop>{text::STOP}</button>
            </div>
        }
    });
    view! {
        <section class="panel" aria-labelledby=labelled data-testid=id class:stale=move || session.stale.get()>
            <details class="more" open=panel.open on:toggle=move |event| tell_open(&event, open)>
                <summary><h3 id=title>{panel.title}</h3></summary>
                <p class="quiet">{panel.about}</p>
                {hourly}
                {stop}
                <p class="working" hidden=move || !nothing_yet()>{text::WORKING}</p>
                <div class="scroller advice" aria-busy=move || waiting().to_string()>
                    <SheetTable sheet head=panel.head sortable=panel.sortable focus="#place-change"/>
                </div>
            </details>
        </section>
    }
}
