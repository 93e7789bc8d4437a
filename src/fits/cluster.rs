//! The machines of a job and the memory of their GPUs; identical machines are shown once.

use leptos::prelude::*;

use crate::fits::one_rank::{OneRank, has_copies};
use crate::shared::bar::MemoryBar;
use crate::shared::session::Session;
use crate::text;
use headroom_core::World;
use headroom_scenario::{Case, Scenario};

/// Identical adjacent machines.
#[derive(Clone, Debug, PartialEq)]
struct Machines {
    first: u32,
    last: u32,
    /// The rank of each GPU.
    gpus: Vec<usize>,
}

/// All machines of a job.
fn machines(scenario: &Scenario, ranks: &[OneRank]) -> Vec<Machines> {
    let world = World::of_case(&Case::of(scenario));
    let hardware = &scenario.hardware;
    let each = hardware.gpus_of_a_machine();
    let mut all: Vec<Machines> = Vec::new();
    for machine in 0..hardware.gpus.div_ceil(each) {
        let from = machine * each;
        let to = from.saturating_add(each).min(hardware.gpus);
        let gpus: Vec<usize> = (from..to)
            .map(|gpu| {
                let place = world.place_of(gpu);
                // Ranks that are not listed equal the last listed one before them.
                let before =
                    |rank: &OneRank| (rank.stage, rank.shard) <= (place.stage, place.shard);
                let is_own = |rank: &OneRank| rank.shard == 0 || rank.shard == place.shard;
                let found = ranks.iter().rposition(|rank| before(rank) && is_own(rank));
                found.unwrap_or_default()
            })
            .collect();
        let number = machine + 1;
        match all.last_mut() {
            Some(alike) if alike.gpus == gpus => alike.last = number,
            _ => all.push(Machines {
                first: number,
                last: number,
                gpus,
            }),
        }
    }
    all
}

/// A short label for what distinguishes a GPU from its neighbours.
fn place(rank: &OneRank, all: &[OneRank], copies: bool) -> String {
    if copies {
        return text::of_copies(rank.shard > 0).into();
    }
    let stages = all.iter().any(|other| other.stage > 0);
    match (stages, rank.shard > 0) {
        (true, false) => format!("Stage {}", rank.stage + 1),
        (true, true) => format!("Stage {}, last shard", rank.stage + 1),
        (false, true) => "Last shard".into(),
        (false, false) => String::new(),
    }
}

/// How many neighbours split each matrix or each sequence, if their groups lie within machines.
fn neighbours(scenario: &Scenario) -> Option<usize> {
    let mesh = scenario.mesh();
    let near = mesh.tensor.max(1).saturating_mul(mesh.context.max(1));
    let each = scenario.hardware.gpus_of_a_machine();
    (near > 1 && near < each && each.is_multiple_of(near)).then_some(near as usize)
}

/// A row for each group of identical machines.
#[component]
pub(crate) fn Cluster(ranks: Memo<Vec<OneRank>>) -> impl IntoView {
    /// The most rows.
    const MOST: usize = 16;
    let session = Session::current();
    let rows = move || {
        let ranks = ranks.get();
        if ranks.is_empty() {
            return Vec::new();
        }
        let (all, copies, near) = session.answer.with(|answer| {
            let scenario = &answer.scenario;
            (
                machines(scenario, &ranks),
                has_copies(scenario),
                neighbours(scenario),
            )
        });
        let row = |machines: &Machines| {
            let gpu = |rank: &usize| {
                let rank = ranks.get(*rank)?;
                let bar = rank.bar.clone();
                Some(view! {
                    <li>
                        <MemoryBar bar=Signal::derive(move || Some(bar.clone()))/>
                        <span class="quiet">{place(rank, &ranks, copies)}</span>
                    </li>
                })
            };
            let gpus = match near {
                None => {
                    view! { <ul>{machines.gpus.iter().map(gpu).collect_view()}</ul> }.into_any()
                }
                Some(near) => {
                    let group = |gpus: &[usize]| {
                        view! { <li class="neighbours"><ul>{gpus.iter().map(gpu).collect_view()}</ul></li> }
                    };
                    view! { <ul class="groups">{machines.gpus.chunks(near).map(group).collect_view()}</ul> }
                        .into_any()
                }
            };
            view! {
                <div class="machine">
                    <span class="quiet">{text::machines(machines.first, machines.last)}</span>
                    {gpus}
                </div>
            }
            .into_any()
        };
        let mut rows: Vec<AnyView> = all.iter().take(MOST).map(row).collect();
        let left_out = all.iter().skip(MOST);
        let left_out: u32 = left_out.map(|group| group.last - group.first + 1).sum();
        if left_out > 0 {
            rows.push(view! { <p class="quiet">{text::more_machines(left_out)}</p> }.into_any());
        }
        rows
    };
    let groups = move || {
        let groups = session.answer.with(|answer| {
            let mesh = answer.scenario.mesh();
            text::groups(&mesh, neighbours(&answer.scenario).is_some())
        });
        (!groups.is_empty()).then(|| view! { <p class="quiet">{groups}</p> })
    };
    view! { <div class="cluster" data-testid="cluster">{groups}{rows}</div> }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::settings;

    /// The machines of a run whose ranks are listed by stage and shard: "1-4 00000000".
    #[track_caller]
    fn check(run: &str, ranks: &[(u32, u32)], expected: &[&str]) {
        let mut scenario = Scenario::default();
        for word in run.split(' ') {
            let (path, value) = word.split_once('=').unwrap();
            settings::set(&mut scenario, path, value).unwrap();
        }
        let rank = |&(stage, shard): &(u32, u32)| OneRank {
            stage,
            shard,
            ..OneRank::default()
        };
        let ranks: Vec<_> = ranks.iter().map(rank).collect();
        let shown = |group: &Machines| {
            let gpus: String = group.gpus.iter().map(ToString::to_string).collect();
            format!("{}-{} {gpus}", group.first, group.last)
        };
        let shown: Vec<_> = machines(&scenario, &ranks).iter().map(shown).collect();
        assert_eq!(shown, expected, "{run}");
    }

    #[test]
    fn identical_machines_are_shown_once() {
        check("gpus=2 par=ddp", &[(0, 0)], &["1-1 00"]);
        check("gpus=32 nodes=4 par=fsdp2", &[(0, 0)], &["1-4 00000000"]);
        check("gpus=7 par=fsdp2", &[(0, 0), (0, 6)], &["1-1 0000001"]);
        check(
            "gpus=8 par=none tp=4 pp=2",
            &[(0, 0), (1, 0)],
            &["1-1 00001111"],
        );
        // Two stages on four machines; the last shard of the fuller one has less.
        check(
            "gpus=32 nodes=4 par=fsdp2 pp=2",
            &[(0, 0), (0, 15), (1, 0)],
            &["1-1 00000000", "2-2 00000001", "3-4 22222222"],
        );
        // GPUs that share sequences share the weights out too.
        check("gpus=4 par=fsdp2 cp=2", &[(0, 0), (0, 3)], &["1-1 0001"]);
    }
}
