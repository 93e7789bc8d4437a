//! The page: Leptos views over the pure core; only `browser` touches what a browser owns.
//!
//! One `Session` holds the state; each view takes it and gives markup. What a view shows is worked out in pure
//! functions beside it, which are tested without a browser.

mod advice;
mod beside;
mod breakdown;
mod browser;
mod chart;
mod combo;
mod compare;
mod doctor;
mod draft;
mod effects;
mod exports;
mod form;
mod gauge;
mod guide;
mod history;
mod map;
mod markup;
mod masthead;
mod measured;
mod network;
mod open;
mod picture;
mod plans;
mod printed;
#[cfg(test)]
mod sample;
mod saves;
mod session;
mod sharing;
mod stack;
mod summary;
mod sweep;
mod text;
mod timeline;
mod verdict;
mod worker;

use leptos::prelude::*;

/// Draws the page in the place of the static greeting in `index.html`.
pub fn start() {
    if browser::in_worker() {
        worker::serve();
        return;
    }
    browser::report_panics();
    if let Some(place) = browser::clear("app") {
        leptos::mount::mount_to(place, App).forget();
        worker::start();
    }
}

/// The whole page.
#[component]
pub fn App() -> impl IntoView {
    let session = effects::opening();
    effects::follow_address(session);
    effects::listen_to_keys(session);
    let width = effects::watch_width();
    view! {
        <masthead::Masthead session/>
        <div class="page">
            <form::Questions session/>
            <div class="answers" id="answers">
                <verdict::Verdict session/>
                <breakdown::Breakdown session/>
                <advice::Advice session panel=&advice::LADDER/>
                <timeline::Timeline session width/>
                <sweep::Sweep session width/>
                <map::Map session/>
                <advice::Advice session panel=&advice::SOLVE/>
                <advice::Advice session panel=&advice::MOVES/>
                <advice::Advice session panel=&advice::TIERS/>
                <advice::Advice session panel=&advice::GPUS/>
                <advice::Fastest session width/>
                <advice::Steps session width/>
                <guide::SystemGuide session/>
                <network::NetworkEditor session/>
                <compare::Compare session/>
                <stack::Brought session/>
                <exports::Exports session/>
                <doctor::Doctor session width/>
                <beside::Beside session/>
                <Limits session/>
                <printed::Printed session/>
            </div>
        </div>
        <footer class="colophon"><p>{text::PRIVATE}</p></footer>
    }
}

/// What the numbers leave out, always one click away.
#[component]
fn Limits(session: session::Session) -> impl IntoView {
    let items = move || {
        let all = session
            .answer
            .with(|it| it.estimate.as_ref().map(|it| it.not_modelled.clone()));
        all.into_iter()
            .flatten()
            .map(|it| view! { <li>{it}</li> })
            .collect_view()
    };
    view! {
        <section class="panel screen-only" aria-label=text::NOT_MODELLED>
            <details class="more">
                <summary>{text::NOT_MODELLED}</summary>
                <ul class="plain-list">{items}</ul>
            </details>
        </section>
    }
}
