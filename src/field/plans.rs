//! The panel of saved plans.

use leptos::prelude::*;

use crate::shared::browser;
use crate::shared::plan_store::{self, Plans, kept};
use crate::shared::session::Session;
use crate::text;

/// Stores them, or shows that the browser refuses.
pub fn keep(session: Session, plans: &Plans) {
    session.plans.set(plans.clone());
    if !plan_store::store(plans) {
        session.link_notes.set(vec![text::NOT_KEPT.into()]);
    }
}

/// The saved plans, the field to save one, and the file with all.
#[component]
pub fn SavedPlans() -> impl IntoView {
    let session = Session::current();
    let name = RwSignal::new(String::new());
    let change = move |change: &dyn Fn(&mut Plans) -> bool| {
        // Another tab may have saved in the meantime.
        let mut plans = kept();
        let changed = change(&mut plans);
        keep(session, &plans);
        if !changed {
            session.link_notes.set(vec![text::too_many_plans()]);
        }
        changed
    };
    let save = move |_| {
        let link = session.link_untracked();
        if change(&|plans| plans.save(&name.get_untracked(), link.clone())) {
            name.set(String::new());
        }
        // The button is disabled until there is another name.
        browser::focus_soon("#plan-name".into());
    };
    let all = move |_| {
        let file = session.plans.with_untracked(Plans::write);
        browser::download("headroom-plans.json", "application/json", &file);
    };
    let none = move || session.plans.with(|plans| plans.all().next().is_none());
    let unnamed = move || name.with(|name| name.trim().is_empty());
    let row = move |(at, (name, link)): (usize, (String, String))| {
        let open = move |_| session.open(&link);
        let own = name.clone();
        let forget = move |_| {
            change(&|plans| {
                plans.remove(&own);
                true
            });
            browser::focus_soon("#plan-name".into());
        };
        let label = format!("{} {name}", text::FORGET);
        view! {
            <li>
                <button type="button" class="plain" data-open=at on:click=open>{name}</button>
                <button type="button" class="plain quiet" data-forget=at aria-label=label on:click=forget>"×"</button>
            </li>
        }
    };
    let rows = move || {
        let plans = session
            .plans
            .with(|plans| plans.all().cloned().collect::<Vec<_>>());
        plans.into_iter().enumerate().map(row).collect_view()
    };
    view! {
        <details class="plans" data-testid="plans">
            <summary>{text::PLANS}</summary>
            <ul>{rows}</ul>
            <div class="actions">
                <input id="plan-name" type="text" aria-label=text::PLAN_NAME placeholder=text::PLAN_NAME autocomplete="off"
                    prop:value=move || name.get() on:input:target=move |event| name.set(event.target().value())/>
                <button type="button" data-do="save" disabled=unnamed on:click=save>"Save"</button>
                <button type="button" class="plain" data-do="all" disabled=none on:click=all>"Save all as a file"</button>
            </div>
            <p class="quiet">{text::PLANS_ARE_LOCAL}</p>
        </details>
    }
}
