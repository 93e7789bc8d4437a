//! Advice on changes, computed by the worker for the current scenario; each row shows a change's savings and cost, and can
//! be applied.

mod cards;
mod changes;
mod cloud;
mod cost;
mod layouts;
mod panel;
mod plans;
mod search;
mod sheet;
mod solve;
mod steps;
mod table;

pub use cards::GPUS;
pub use changes::{MOVES, TIERS};
pub use layouts::LAYOUTS;
pub use plans::LADDER;
pub use search::KIND as SEARCH;
pub use solve::SOLVE;
pub use steps::{KIND as STEPS, ManySteps};

use leptos::prelude::*;

use self::cost::Hourly;
use self::panel::Panel;
use self::search::Fastest;
use self::sheet::Sheet;
use self::table::SheetTable;
use super::follow::follow_preferences;
use super::later::Later;
use super::preferences::{AdvicePreferences, Keep};
use super::session::Session;
use super::signals::{memo, track_open};
use super::worker::Helper;
use super::{browser, text};

/// All advice.
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

/// The settings that advice must keep, and the target program.
#[component]
fn Locks() -> impl IntoView {
    let preferences = AdvicePreferences::current();
    let lock = move |(at, (label, _)): (usize, (&'static str, _))| {
        let toggle = move |_| preferences.keep.update(|keep| keep.toggle(at));
        view! {
            <label><input type="checkbox" prop:checked=move || preferences.keep.get().has(at) on:change=toggle/>" "{label}</label>
        }
    };
    let program = move || {
        preferences.program.get().map(|target| {
            let free = move |_| {
                preferences.program.set(None);
                browser::focus_soon("#place-change".into());
            };
            view! {
                <p>
                    {text::only_expressible(target.title)}" "
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

/// A collapsed table of advice.
#[component]
fn Advice(panel: &'static Panel) -> impl IntoView {
    let session = Session::current();
    let helper = Helper::new(panel.kind.id);
    let open = RwSignal::new(panel.open);
    follow_preferences(session, helper, move || open.get());
    let sheet = memo(move || helper.reply.with(|reply| Sheet::read(&reply.lines)));
    let waiting = move || !helper.reply.with(|reply| reply.done);
    // A table that arrives in one piece shows that it is being computed.
    let nothing_yet = move || {
        !helper
            .reply
            .with(|reply| reply.done || !reply.lines.is_empty())
    };
    let id = panel.kind.id;
    let title = format!("{id}-title");
    let labelled = title.clone();
    let hourly = (id == GPUS.kind.id).then(|| view! { <Hourly/> });
    // Long jobs can be stopped.
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
            <details class="more" open=panel.open on:toggle=move |event| track_open(&event, open)>
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
