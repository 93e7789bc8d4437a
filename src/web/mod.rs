//! The page: parts of markup that follow signals over the pure core; only `browser` and `part` touch what a browser owns.
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
mod origin;
mod part;
mod picture;
mod plan_store;
mod plans;
mod printed;
#[cfg(test)]
mod sample;
mod saves;
mod session;
mod sharing;
mod signals;
mod stack;
mod summary;
mod sweep;
mod text;
mod timeline;
mod tone;
mod verdict;
mod worker;

use leptos::prelude::*;

use self::part::Part;
use self::worker::JobKind;

/// All that the worker can be asked for.
const JOBS: &[JobKind] = &[
    advice::LADDER.kind,
    advice::MOVES.kind,
    advice::TIERS.kind,
    advice::GPUS.kind,
    advice::SOLVE.kind,
    advice::SEARCH,
    advice::STEPS,
    map::KIND,
    guide::KIND,
];

/// Draws the page in the place of the static greeting in `index.html`.
pub fn start() {
    if browser::in_worker() {
        worker::serve(JOBS);
        return;
    }
    browser::report_panics();
    if let Some(place) = browser::clear("app") {
        let home = place.clone();
        leptos::mount::mount_to(place, move || page().fill(&home)).forget();
        worker::start(JOBS);
    }
}

/// The whole page.
fn page() -> Part {
    let session = effects::opening();
    effects::follow_address(session);
    effects::listen_to_keys(session);
    let width = effects::watch_width();
    // What lies beneath the answer is made once that is painted.
    let rest = move || {
        Part::all([
            advice::view(session, &advice::LADDER),
            timeline::view(session, width),
            sweep::view(session, width),
            map::view(session),
            advice::view(session, &advice::SOLVE),
            advice::view(session, &advice::MOVES),
            advice::view(session, &advice::TIERS),
            advice::view(session, &advice::GPUS),
            advice::fastest(session, width),
            advice::steps(session, width),
            guide::view(session),
            network::view(session),
            compare::view(session),
            stack::view(session),
            exports::view(session),
            doctor::view(session, width),
            beside::view(session),
            limits(session),
            printed::view(session),
        ])
    };
    Part::new(&format!(
        r#"<slot name="masthead"></slot>
        <div class="page">
            <slot name="questions"></slot>
            <div class="answers" id="answers">
                <slot name="verdict"></slot><slot name="breakdown"></slot><slot name="rest"></slot>
            </div>
        </div>
        <footer class="colophon"><p>{}</p></footer>"#,
        text::PRIVATE
    ))
    .put("masthead", masthead::view(session))
    .put("questions", form::view(session))
    .put("verdict", verdict::view(session))
    .put("breakdown", breakdown::view(session))
    .put_soon("rest", rest)
}

/// What the numbers leave out, always one click away.
fn limits(session: session::Session) -> Part {
    let items = move || {
        session.answer.with(|it| {
            let estimate = it.estimate.as_ref();
            estimate
                .map(|it| markup::items(&it.not_modelled))
                .unwrap_or_default()
        })
    };
    let title = text::NOT_MODELLED;
    Part::new(&format!(
        r#"<section class="panel screen-only" aria-label="{title}">
            <details class="more"><summary>{title}</summary><ul class="plain-list"></ul></details>
        </section>"#
    ))
    .html("ul", items)
}
