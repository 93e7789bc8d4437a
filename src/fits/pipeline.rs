//! The schedule of a pipeline: when each stage computes which micro-batch, and when it is idle.

use leptos::prelude::*;

use crate::shared::chart::{self, Drawing, SavePicture};
use crate::shared::follow::follow;
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::shared::worker::{Helper, JobKind, Work};
use crate::text;
use headroom_core::estimate::Prediction;
use headroom_core::schedule::{Chunk, PassKind, TimedPass};
use headroom_scenario::Scenario;

/// The worker's job.
pub const KIND: JobKind = JobKind {
    id: "pipeline",
    start: |scenario, _| {
        Box::new(Job {
            scenario: scenario.clone(),
            lines: None,
        })
    },
};

struct Job {
    scenario: Scenario,
    lines: Option<Vec<String>>,
}

impl Work for Job {
    fn is_done(&self) -> bool {
        self.lines.is_some()
    }

    fn step(&mut self) {
        let drawn = Drawn::of(&self.scenario);
        self.lines = Some(drawn.map(|drawn| drawn.write()).unwrap_or_default());
    }

    fn lines(&self) -> Vec<String> {
        self.lines.clone().unwrap_or_default()
    }
}

/// The chart's data; the worker sends it as text.
#[derive(Clone, Debug, PartialEq)]
struct Drawn {
    micro_batches: usize,
    of: u64,
    /// The share of a step in which a GPU is idle.
    waits: f64,
    ranks: Vec<Vec<TimedPass>>,
}

/// The kinds of pass, each with its letter in PyTorch's schedules (`_ComputationType`).
const LETTERS: [(PassKind, &str); 4] = [
    (PassKind::Forward, "F"),
    (PassKind::Backward, "B"),
    (PassKind::BackwardInput, "I"),
    (PassKind::BackwardWeight, "W"),
];

impl Drawn {
    fn of(scenario: &Scenario) -> Option<Self> {
        /// More boxes would be too narrow to see.
        const MOST_STAGES_TIMES_MICRO_BATCHES: u32 = 256;
        let layout = &scenario.parallel;
        let stages = layout
            .pp
            .saturating_mul(layout.virtual_stages.max(1))
            .max(1);
        let most = (MOST_STAGES_TIMES_MICRO_BATCHES / stages).max(4);
        let prediction = Prediction::new(scenario.clone());
        let timetable = prediction.timetable(most as usize).ok()??;
        let time = prediction.step_time().ok()?;
        Some(Self {
            micro_batches: timetable.micro_batches,
            of: timetable.of,
            waits: time.bubble.expected.get() / time.step.expected.get().max(f64::MIN_POSITIVE),
            ranks: timetable.ranks,
        })
    }

    fn write(&self) -> Vec<String> {
        let pass = |pass: &TimedPass| {
            let letter = LETTERS.iter().find(|(kind, _)| *kind == pass.kind);
            let letter = letter.map_or("", |(_, letter)| letter);
            let Chunk { stage, micro_batch } = pass.chunk;
            format!(
                "{letter} {stage} {micro_batch} {:.6} {:.6}",
                pass.start, pass.end
            )
        };
        let rank = |passes: &Vec<TimedPass>| passes.iter().map(pass).collect::<Vec<_>>().join(";");
        let head = format!("{} {} {}", self.micro_batches, self.of, self.waits);
        [head]
            .into_iter()
            .chain(self.ranks.iter().map(rank))
            .collect()
    }

    fn read(lines: &[String]) -> Option<Self> {
        let (head, ranks) = lines.split_first()?;
        let mut head = head.split(' ');
        let pass = |text: &str| {
            let mut words = text.split(' ');
            let letter = words.next()?;
            let (kind, _) = LETTERS.iter().find(|(_, own)| *own == letter)?;
            let chunk = Chunk {
                stage: words.next()?.parse().ok()?,
                micro_batch: words.next()?.parse().ok()?,
            };
            Some(TimedPass {
                kind: *kind,
                chunk,
                start: words.next()?.parse().ok()?,
                end: words.next()?.parse().ok()?,
            })
        };
        Some(Self {
            micro_batches: head.next()?.parse().ok()?,
            of: head.next()?.parse().ok()?,
            waits: head.next()?.parse().ok()?,
            ranks: ranks
                .iter()
                .map(|rank| rank.split(';').filter_map(pass).collect())
                .collect(),
        })
    }

