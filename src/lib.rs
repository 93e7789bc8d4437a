//! The page: Leptos components over the pure core; only `browser` touches what a browser owns.
//!
//! One `Session` holds the state and is every component's context. What a component shows is worked out in pure
//! functions beside it, which are tested without a browser.

mod advice;
mod bar;
mod beside;
mod breakdown;
mod browser;
mod chart;
mod cluster;
mod colours;
mod combo;
mod compare;
mod doctor;
mod draft;
mod effects;
mod exports;
mod form;
mod gauge;
mod graphs;
mod guide;
mod history;
mod map;
mod masthead;
mod measured;
mod network;
mod one_rank;
mod open;
mod origin;
mod picture;
mod pipeline;
mod places;
mod plan_store;
mod plans;
mod printed;
mod ranks;
#[cfg(test)]
mod sample;
mod saves;
mod session;
mod sharing;
mod signals;
mod snapshot;
mod stack;
mod start;
mod summary;
mod sweep;
mod table;
mod text;
mod timeline;
mod tone;
mod trust;
mod verdict;
mod wishes;
mod worker;

use leptos::ev::MouseEvent;
use leptos::prelude::*;

use self::advice::{Advised, ManySteps};
use self::beside::Beside;
use self::breakdown::Breakdown;
use self::compare::{Compare, CompareBanner};
use self::doctor::Doctor;
use self::exports::Run;
use self::form::Questions;
use self::guide::{GuideBanner, GuideSays};
use self::map::Map;
use self::masthead::Masthead;
use self::network::OwnNetwork;
use self::pipeline::PipelineSchedule;
use self::places::{Place, Section};
use self::printed::Printed;
use self::ranks::PerGpu;
use self::session::Session;
use self::stack::Brought;
use self::start::Start;
use self::sweep::Sweep;
use self::timeline::Timeline;
use self::trust::Trust;
use self::verdict::Verdict;
use self::worker::JobKind;

/// All that the worker can be asked for, what is looked at first before the rest.
const JOBS: &[JobKind] = &[
    start::CARDS,
    sweep::KIND,
    ranks::KIND,
    pipeline::KIND,
    exports::REMEDIES,
    map::KIND,
    advice::LADDER.kind,
    advice::TIERS.kind,
    advice::STEPS,
    advice::SOLVE.kind,
    advice::MOVES.kind,
    advice::GPUS.kind,
    guide::KIND,
    advice::LAYOUTS.kind,
    advice::SEARCH,
];

/// Draws the page in the place of the static greeting in `index.html`.
pub fn start() {
    if browser::in_worker() {
        worker::serve(JOBS);
        return;
    }
    browser::report_panics();
    if let Some(place) = browser::clear("app") {
        leptos::mount::mount_to(place, App).forget();
        worker::start(JOBS);
    }
}

/// The whole page.
#[component]
fn App() -> impl IntoView {
    let session = effects::opening();
    provide_context(session);
    effects::settle(session);
    effects::bring_graphs(session);
    provide_context(wishes::Wishes::default());
    provide_context(Turns::begin());
    effects::title(session);
    effects::follow_address(session);
    effects::listen_to_keys(session);
    let width = effects::watch_width();
    provide_context(chart::Width(width));
    let skip = |event: MouseEvent| {
        event.prevent_default();
        browser::show("answers");
    };
    view! {
        // The address's fragment is the scenario: the link's own way would write over it.
        <a class="skip" href="#answers" on:click=skip>
            {text::SKIP}
        </a>
        <Masthead/>
        <Start/>
        <div class="page">
            <Questions/>
            <div class="answers" id="answers" tabindex="-1">
                <Verdict/>
                <div class="banners">
                    <CompareBanner/>
                    <GuideBanner/>
                </div>
                <Section place=Place::Fits>
                    <Breakdown/>
                    <Later>
                        <Timeline/>
                    </Later>
                    <Later>
                        <Sweep/>
                    </Later>
                    <Later>
                        <PerGpu/>
                    </Later>
                    <Later>
                        <PipelineSchedule/>
                    </Later>
                    <Later>
                        <Map/>
                    </Later>
                    <Later>
                        <ManySteps width/>
                    </Later>
                    <Later>
                        <GuideSays/>
                    </Later>
                    <Later>
                        <Compare/>
                    </Later>
                    <Later>
                        <Brought/>
                    </Later>
                    <Later>
                        <Beside/>
                    </Later>
                    <Later>
                        <Limits/>
                    </Later>
                    <Later>
                        <Trust/>
                    </Later>
                    <Later>
                        <OwnNetwork/>
                    </Later>
                </Section>
                <Section place=Place::Change>
                    <Advised width/>
                </Section>
                <Section place=Place::Run>
                    <Later>
                        <Run/>
                    </Later>
                </Section>
                <Section place=Place::Diagnose>
                    <Later>
                        <Doctor width/>
                    </Later>
                </Section>
                <Printed/>
            </div>
        </div>
        <footer class="colophon"><p>{text::PRIVATE}</p></footer>
    }
}

/// How many of the panels behind the answer are drawn: one more a turn, so that none of them keeps a key waiting.
#[derive(Clone, Copy)]
struct Turns {
    drawn: RwSignal<usize>,
    /// How many there are.
    all: StoredValue<usize>,
}

impl Turns {
    /// Takes the turns when the answer has been painted.
    fn begin() -> Self {
        let turns = Self {
            drawn: RwSignal::new(0),
            all: StoredValue::new(0),
        };
        leptos::reactive::spawn_local(async move {
            browser::painted().await;
            browser::whole().await;
            let mut drawn = 0;
            while turns.all.try_get_value().is_some_and(|all| drawn != all) {
                drawn += 1;
                turns.drawn.try_set(drawn);
                browser::breathe().await;
            }
        });
        turns
    }

    /// The next panel's turn.
    fn take(self) -> usize {
        let turn = self.all.get_value();
        self.all.set_value(turn + 1);
        turn
    }
}

/// A panel that is made only when the answer has been painted, and when it has its turn.
#[component]
fn Later(children: ChildrenFn) -> impl IntoView {
    let turns: Turns = expect_context();
    let turn = turns.take();
    let has_turn = move || turns.drawn.get() > turn;
    // The slot tells whoever waits for the whole page that more is to come.
    view! {
        <Show when=has_turn fallback=|| view! { <slot></slot> }>
            {children()}
        </Show>
    }
}

/// What the numbers leave out, always one click away.
#[component]
fn Limits() -> impl IntoView {
    let session = Session::current();
    let items = move || {
        let estimate = session.estimate.get();
        let lines = estimate.map(|estimate| estimate.not_modelled.clone());
        let item = |line: String| view! { <li>{line}</li> };
        lines
            .unwrap_or_default()
            .into_iter()
            .map(item)
            .collect_view()
    };
    view! {
        <section class="panel screen-only" aria-label=text::NOT_MODELLED>
            <details class="more" id="not-modelled">
                <summary>{text::NOT_MODELLED}</summary>
                <ul class="plain-list">{items}</ul>
            </details>
        </section>
    }
}
