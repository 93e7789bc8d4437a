//! The settings that a program cannot express, each with a fix that the worker searches for.

use leptos::prelude::*;

use super::written::{AllPrograms, Written};
use crate::shared::browser;
use crate::shared::follow::follow;
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::shared::worker::{Helper, JobKind, Work};
use crate::text;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_core::estimate::{Estimate, Fit, estimate};
use headroom_io::export::{self, Target};
use headroom_scenario::share;
use headroom_scenario::{Problem, Scenario, settings};

/// The worker's job: its limits are the program's id.
pub const KIND: JobKind = JobKind {
    id: "remedies",
    start: |scenario, target| Box::new(Remedies::new(scenario, target)),
};

/// The job: a line for each problem, and one for all at once.
struct Remedies {
    target: Option<&'static Target>,
    scenario: Scenario,
    problems: Vec<Problem>,
    lines: Vec<String>,
}

impl Remedies {
    fn new(scenario: &Scenario, target: &str) -> Self {
        let target = export::target(target);
        Self {
            target,
            scenario: scenario.clone(),
            problems: target.map_or(Vec::new(), |target| target.problems(scenario)),
            lines: Vec::new(),
        }
    }
}

impl Work for Remedies {
    fn is_done(&self) -> bool {
        self.target.is_none() || self.lines.len() > self.problems.len()
    }

    fn step(&mut self) {
        let Some(target) = self.target else {
            return;
        };
        let line = match self.problems.get(self.lines.len()) {
            Some(problem) => {
                let remedy = target.remedy(&self.scenario, problem);
                remedy.map(|remedy| {
                    let name = text::change_to(remedy.label, &remedy.value);
                    Fix::of(name, &self.scenario, &remedy.scenario).write()
                })
            }
            None if self.problems.len() > 1 => target
                .startable(&self.scenario)
                .map(|it| Fix::of(text::CHANGE_ALL.into(), &self.scenario, &it.scenario).write()),
            None => None,
        };
        self.lines.push(line.unwrap_or_default());
    }

    /// The program's id, and the lines so far.
    fn lines(&self) -> Vec<String> {
        let id = self.target.map_or("", |target| target.id);
        [id.into()]
            .into_iter()
            .chain(self.lines.iter().cloned())
            .collect()
    }
}

/// A proposed change: its label, the changed run as a link, and what the change does.
#[derive(Clone, Debug, PartialEq)]
struct Fix {
    name: String,
    link: String,
    /// The memory after it; `None` if that cannot be estimated.
    needs: Option<Bytes>,
    /// Whether it fits then, in words.
    fits: String,
    /// The effective batch before and after.
    batch: (u64, u64),
}

impl Fix {
    fn of(name: String, before: &Scenario, after: &Scenario) -> Self {
        let estimate = estimate(after).ok();
        let fit = estimate.as_ref().and_then(Estimate::fit);
        Self {
            name,
            link: share::write(after),
            needs: estimate.map(|estimate| estimate.device.expected + estimate.growth),
            fits: fit.map_or("", Fit::label).into(),
            batch: (before.effective_batch(), after.effective_batch()),
        }
    }

    /// "Change data parallelism to DDP: 149 GiB, does not fit; effective batch 128 → 16".
    fn label(&self, units: UnitStyle) -> String {
        let Self {
            name, needs, fits, ..
        } = self;
        let needs = needs.map_or(String::new(), |needs| {
            text::would_need(&needs.show(units), fits)
        });
        let (before, after) = self.batch;
        let batch = if before == after {
            String::new()
        } else {
            text::batch_changes(before, after)
        };
        format!("{name}{needs}{batch}")
    }

    fn write(&self) -> String {
        let needs = self.needs.map(|needs| needs.get().to_string());
        [
            self.link.clone(),
            self.name.clone(),
            needs.unwrap_or_default(),
            self.fits.clone(),
            self.batch.0.to_string(),
            self.batch.1.to_string(),
        ]
        .join("\t")
    }

    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split('\t').map(String::from);
        Some(Self {
            link: fields.next().filter(|link| !link.is_empty())?,
            name: fields.next()?,
            needs: fields.next()?.parse().ok().map(Bytes::new),
            fits: fields.next()?,
            batch: (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?),
        })
    }
}

/// The fixes found so far for the current run and program, in the order of the problems; the last line is all of them at
/// once.
fn known(session: Session, helper: Helper, written: Memo<Option<Written>>) -> Option<Vec<String>> {
    let is_of_this_run = session
        .answer
        .with(|answer| helper.about.with(|about| *about == *answer.scenario));
    let id = written.with(|all| all.as_ref().map(|all| all.target.id))?;
    helper.reply.with(|reply| {
        let (of, lines) = reply.lines.split_first()?;
        (is_of_this_run && of == id).then(|| lines.to_vec())
    })
}

