//! The page: Leptos components over the pure core; only `browser` touches what a browser owns.
//!
//! One `Session` holds the state and is every component's context. Its content comes from pure functions, which are tested
//! without a browser.

mod advice;
mod bar;
mod breakdown;
mod browser;
mod chart;
mod cluster;
mod colours;
mod combo;
mod compare;
mod copy;
mod doctor;
mod draft;
mod effects;
mod exports;
mod follow;
mod form;
mod gauge;
mod graphs;
mod guide;
mod history;
mod host;
mod later;
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
mod preferences;
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
mod worker;

use leptos::ev::MouseEvent;
use leptos::prelude::*;

use self::advice::{Advised, ManySteps};
use self::breakdown::Breakdown;
use self::compare::{Compare, CompareBanner};
use self::doctor::Doctor;
use self::exports::Run;
use self::form::Questions;
use self::guide::{GuideBanner, GuideSays};
use self::host::HostAndDisk;
use self::later::{Later, PanelQueue};
use self::map::Map;
use self::masthead::Masthead;
use self::network::OwnNetwork;
use self::pipeline::PipelineSchedule;
use self::places::{Place, Section};
use self::printed::Printed;
use self::ranks::PerGpu;
use self::session::Session;
use self::stack::StackDefaults;
use self::start::Start;
use self::sweep::Sweep;
use self::timeline::Timeline;
use self::trust::Trust;
use self::verdict::Verdict;
use self::worker::JobKind;
use headroom_systems as systems;

/// The worker's jobs, in order of priority.
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

/// Mounts the page in place of the static placeholder in `index.html`.
pub fn start() {
    systems::install();
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
    effects::fetch_graphs(session);
    provide_context(preferences::AdvicePreferences::default());
    provide_context(PanelQueue::begin());
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
        // The address's fragment is the scenario: following the link would overwrite it.
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
                        <StackDefaults/>
                    </Later>
                    <Later>
                        <HostAndDisk/>
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

/// What the estimate leaves out.
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
