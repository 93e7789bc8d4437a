//! What a program cannot express of a run: each with the change that mends it, which the worker looks for.

use leptos::prelude::*;

use super::{AllPrograms, Written};
use crate::advice::follow;
use crate::session::Session;
use crate::signals::memo;
use crate::worker::{Helper, JobKind, Work};
use crate::{browser, text};
use headroom_io::export::{self, Remedy, Target};
use headroom_scenario::share;
use headroom_scenario::{Problem, Scenario, settings};

/// How a worker looks for the changes; the limits that it is sent are the program's id.
pub const KIND: JobKind = JobKind {
    id: "remedies",
    start: |scenario, target| Box::new(Remedies::new(scenario, target)),
};

/// The work: a line for each problem, and one for all at once.
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
                remedy.map(|remedy| Offer::of(&remedy).write())
            }
            None if self.problems.len() > 1 => target
                .mended(&self.scenario)
                .map(|mended| share::write(&mended)),
            None => None,
        };
        self.lines.push(line.unwrap_or_default());
    }

    /// The program's id, and what is known.
    fn lines(&self) -> Vec<String> {
        let id = self.target.map_or("", |target| target.id);
        [id.into()]
            .into_iter()
            .chain(self.lines.iter().cloned())
            .collect()
    }
}

/// A change that is offered: what it says, and the run with it as a link.
#[derive(Clone, Debug, PartialEq)]
struct Offer {
    name: String,
    link: String,
}

impl Offer {
    fn of(remedy: &Remedy) -> Self {
        Self {
            name: text::change_to(remedy.label, &remedy.value),
            link: share::write(&remedy.scenario),
        }
    }

    fn write(&self) -> String {
        format!("{}\t{}", self.link, self.name)
    }

    fn read(line: &str) -> Option<Self> {
        let (link, name) = line.split_once('\t')?;
        Some(Self {
            name: name.into(),
            link: link.into(),
        })
    }
}

/// What is known of the changes for the run and the program on the screen, in the order of the problems; the last line is
/// all of them at once.
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
        let link = lines.with(|lines| lines.as_ref()?.get(count).cloned())?;
        (!link.is_empty()).then(|| {
            let change = move |_| take(session, &link);
            view! {
                <button type="button" class="primary" on:click=change>{text::CHANGE_ALL}</button>
            }
        })
    };
    view! {
        <div class="refused" role="status">
            <p>{title}</p>
            <ul class="remedies">{rows}</ul>
            <div class="actions">{all_at_once}<AllPrograms/></div>
        </div>
    }
}

/// Whether the changes of a program that refuses are looked for.
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
    session.try_out(share::read(link).scenario);
    browser::focus_soon("#run-title".into());
}

/// A problem, and the button that mends it once that is known.
#[component]
fn Row(problem: Problem, line: Memo<Option<String>>) -> impl IntoView {
    let session = Session::current();
    let scenario = session.scenario.get_untracked();
    let setting = settings::find(&problem.field);
    let label = setting.map_or(problem.field.clone(), |setting| setting.label.into());
    let value = setting.map_or(problem.value.clone(), |setting| {
        export::shown(setting, &scenario)
    });
    let needs = text::program_needs(&problem.expected);
    let mend = move || match line.get() {
        None => view! { <span class="quiet">{text::WORKING}</span> }.into_any(),
        Some(line) => match Offer::read(&line) {
            Some(Offer { name, link }) => {
                let change = move |_| take(session, &link);
                view! { <button type="button" on:click=change>{name}</button> }.into_any()
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
    fn the_worker_says_each_change_and_all_at_once() {
        let mut scenario = presets::find("llama-8b-lora-24gb").unwrap().scenario();
        for (name, value) in [("loss", "chunked-loss"), ("tp", "2"), ("gpus", "2")] {
            settings::set(&mut scenario, name, value).unwrap();
        }
        let mut work = Remedies::new(&scenario, "trl");
        while !work.is_done() {
            work.step();
        }
        let lines = work.lines();
        let offers: Vec<_> = lines.iter().filter_map(|line| Offer::read(line)).collect();
        assert_eq!((lines[0].as_str(), offers.len()), ("trl", 2));
        let mended = share::read(lines.last().unwrap()).scenario;
        let target = export::target("trl").unwrap();
        assert_eq!(target.problems(&mended), []);
        let names = offers.iter().map(|offer| &*offer.name);
        assert_eq!(names.collect::<Vec<_>>()[0], "Change Tensor parallel to 1");
        assert!(Remedies::new(&scenario, "nothing").is_done());
    }
}
