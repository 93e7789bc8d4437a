//! The memory of each GPU of a job, if they differ: a bar for each.

use leptos::prelude::*;

use crate::fits::cluster::Cluster;
use crate::fits::one_rank::{OneRank, has_copies};
use crate::shared::bar::MemoryBar;
use crate::shared::follow::follow;
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::shared::worker::{Helper, JobKind, Work};
use crate::text;
use headroom_core::estimate::{Prediction, RankMemory};
use headroom_scenario::Scenario;

/// The worker's job.
pub const KIND: JobKind = JobKind {
    id: "ranks",
    start: |scenario, _| {
        Box::new(Ranks {
            scenario: scenario.clone(),
            lines: None,
        })
    },
};

struct Ranks {
    scenario: Scenario,
    lines: Option<Vec<String>>,
}

impl Work for Ranks {
    fn is_done(&self) -> bool {
        self.lines.is_some()
    }

    fn step(&mut self) {
        let prediction = Prediction::new(self.scenario.clone());
        let usable = prediction
            .estimate()
            .ok()
            .and_then(|estimate| estimate.usable);
        let ranks = prediction.ranks().unwrap_or_default();
        let longest = ranks.iter().map(|rank| rank.device.expected);
        let longest = longest.chain(usable).max().unwrap_or_default();
        let line = |rank: &RankMemory| OneRank::of(rank, usable, longest).write();
        self.lines = Some(ranks.iter().map(line).collect());
    }

    fn lines(&self) -> Vec<String> {
        self.lines.clone().unwrap_or_default()
    }
}

/// A rank's label.
fn name(rank: &OneRank, all: &[OneRank], copies: bool) -> String {
    if copies && all.len() > 1 {
        return text::of_copies(rank.shard > 0).into();
    }
    let stages = all.iter().any(|other| other.stage > 0);
    let shards = all.iter().any(|other| other.shard > 0);
    let shard = if rank.shard > 0 {
        "last shard"
    } else {
        "first shard"
    };
    match (stages, shards) {
        (true, true) => format!("Stage {}, {shard}", rank.stage + 1),
        (true, false) => format!("Stage {}", rank.stage + 1),
        (false, true) => format!("GPUs with the {shard}"),
        (false, false) => text::EVERY_GPU.into(),
    }
}

/// The bars, if there are several GPUs.
#[component]
pub fn PerGpu() -> impl IntoView {
    let session = Session::current();
    let helper = Helper::new(KIND.id);
    let several = memo(move || {
        session
            .answer
            .with(|answer| answer.scenario.hardware.gpus > 1)
    });
    follow(session, helper, move || several.get(), String::new);
    let ranks = memo(move || {
        let read = |line: &String| OneRank::read(line);
        helper
            .reply
            .with(|reply| reply.lines.iter().filter_map(read).collect::<Vec<_>>())
    });
    let copies = memo(move || session.answer.with(|answer| has_copies(&answer.scenario)));
    let waiting = move || !helper.reply.with(|reply| reply.done);
    let rows = move || {
        let units = session.units.get();
        let all = ranks.get();
        let row = |rank: &OneRank| {
            let bar = rank.bar.clone();
            view! {
                <tr>
                    <th scope="row">{name(rank, &all, copies.get())}</th>
                    <td class="drawn"><MemoryBar bar=Signal::derive(move || Some(bar.clone()))/></td>
                    <td class="number">{rank.allocated.show(units)}</td>
                    <td class="number">{rank.device.show(units)}</td>
                    <td>{rank.fits.clone()}</td>
                </tr>
            }
        };
        all.iter().map(row).collect_view()
    };
    view! {
        <section
            class="panel"
            class:stale=move || session.stale.get()
            hidden=move || !several.get()
            aria-labelledby="ranks-title"
            data-testid="ranks"
        >
            <header><h3 id="ranks-title">{text::PER_GPU}</h3></header>
            <p class="quiet">{text::PER_GPU_ABOUT}</p>
            <p class="quiet" role="status">{move || waiting().then_some(text::WORKING)}</p>
            <Cluster ranks/>
            <div class="scroller" tabindex="0" role="group" aria-label=text::PER_GPU aria-busy=move || waiting().to_string()>
                <table class="plain-table ranks">
                    <thead>
                        <tr>
                            <th scope="col">"GPU"</th>
                            <th scope="col"><span class="aside">"Memory"</span></th>
                            <th scope="col" class="number">"Allocated"</th>
                            <th scope="col" class="number">{text::WHOLE}</th>
                            <th scope="col">"Fits"</th>
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        </section>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::settings;

    fn ranks(changes: &[(&str, &str)]) -> Vec<OneRank> {
        let mut scenario = Scenario::default();
        scenario.model.dims = [("layers".to_string(), 2)].into();
        scenario.data.sequence = 64;
        for (path, value) in changes {
            settings::set(&mut scenario, path, value).unwrap();
        }
        let mut work = (KIND.start)(&scenario, "");
        while !work.is_done() {
            work.step();
        }
        let read = |line: &String| OneRank::read(line).unwrap();
        work.lines().iter().map(read).collect()
    }

    #[test]
    fn each_differing_rank_has_a_bar_and_a_label() {
        let check = |changes: &[(&str, &str)], expected: &[&str]| {
            let all = ranks(changes);
            let names: Vec<_> = all.iter().map(|rank| name(rank, &all, false)).collect();
            assert_eq!(names, expected);
            assert!(all.iter().all(|rank| rank.device > rank.allocated));
        };
        check(&[("gpus", "2")], &[text::EVERY_GPU]);
        check(
            &[
                ("model", "llama-3.1-8b"),
                ("gpus", "2"),
                ("pp", "2"),
                ("accum", "2"),
            ],
            &["Stage 1", "Stage 2"],
        );
    }
}
