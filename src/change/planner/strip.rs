//! Three plans below the verdict, each with its figures and a button.

use leptos::prelude::*;

use super::Planned;
use super::proposal::{Kind, Proposal};
use crate::shared::browser;
use crate::shared::places::Place;
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::text;
use headroom_base::units::Seconds;
use headroom_scenario::share;

/// Rows of the strip, which keeps its height whatever it shows.
const ROWS: usize = 3;

/// The plans, in brief. Their place is there from the first paint on.
#[component]
pub fn PlanStrip() -> impl IntoView {
    let session = Session::current();
    let planned = Planned::current();
    planned.follow(session);
    let message = move || {
        let said = planned.found.with(|found| found.message.clone());
        if said.is_empty() {
            text::PLANNING.into()
        } else {
            said
        }
    };
    // What the plans are compared with.
    let now = move || {
        let run = planned.found.with(|found| {
            let now = found.runs.iter().find(|run| run.kind == Kind::Now)?;
            Some((now.needs, now.seconds))
        });
        let (needs, seconds) = run?;
        let time = seconds.map(|seconds| Seconds::new(seconds).to_string());
        Some(text::now_is(
            &needs.show(session.units.get()),
            time.as_deref(),
        ))
    };
    view! {
        <header>
            <h2 class="title" id="plans-title" tabindex="-1">{text::PLANS_TITLE}</h2>
            <p class="quiet" role="status">{message}</p>
            <p class="quiet plan-now">{now}</p>
            <button type="button" class="plain more-plans" on:click=|_| Place::Change.show()>
                {text::MORE_PLANS}
            </button>
        </header>
        <PlanRows focus="#plans-title"/>
    }
}

/// The first plans, each with a button; what was focused may be gone with it, so that the focus goes to `focus`.
#[component]
pub fn PlanRows(focus: &'static str) -> impl IntoView {
    let planned = Planned::current();
    let rows = memo(move || {
        planned
            .found
            .with(|found| found.plans().take(ROWS).cloned().collect::<Vec<_>>())
    });
    let are_few = move || planned.is_done() && (1..ROWS).contains(&rows.with(Vec::len));
    view! {
        <ul class="plan-rows" aria-busy=move || (!planned.is_done()).to_string()>
            <For each=move || rows.get() key=Proposal::write let(run)>
                <Row run focus/>
            </For>
        </ul>
        <Show when=are_few>
            <p class="plan-none quiet">{text::NO_MORE_PLANS}</p>
        </Show>
    }
}

#[component]
fn Row(run: Proposal, focus: &'static str) -> impl IntoView {
    let session = Session::current();
    let (name, results) = (run.name.clone(), run.results.clone());
    // A plan that is named by its first step says that once.
    let steps = run.steps.strip_prefix(&*name).unwrap_or(&run.steps);
    let steps = steps.trim_start_matches("; ").to_string();
    let whole = format!("{}: {}", run.name, run.steps);
    let label = text::apply_plan(&run.name);
    let (bytes, seconds) = (run.needs, run.seconds);
    let needs = move || bytes.show(session.units.get());
    let time = seconds.map(|seconds| text::per_step(&Seconds::new(seconds).to_string()));
    let apply = move |_| take(session, &run.link, focus);
    view! {
        <li>
            <p class="plan-what" title=whole>
                <strong>{text::capital(&name)}</strong>
                {(!steps.is_empty()).then(|| format!(": {steps}"))}
            </p>
            <p class="plan-figures">
                <span class="number">{needs}</span>
                <span class="number">{time}</span>
                <span class="quiet">{results}</span>
            </p>
            <button type="button" aria-label=label on:click=apply>
                {text::APPLY}
            </button>
        </li>
    }
}

/// Applies a proposed run. Its button may be gone then: the focus goes to `focus`.
pub fn take(session: Session, link: &str, focus: &'static str) {
    session.apply(share::read(link).scenario);
    browser::catch_focus(focus);
}
