//! The fastest run that fits, among all that the changes can make, and what speed costs in memory.

use leptos::prelude::*;

use super::jobs::{costs, refused};
use super::sheet::{Cell, Sheet};
use super::{apply, follow};
use crate::estimate::Unsupported;
use crate::scenario::Scenario;
use crate::strategy::{Candidate, Cost, Goal, Search};
use crate::web::part::Part;
use crate::web::session::Session;
use crate::web::signals::memo;
use crate::web::worker::{Helper, JobKind, Work};
use crate::web::{chart, saves, text};

pub const KIND: JobKind = JobKind {
    id: "search",
    start: |scenario| Box::new(Job::new(scenario)),
};

/// A search, and what it came to.
struct Job {
    search: Option<Search>,
    sheet: Sheet,
}

impl Job {
    fn new(scenario: &Scenario) -> Self {
        match Search::new(scenario, Goal::default(), Cost::Results) {
            Ok(search) => Self {
                search: Some(search),
                sheet: Sheet::default(),
            },
            Err(problem) => Self {
                search: None,
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
            self.sheet.says = vec![text::searched(&tally)];
            self.sheet.points = search
                .front()
                .iter()
                .map(|it| (it.peak, it.time.expected.get(), false))
                .collect();
            self.search = Some(search);
            return Ok(());
        }
        let found = search.finish()?;
        self.sheet = Sheet::default();
        self.sheet.say(text::searched(&found.tally));
        if found.best.is_none() {
            self.sheet.say(text::NOTHING_FITS);
        }
        let best = found.best.as_ref().map(|it| &it.scenario);
        for it in &found.front {
            let is_best = best == Some(&it.scenario);
            let seconds = it.time.expected.get();
            self.sheet
                .points
                .push((it.estimate.device.expected, seconds, is_best));
            self.sheet.row(Some(&it.scenario), cells(it, is_best));
        }
        Ok(())
    }
}

fn cells(it: &Candidate, is_best: bool) -> Vec<Cell> {
    let changes: Vec<_> = it.moves.iter().map(|it| it.title).collect();
    let cost = it
        .moves
        .iter()
        .map(|it| it.cost)
        .max()
        .unwrap_or(Cost::Free);
    let name = match (is_best, it.fits) {
        (true, _) => text::FASTEST,
        (_, true) => "",
        (_, false) => text::TOO_LARGE,
    };
    vec![
        Cell::Note(name.into(), changes.join(", ")),
        costs(cost).into(),
        it.scenario.batch().to_string().into(),
        it.time.expected.to_string().into(),
        Cell::Size(it.estimate.device.expected),
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

const HEAD: &[&str] = &["Changes", "Costs", "Batch", "A step takes", "Needs"];

pub fn view(session: Session, width: ReadSignal<u32>) -> Part {
    let helper = Helper::new(KIND.id);
    let wanted = RwSignal::new(false);
    follow(session, helper, move || wanted.get());
    let sheet = memo(move || helper.reply.with(|it| Sheet::read(&it.lines)));
    let usable = move || session.estimate.get().and_then(|it| it.usable);
    let size = move || chart::size(width.get());
    let drawing = memo(move || {
        sheet.with(|it| chart::front(&it.points, usable(), session.units.get(), size()))
    });
    let shown = move || sheet.with(|it| it.html(HEAD, 3, session.units.get()));
    let file = move || {
        sheet.with(|it| {
            let row = |(bytes, seconds, _): &(crate::units::Bytes, f64, bool)| {
                vec![bytes.get().to_string(), seconds.to_string()]
            };
            saves::csv("device_bytes,seconds", it.points.iter().map(row))
        })
    };
    let running = move || wanted.get() && !helper.reply.with(|it| it.done);
    let press = move |_| {
        if running() {
            helper.stop();
        } else {
            wanted.set(false);
            wanted.set(true);
        }
    };
    let name = move || if running() { text::STOP } else { text::SEARCH }.into();
    let axis = move || {
        sheet.with(|it| text::front_axis(&it.points, session.units.get()).unwrap_or_default())
    };
    Part::new(&format!(
        r#"<section class="panel" aria-labelledby="search-title" data-testid="search">
            <details class="more">
                <summary><h2 id="search-title">{}</h2></summary>
                <p class="quiet">{}</p>
                <div class="actions"><button type="button"></button></div>
                <figure class="chart">
                    <p class="quiet"></p>
                    <div class="plot" aria-hidden="true"></div>
                </figure>
                <div class="scroller advice" role="status"></div>
                <slot name="saves"></slot>
            </details>
        </section>"#,
        text::FASTEST_THAT_FITS,
        text::SEARCH_ABOUT
    ))
    .class("", "stale", move || session.stale.get())
    .tells_open("details", wanted)
    .text("button", name)
    .on("button", "click", press)
    .text("figure p", axis)
    .html(".plot", move || drawing.get().unwrap_or_default())
    .html(".advice", shown)
    .on(".advice", "click", move |event| apply(session, &event))
    .put(
        "saves",
        saves::view("pareto", move || drawing.get(), size, file),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_says_how_far_it_is_and_ends_with_a_front() {
        let mut scenario = Scenario::default();
        scenario.model.dims = [
            ("layers".to_string(), 1),
            ("hidden".to_string(), 128),
            ("heads".to_string(), 2),
        ]
        .into();
        scenario.data.sequence = 64;
        let mut work = Job::new(&scenario);
        let mut steps = 0;
        while !work.is_done() {
            work.step();
            assert!(!work.sheet.says.is_empty());
            steps += 1;
        }
        assert!(steps > 1);
        let sheet = Sheet::read(&work.lines());
        assert_eq!(sheet.rows.len(), sheet.points.len());
        assert_eq!(sheet.points.iter().filter(|it| it.2).count(), 1);
    }
}