    fn length(&self) -> f64 {
        let ends = self.ranks.iter().flatten().map(|pass| pass.end);
        ends.fold(0.0, f64::max)
    }

    fn has(&self, kind: PassKind) -> bool {
        self.ranks.iter().flatten().any(|pass| pass.kind == kind)
    }
}

/// The chart, if the run has a pipeline.
#[component]
pub fn PipelineSchedule() -> impl IntoView {
    let session = Session::current();
    let helper = Helper::new(KIND.id);
    let size = chart::current_size();
    let stages = memo(move || session.answer.with(|answer| answer.scenario.parallel.pp));
    follow(session, helper, move || stages.get() > 1, String::new);
    let drawn = memo(move || helper.reply.with(|reply| Drawn::read(&reply.lines)));
    let is_hidden = move || stages.get() < 2 || drawn.with(Option::is_none);
    let svg = memo(move || chart::pipeline(&drawn.get()?.ranks, size.get()));
    let about = move || {
        drawn.get().map(|drawn| {
            let (_, unit) = chart::time_unit(drawn.length());
            text::pipeline_about(unit, drawn.micro_batches, drawn.of, drawn.waits)
        })
    };
    let key = move || {
        let drawn = drawn.get()?;
        let splits = drawn.has(PassKind::BackwardWeight);
        let backward = if drawn.has(PassKind::Backward) {
            "Backward"
        } else {
            "Backward, for inputs"
        };
        let items = [
            Some(("fill-forward", "Forward")),
            Some(("fill-backward", backward)),
            splits.then_some(("fill-weights", "Backward, for weights")),
        ];
        let item = |(class, label): (&'static str, &'static str)| {
            view! {
                <li>
                    <svg viewBox="0 0 12 12"><rect width="12" height="12" class=class></rect></svg>
                    {label}
                </li>
            }
        };
        Some(items.into_iter().flatten().map(item).collect_view())
    };
    view! {
        <section
            class="panel on-paper"
            class:stale=move || session.stale.get()
            hidden=is_hidden
            aria-labelledby="pipeline-title"
            data-testid="pipeline"
        >
            <header>
                <h3 id="pipeline-title">{text::PIPELINE}</h3>
                <SavePicture name="pipeline" svg size/>
            </header>
            <p class="quiet">{about}</p>
            <figure class="chart">
                <div class="plot" aria-hidden="true">
                    <Drawing svg size/>
                </div>
                <ul class="key" aria-hidden="true">{key}</ul>
            </figure>
        </section>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::settings;

    fn lines(changes: &str) -> Vec<String> {
        let mut scenario = Scenario::default();
        let model = "model=llama-3.1-8b gpu=h100-sxm5-80gb mb=1 seq=64 precision=bf16";
        for word in model.split(' ').chain(changes.split(' ')) {
            let (path, value) = word.split_once('=').unwrap();
            settings::set(&mut scenario, path, value).unwrap();
        }
        let mut work = (KIND.start)(&scenario, "");
        while !work.is_done() {
            work.step();
        }
        work.lines()
    }

    #[test]
    fn a_schedule_round_trips_as_text() {
        let lines_of = lines("gpus=4 par=ddp pp=4 accum=8 schedule=zero-bubble");
        let drawn = Drawn::read(&lines_of).unwrap();
        assert_eq!(
            (drawn.ranks.len(), drawn.micro_batches, drawn.of),
            (4, 8, 8)
        );
        assert_eq!(drawn.write(), lines_of);
        assert!(drawn.has(PassKind::BackwardWeight) && drawn.waits > 0.0 && drawn.waits < 0.2);
        assert!(lines("gpus=4 par=ddp").is_empty(), "no pipeline");
        assert_eq!(Drawn::read(&[]), None);
    }
}