#[component]
pub fn Refused(written: Memo<Option<Written>>, helper: Helper) -> impl IntoView {
    let session = Session::current();
    let lines = memo(move || known(session, helper, written));
    let title =
        move || written.with(|all| all.as_ref().map(|all| text::cannot_run(all.target.title)));
    let problems = memo(move || {
        let refused = |all: &Written| all.refused.clone();
        written
            .with(|all| all.as_ref().map(refused))
            .unwrap_or_default()
    });
    let rows = move || {
        let row = |(at, problem): (usize, Problem)| {
            let line = memo(move || lines.with(|lines| lines.as_ref()?.get(at).cloned()));
            view! { <Row problem line/> }
        };
        problems
            .get()
            .into_iter()
            .enumerate()
            .map(row)
            .collect_view()
    };
    let all_at_once = move || {
        let count = problems.with(Vec::len);
        let fix = lines.with(|lines| Fix::read(lines.as_ref()?.get(count)?))?;
        let label = fix.label(session.units.get());
        let change = move |_| take(session, &fix.link);
        Some(view! { <button type="button" class="primary" on:click=change>{label}</button> })
    };
    view! {
        <div class="refused" role="status">
            <p>{title}</p>
            <ul class="remedies">{rows}</ul>
            <div class="actions">{all_at_once}<AllPrograms/></div>
        </div>
    }
}

/// Whether fixes are being searched for.
pub fn search(session: Session, helper: Helper, written: Memo<Option<Written>>) {
    let refuses =
        memo(move || written.with(|all| all.as_ref().is_some_and(|all| all.files.is_empty())));
    let target = memo(move || written.with(|all| all.as_ref().map_or("", |all| all.target.id)));
    follow(
        session,
        helper,
        move || refuses.get(),
        move || target.get().into(),
    );
}

fn take(session: Session, link: &str) {
    session.apply(share::read(link).scenario);
    browser::focus_soon("#run-title".into());
}

/// A problem, and the button that fixes it once known.
#[component]
fn Row(problem: Problem, line: Memo<Option<String>>) -> impl IntoView {
    let session = Session::current();
    let scenario = session.scenario.get_untracked();
    let setting = settings::find(problem.field());
    let label = setting.map_or(problem.field().to_string(), |setting| setting.label.into());
    let value = setting.map_or(problem.given().to_string(), |setting| {
        export::shown(setting, &scenario)
    });
    let needs = text::program_needs(&problem.expected());
    let mend = move || match line.get() {
        None => view! { <span class="quiet">{text::WORKING}</span> }.into_any(),
        Some(line) => match Fix::read(&line) {
            Some(fix) => {
                let label = fix.label(session.units.get());
                let change = move |_| take(session, &fix.link);
                view! { <button type="button" on:click=change>{label}</button> }.into_any()
            }
            None => view! { <span class="quiet">{needs.clone()}</span> }.into_any(),
        },
    };
    view! { <li><span><strong>{label}</strong>": "{value}</span>" "{mend}</li> }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::presets;

    #[test]
    fn the_worker_finds_each_fix_and_all_at_once() {
        let mut scenario = presets::find("llama-8b-lora-24gb").unwrap().scenario();
        for (name, value) in [("loss", "chunked-loss"), ("tp", "2"), ("gpus", "2")] {
            settings::set(&mut scenario, name, value).unwrap();
        }
        let mut work = Remedies::new(&scenario, "trl");
        while !work.is_done() {
            work.step();
        }
        let lines = work.lines();
        let offers: Vec<_> = lines.iter().filter_map(|line| Fix::read(line)).collect();
        assert_eq!((lines[0].as_str(), offers.len()), ("trl", 3));
        // Two GPUs in tensor parallel are one replica, without it they are two.
        let label = offers[0].label(UnitStyle::Binary);
        assert!(
            label.contains(" GiB, ") && label.contains("effective batch 16 → 32"),
            "{label}"
        );
        let all = Fix::read(lines.last().unwrap()).unwrap();
        let mended = share::read(&all.link).scenario;
        let target = export::target("trl").unwrap();
        assert_eq!(target.problems(&mended), []);
        let names = offers.iter().map(|offer| &*offer.name);
        assert_eq!(names.collect::<Vec<_>>()[0], "Change Tensor parallel to 1");
        assert!(Remedies::new(&scenario, "nothing").is_done());
    }
}
