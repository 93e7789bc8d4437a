//! The fastest run that fits, among all combinations of changes, and the trade-off between speed and memory.

use leptos::prelude::*;

use super::changes::{HEAD, programs, quality, refused};
use super::sheet::{Cell, Sheet, shared};
use super::table::SheetTable;
use crate::follow::follow_preferences;
use crate::preferences::Limits;
use crate::saves::Saves;
use crate::session::Session;
use crate::signals::memo;
use crate::worker::{Helper, JobKind, Work};
use crate::{chart, saves, text};
use headroom_advice::{Candidate, Cost, Goal, Search};
use headroom_base::units::Bytes;
use headroom_core::estimate::{Unsupported, estimate};
use headroom_scenario::Scenario;

pub const KIND: JobKind = JobKind {
    id: "search",
    start: |scenario, limits| Box::new(Job::new(scenario, Limits::read(limits))),
};

/// A search and its result.
struct Job {
    search: Option<Search>,
    /// The memory of the run as it is.
    start: Bytes,
    sheet: Sheet,
}

impl Job {
    fn new(scenario: &Scenario, limits: Limits) -> Self {
        let goal = Goal::default().within(limits.allowed(scenario));
        match Search::new(scenario, goal, Cost::Results) {
            Ok(search) => Self {
                search: Some(search),
                start: estimate(scenario).map_or(Bytes::ZERO, |estimate| estimate.device.expected),
                sheet: Sheet::default(),
            },
            Err(problem) => Self {
                search: None,
                start: Bytes::ZERO,
                sheet: refused(problem),
            },
        }
    }

    fn advance(&mut self) -> Result<(), Unsupported> {
        let Some(mut search) = self.search.take() else {
            return Ok(());
        };
        let tally = search.step(1)?;
        if !tally.done {
            self.sheet.messages = vec![text::searched(&tally)];
            self.sheet.points = search
                .front()
                .iter()
                .map(|point| (point.peak, point.time.expected.get(), false))
                .collect();
            self.search = Some(search);
            return Ok(());
        }
        let found = search.finish()?;
        self.sheet = Sheet::default();
        self.sheet.line(text::searched(&found.tally));
        if found.best.is_none() {
            self.sheet.line(text::NOTHING_FITS);
        }
        let best = found.best.as_ref().map(|best| &best.scenario);
        let fitting: Vec<&Candidate> = found.front.iter().filter(|found| found.fits).collect();
        let all: Vec<_> = fitting.iter().map(|found| titles(found)).collect();
        let common = shared(&all);
        if !common.is_empty() {
            self.sheet.line(text::all_of_these(&common.join(", ")));
        }
        for point in &found.front {
            let is_best = best == Some(&point.scenario);
            let seconds = point.time.expected.get();
            self.sheet
                .points
                .push((point.estimate.device.expected, seconds, is_best));
        }
        for point in fitting {
            let is_best = best == Some(&point.scenario);
            self.sheet.row(
                Some(&point.scenario),
                cells(point, is_best, &common, self.start),
            );
        }
        Ok(())
    }
}

fn titles(found: &Candidate) -> Vec<String> {
    found
        .moves
        .iter()
        .map(|change| change.title.to_string())
        .collect()
}

fn cells(found: &Candidate, is_best: bool, common: &[String], start: Bytes) -> Vec<Cell> {
    let only: Vec<_> = titles(found)
        .into_iter()
        .filter(|title| !common.contains(title))
        .collect();
    let dearest = found.moves.iter().max_by_key(|change| change.cost);
    let batch = text::batch(&found.scenario.batch().to_string());
    let title = if is_best {
        format!("{}: {batch}", text::FASTEST)
    } else {
        batch
    };
    let needs = found.estimate.device.expected;
    vec![
        Cell::Note(title, only.join(", ")),
        Cell::Change(start, needs),
        Cell::Size(needs),
        Cell::Shown(found.time.expected.get(), found.time.expected.to_string()),
        dearest
            .map_or(String::new(), |change| quality(change.cost, ""))
            .into(),
        programs(&found.scenario).into(),
    ]
}

impl Work for Job {
    fn is_done(&self) -> bool {
        self.search.is_none()
    }

    fn step(&mut self) {
        if let Err(problem) = self.advance() {
            self.sheet = refused(problem);
        }
    }

    fn lines(&self) -> Vec<String> {
        self.sheet.lines()
    }
}

/// The search, its chart and its results.
#[component]
pub fn Fastest(width: ReadSignal<u32>) -> impl IntoView {
    let session = Session::current();
    let helper = Helper::new(KIND.id);
    let wanted = RwSignal::new(false);
    follow_preferences(session, helper, move || wanted.get());
    let sheet = memo(move || helper.reply.with(|reply| Sheet::read(&reply.lines)));
    let usable = move || session.estimate.get().and_then(|estimate| estimate.usable);
    let size = move || chart::size(width.get());
    let drawing = memo(move || {
        sheet.with(|sheet| chart::front(&sheet.points, usable(), session.units.get(), size()))
    });
    let file = move || {
        sheet.with(|sheet| {
            let row = |(bytes, seconds, _): &(Bytes, f64, bool)| {
                vec![bytes.get().to_string(), seconds.to_string()]
            };
            saves::csv("device_bytes,seconds", sheet.points.iter().map(row))
        })
    };
    let running = move || wanted.get() && !helper.reply.with(|reply| reply.done);
    let press = move |_| {
        if running() {
            helper.stop();
        } else {
            wanted.set(false);
            wanted.set(true);
        }
    };
    let name = move || if running() { text::STOP } else { text::SEARCH };
    let axis = move || {
        sheet.with(|sheet| text::front_axis(&sheet.points, session.units.get()).unwrap_or_default())
    };
    view! {
        <section class="panel" aria-labelledby="search-title" data-testid="search" class:stale=move || session.stale.get()>
            <details class="more" on:toggle=move |event| crate::signals::track_open(&event, wanted)>
                <summary><h3 id="search-title">{text::FASTEST_THAT_FITS}</h3></summary>
                <p class="quiet">{text::SEARCH_ABOUT}</p>
                <div class="actions"><button type="button" on:click=press>{name}</button></div>
                <figure class="chart">
                    <p class="quiet">{axis}</p>
                    <div class="plot" aria-hidden="true" inner_html=move || drawing.get().unwrap_or_default()></div>
                </figure>
                <div class="scroller advice" role="status">
                    <SheetTable sheet head=HEAD focus="#search-title"/>
                </div>
                <Saves name="pareto" svg=move || drawing.get() size csv=file/>
            </details>
        </section>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_reports_progress_and_ends_with_a_front() {
        let mut scenario = Scenario::default();
        scenario.model.dims = [
            ("layers".to_string(), 1),
            ("hidden".to_string(), 128),
            ("heads".to_string(), 2),
        ]
        .into();
        scenario.data.sequence = 64;
        let mut work = Job::new(&scenario, Limits::default());
        let mut steps = 0;
        while !work.is_done() {
            work.step();
            assert!(!work.sheet.messages.is_empty());
            steps += 1;
        }
        assert!(steps > 1);
        let sheet = Sheet::read(&work.lines());
        assert!(!sheet.rows.is_empty() && sheet.rows.len() <= sheet.points.len());
        assert_eq!(sheet.points.iter().filter(|point| point.2).count(), 1);
    }
}
