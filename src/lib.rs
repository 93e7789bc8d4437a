//! The page: Leptos components over the pure core; only `browser` touches what a browser owns.
//!
//! One `Session` holds the state and is every component's context. Its content comes from pure functions, which are tested
//! without a browser.

mod change;
mod diagnose;
mod field;
mod fits;
mod run;
mod shared;
mod text;

use leptos::ev::MouseEvent;
use leptos::prelude::*;

use self::change::advice::{self, MOVES};
use self::change::compare::{Compare, CompareBanner};
use self::change::guide::{self, GuideBanner, GuideSays};
use self::change::planner::{self, PlanStrip, Planned, PlannerPanel};
use self::change::single::EveryChange;
use self::diagnose::doctor::Doctor;
use self::diagnose::report;
use self::field::ask::Ask;
use self::field::form::Questions;
use self::fits::breakdown::{Bar, Breakdown};
use self::fits::depth::Depth;
use self::fits::gauge::Pointed;
use self::fits::map::{self, Map};
use self::fits::pipeline::{self, PipelineSchedule};
use self::fits::ranks::{self, PerGpu};
use self::fits::sweep::{self, Sweep};
use self::fits::timeline::Timeline;
use self::fits::verdict::Verdict;
use self::run::exports::{self, Run};
use self::run::printed::Printed;
use self::shared::later::{Later, PanelQueue};
use self::shared::masthead::Masthead;
use self::shared::places::{Place, Section};
use self::shared::worker::JobKind;
use self::shared::{browser, chart, effects, preferences, worker};
use headroom_systems as systems;

/// The worker's jobs, in order of priority.
const JOBS: &[JobKind] = &[
    planner::KIND,
    map::KIND,
    sweep::KIND,
    ranks::KIND,
    pipeline::KIND,
    report::KIND,
    exports::REMEDIES,
    advice::STEPS,
    MOVES.kind,
    guide::KIND,
    planner::REACH,
    planner::CARDS,
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
    provide_context(Planned::new());
    provide_context(Pointed(RwSignal::new("")));
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
        <Ask/>
        <div class="page">
            <Questions/>
            <div class="answers" id="answers" tabindex="-1">
                <Verdict/>
                <FirstScreen/>
                <Section place=Place::Fits>
                    <Breakdown/>
                    <Later>
                        <Timeline/>
                    </Later>
                    <Later>
                        <Sweep/>
                    </Later>
                    <Later>
                        <SeveralGpus/>
                    </Later>
                    <Later>
                        <Depth width/>
                    </Later>
                </Section>
                <Section place=Place::Change>
                    <Later>
                        <PlannerPanel/>
                    </Later>
                    <Later>
                        <EveryChange/>
                    </Later>
                    <Later>
                        <GuideSays/>
                    </Later>
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

/// Below the verdict: three plans, the bar, and which batch fits.
#[component]
fn FirstScreen() -> impl IntoView {
    view! {
        <div class="banners">
            <CompareBanner/>
            <GuideBanner/>
        </div>
        <section class="plan-strip screen-only" aria-label=text::PLANS_TITLE data-testid="plans-strip">
            <Later>
                <PlanStrip/>
            </Later>
        </section>
        <div class="pictures">
            <Bar/>
            <div class="map-place screen-only">
                <Later>
                    <Map/>
                </Later>
            </div>
        </div>
        <Compare/>
    }
}

/// What each of several GPUs holds and computes; absent for one.
#[component]
fn SeveralGpus() -> impl IntoView {
    view! {
        <PerGpu/>
        <PipelineSchedule/>
    }
}
