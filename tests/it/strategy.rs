//! Ladder, tiers, solvers and search against trying everything, on small scenarios made up at random.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use headroom_advice::{
    Allowed, Cost, Found, Goal, Group, MOVES, Move, Search, Slope, SolveFor, ladder, solve, tiers,
};
use headroom_base::units::Bytes;
use headroom_core::estimate::halves::{self, CombinedStep, OptimizerUpdate, Passes};
use headroom_core::estimate::{Estimate, estimate};
use headroom_scenario::{Scenario, settings};
use headroom_testing::Dice;

/// A small network that needs a little less or several times as much as there is. Few moves are open to each, so that trying
/// all of them takes no longer than it must.
fn small(dice: &mut Dice) -> Scenario {
    let mut scenario = Scenario::default();
    let text = dice.below(5) == 0;
    let network = if text {
        [
            ("model", "gpt2"),
            ("dims", "layers=1,hidden=256,heads=4,vocab=8000"),
            (
                "loss",
                dice.one_of(&["chunked-loss", "liger-linear", "liger"]),
            ),
        ]
    } else {
        [
            ("model", "vit-b16"),
            ("dims", "layers=1,hidden=768,heads=12,ffn=3072,img=80"),
            ("loss", "library"),
        ]
    };
    for (name, value) in network.into_iter().chain([
        ("gpu", "rtx-4090"),
        ("seq", "256"),
        (
            "mb",
            dice.one_of(if text {
                &["25", "27", "16"]
            } else {
                &["121", "125", "81"]
            }),
        ),
        ("accum", dice.one_of(&["1", "1", "1", "2"])),
        (
            "precision",
            dice.one_of(&["fp32", "amp-bf16", "bf16", "bf16"]),
        ),
        ("attn", dice.one_of(&["eager", "sdpa", "sdpa"])),
        (
            "optim",
            dice.one_of(&["adamw", "adamw-fused", "sgd", "sgd", "sgd"]),
        ),
        (
            "ckpt",
            dice.one_of(&["none", "layers", "layers", "offload"]),
        ),
        ("ema", dice.one_of(&["on", "off", "off"])),
        ("ema_host", dice.one_of(&["on", "off", "off"])),
        ("clip", dice.one_of(&["on", "on", "on", "off"])),
        ("dropout", dice.one_of(&["on", "off", "off"])),
        ("freeze", "wte,wpe"),
        ("kernels", "liger"),
        ("zero_none", dice.one_of(&["on", "on", "off"])),
        ("expandable", dice.one_of(&["on", "on", "off"])),
    ]) {
        settings::set(&mut scenario, name, value).unwrap();
    }
    let whole = estimate(&scenario).unwrap();
    let needs = whole.device.expected;
    let besides = needs - whole.reserved.expected;
    let part = 0.15 + 0.95 * dice.below(100) as f64 / 100.0;
    let memory = besides + (needs - besides).scale(part);
    scenario.hardware.memory_mib = std::num::NonZero::new(memory.get() >> 20);
    scenario
}

/// Micro-batches that keep the effective batch, the largest first.
fn all(scenario: &Scenario) -> Vec<u64> {
    let whole = scenario.data.micro_batch * scenario.training.accumulation;
    (1..=whole)
        .rev()
        .filter(|size| whole.is_multiple_of(*size))
        .collect()
}

fn with_batch(scenario: &Scenario, micro_batch: u64) -> Scenario {
    let whole = scenario.data.micro_batch * scenario.training.accumulation;
    let mut changed = scenario.clone();
    changed.data.micro_batch = micro_batch;
    changed.training.accumulation = whole / micro_batch;
    changed
}

/// Peaks and times, each half of a step estimated once.
#[derive(Default)]
struct Quick {
    passes: Vec<(Scenario, Passes)>,
    turns: Vec<(Scenario, OptimizerUpdate)>,
    wholes: Vec<(Scenario, CombinedStep)>,
}

impl Quick {
    fn whole(&mut self, scenario: &Scenario) -> CombinedStep {
        if !halves::separable(scenario) {
            return known(&mut self.wholes, scenario.clone(), |scenario| {
                halves::unsplit(scenario).unwrap()
            });
        }
        let passes = |scenario: &Scenario| halves::passes(scenario).unwrap();
        let passes = known(&mut self.passes, halves::passes_key(scenario), passes);
        let mut turn = |key| {
            known(&mut self.turns, key, |scenario| {
                halves::update(scenario).unwrap()
            })
        };
        let bare = turn(halves::stateless_update_key(scenario));
        halves::combine(&passes, &turn(halves::update_key(scenario)), &bare)
    }
}

fn known<T: Copy>(
    all: &mut Vec<(Scenario, T)>,
    key: Scenario,
    compute: impl FnOnce(&Scenario) -> T,
) -> T {
    if let Some((_, found)) = all.iter().rev().find(|(known, _)| *known == key) {
        return *found;
    }
    let value = compute(&key);
    all.push((key, value));
    value
}

/// How many scenarios are tried: what `HEADROOM_CASES` says, or all in an optimised build and a few in a slow one.
fn count() -> usize {
    let asked = std::env::var("HEADROOM_CASES").ok();
    let usual = if cfg!(debug_assertions) { 12 } else { 200 };
    asked.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// The scenarios, the same in each run.
fn scenarios(count: usize) -> impl Iterator<Item = Scenario> {
    let mut dice = Dice::new(2024);
    std::iter::repeat_with(move || small(&mut dice)).take(count)
}

/// Every set of moves up to this cost, of each group at most one, that can be taken together; each with its changed run.
fn sets(start: &Scenario, most: Cost) -> Vec<(Vec<&'static Move>, Scenario)> {
    let mut all = vec![(Vec::new(), start.clone())];
    for group in Group::ALL {
        let moves = MOVES
            .iter()
            .filter(|mv| mv.group == group && mv.cost <= most);
        let with: Vec<_> = moves
            .flat_map(|mv| {
                all.iter().filter_map(move |(set, scenario)| {
                    let changed = (mv.apply)(scenario)?;
                    Some(([&set[..], &[mv]].concat(), changed))
                })
            })
            .collect();
        all.extend(with);
    }
    all
}

/// Full estimates, each made once.
#[derive(Default)]
struct Full(Vec<(Scenario, Estimate)>);

impl Full {
    fn met(&mut self, scenario: &Scenario, goal: Goal) -> bool {
        if let Some((_, known)) = self.0.iter().rev().find(|(known, _)| known == scenario) {
            return goal.met(known);
        }
        let estimate = estimate(scenario).unwrap();
        let met = goal.met(&estimate);
        self.0.push((scenario.clone(), estimate));
        met
    }
}

#[test]
fn the_ladder_is_the_shortest_of_the_cheapest_kind() {
    let (mut reached, mut out_of_reach) = (0, 0);
    for scenario in scenarios(count()) {
        let goal = Goal::default();
        let ladder = ladder(&scenario, goal).unwrap();
        assert!(ladder.exhaustive);
        let mut now: Vec<&str> = Vec::new();
        for step in &ladder.steps {
            assert_eq!(step.scenario.effective_batch(), scenario.effective_batch());
            assert_eq!(step.scenario.check(), vec![]);
            now.push(step.id);
        }
        if ladder.fits && ladder.steps.is_empty() {
            assert!(goal.met(&ladder.start));
            continue;
        }
        // The least cost and number of steps of any way that fits.
        let (mut quick, mut full) = (Quick::default(), Full::default());
        let allowance = goal.allowance(&estimate(&scenario).unwrap()).unwrap();
        let mut best: Option<(Cost, usize)> = None;
        let smaller = |size: &u64| *size <= scenario.data.micro_batch;
        for size in all(&scenario).into_iter().filter(smaller) {
            let shrinks = size != scenario.data.micro_batch;
            for (set, changed) in sets(&with_batch(&scenario, size), Cost::Results) {
                let shrinking = shrinks.then_some(Cost::Time);
                let Some(dearest) = set.iter().map(|mv| mv.cost).chain(shrinking).max() else {
                    continue;
                };
                let key = (dearest, set.len() + usize::from(shrinks));
                let shorter = best.is_none_or(|best| key < best);
                if shorter && quick.whole(&changed).peak <= allowance && full.met(&changed, goal) {
                    best = Some(key);
                }
            }
        }
        let found = ladder.fits.then(|| {
            let dearest = ladder.steps.iter().map(|rung| rung.cost).max().unwrap();
            (dearest, ladder.steps.len())
        });
        assert_eq!(found, best, "{now:?} {scenario:?}");
        match ladder.steps.last() {
            Some(last) if ladder.fits => {
                assert!(goal.met(&last.estimate));
                reached += 1;
            }
            _ => out_of_reach += 1,
        }
    }
    assert!(reached > count() / 5, "{reached} {out_of_reach}");
}

#[test]
fn tiers_and_solvers_find_what_trying_every_value_finds() {
    for scenario in scenarios(count()) {
        let mut full = Full::default();
        for tier in tiers(&scenario, Allowed::ALL).unwrap() {
            let goal = tier.tier.goal();
            let start = match &tier.ladder {
                Some(ladder) => ladder.steps.last().map(|step| step.scenario.clone()),
                None => Some(scenario.clone()),
            };
            let fits = |size: &u64| {
                let run = start.as_ref().map(|start| with_batch(start, *size));
                run.is_some_and(|run| full.met(&run, goal))
            };
            let expected = all(&scenario).into_iter().find(fits);
            let found = tier.scenario.as_ref().map(|run| run.data.micro_batch);
            assert_eq!(found, expected, "{:?} {scenario:?}", tier.tier);
        }
    }
}

#[test]
fn the_largest_of_anything_is_the_last_value_that_fits() {
    let goal = Goal::default();
    let (mut some, mut none) = (0, 0);
    for (at, scenario) in scenarios(count()).enumerate() {
        let is_text = scenario.model.id == "gpt2";
        let names: &[&str] = match (is_text, at % 3) {
            (_, 0) => &["data.micro_batch"],
            (true, _) => &["data.sequence"],
            (false, 1) => &["img"],
            (false, _) => &["layers"],
        };
        for name in names {
            let unknown = SolveFor::named(name, &scenario).unwrap();
            let multiple = if *name == "img" { 16 } else { 1 };
            let solved = solve(&scenario, &unknown, goal, multiple).unwrap();
            let met = |value| goal.met(&estimate(&unknown.with(&scenario, value)).unwrap());
            match solved.value {
                Some(value) => {
                    some += 1;
                    assert!(met(value), "{name} {value} {scenario:?}");
                    if solved.slope == Slope::Rising {
                        // Every value up to it fits as well, and the next does not.
                        assert!(!met(value + multiple), "{name} {value} {scenario:?}");
                        let few = (1..=value).rev().step_by(1 + value as usize / 2);
                        assert!(
                            few.filter(|size| size.is_multiple_of(multiple)).all(met),
                            "{name}"
                        );
                    }
                }
                None => {
                    none += 1;
                    let now = unknown.value(&scenario);
                    assert!(!met(now), "{name} {scenario:?}");
                }
            }
        }
    }
    assert!(some > count() / 5 && none > 0, "{some} {none}");
}

#[test]
fn the_search_finds_the_front_that_trying_everything_finds() {
    let mut found_some = 0;
    for (at, scenario) in scenarios(count()).enumerate() {
        let goal = Goal::default();
        // Whatever changes results makes too many sets for a slow build to try.
        let most = match at % 20 {
            7 if !cfg!(debug_assertions) => Cost::Results,
            0 | 4 | 8 | 12 | 16 => Cost::Time,
            _ => Cost::Free,
        };
        let found = Search::new(&scenario, goal, most)
            .unwrap()
            .finish()
            .unwrap();
        let tally = found.tally;
        assert!(tally.done);
        assert_eq!(tally.settled, tally.space, "{tally:?}");
        // Everything, with the allocator's option that the search takes as given.
        let mut base = scenario.clone();
        base.training.optimizer_in_backward = false;
        base.runtime.expandable_segments = true;
        let allowance = goal.allowance(&estimate(&scenario).unwrap()).unwrap();
        let mut quick = Quick::default();
        let mut points: Vec<(Bytes, f64)> = Vec::new();
        for size in all(&base) {
            for (_, changed) in sets(&with_batch(&base, size), most) {
                let whole = quick.whole(&changed);
                if whole.peak <= allowance {
                    points.push((whole.peak, whole.step.expected.get()));
                }
            }
        }
        let better = |a: &(Bytes, f64), b: &(Bytes, f64)| a.0 <= b.0 && a.1 < b.1 * (1.0 - 1e-9);
        let fastest = points
            .iter()
            .map(|point| point.1)
            .fold(f64::INFINITY, f64::min);
        for candidate in &found.front {
            let whole = quick.whole(&candidate.scenario);
            let split = (whole.peak, whole.step.expected.get());
            assert!(
                !points.iter().any(|point| better(point, &split)),
                "{scenario:?}"
            );
            assert_eq!(
                candidate.scenario.effective_batch(),
                scenario.effective_batch()
            );
        }
        assert_eq!(found.front.is_empty(), points.is_empty());
        if let Some(first) = found.front.first() {
            found_some += 1;
            let seconds = first.time.expected.get();
            assert!(
                (seconds / fastest - 1.0).abs() < 1e-9,
                "{seconds} {fastest} {scenario:?}"
            );
        }
        // And nothing that trying everything finds is better than all of the front.
        let front: Vec<(Bytes, f64)> = found
            .front
            .iter()
            .map(|point| quick.whole(&point.scenario))
            .map(|whole| (whole.peak, whole.step.expected.get() * (1.0 + 1e-9)))
            .collect();
        for point in &points {
            let covered = front
                .iter()
                .any(|other| other.0 <= point.0 && other.1 <= point.1 * (1.0 + 2e-9));
            assert!(covered, "{point:?} {scenario:?}");
        }
    }
    assert!(found_some > count() / 3, "{found_some}");
}

#[test]
fn a_search_in_steps_is_the_search_at_once() {
    for scenario in scenarios(6) {
        let new = || Search::new(&scenario, Goal::default(), Cost::Free).unwrap();
        let at_once = new().finish().unwrap();
        let mut stepped = new();
        let mut last = 0;
        while !stepped.step(3).unwrap().done {
            let tally = stepped.step(1).unwrap();
            assert!(tally.settled >= last && tally.settled <= tally.space);
            last = tally.settled;
        }
        let found = stepped.finish().unwrap();
        let peaks = |found: &Found| -> Vec<Bytes> {
            found
                .front
                .iter()
                .map(|rung| rung.estimate.device.expected)
                .collect()
        };
        assert_eq!(peaks(&found), peaks(&at_once));
        assert_eq!(found.tally, at_once.tally);
    }
}

#[test]
fn memory_and_time_rise_and_fall_with_the_micro_batch_as_pruning_takes_for_granted() {
    for scenario in scenarios(count()) {
        let mut before: Option<halves::CombinedStep> = None;
        // Without accumulation no gradients are kept through a forward pass: the first stands by itself.
        for size in all(&scenario).into_iter().skip(1) {
            let passes = halves::passes(&with_batch(&scenario, size)).unwrap();
            let least = halves::at_least(&passes);
            if let Some(larger) = before {
                // Each waiting batch is rounded by itself.
                let rounding = Bytes::kib(64);
                assert!(least.peak <= larger.peak + rounding, "{size} {scenario:?}");
                let (a, b) = (larger.step.expected.get(), least.step.expected.get());
                assert!(a <= b * (1.0 + 1e-9), "{size} {a} {b} {scenario:?}");
            }
            before = Some(least);
        }
    }
}

/// A run such as a search meets on its way: a small network of any kind, with settings thrown anew.
fn varied(dice: &mut Dice) -> Scenario {
    headroom_systems::install();
    let mut scenario = Scenario::default();
    let (model, dims) = [
        ("gpt2", "layers=2"),
        ("llama-3.2-1b", "layers=2"),
        ("qwen3-0.6b", "layers=2"),
        ("bert-base-uncased", "layers=2"),
        ("vit-b16", "layers=2"),
        ("llava-1.5-7b", "layers=1,v_layers=2"),
        ("dreams", "layers=2"),
        ("gcn-arxiv", "nodes=2000,edges=9000"),
        ("sd-1.5-unet", "img=16,encoders=1"),
    ][dice.below(9) as usize];
    for (name, words) in [
        ("model", &[model][..]),
        ("dims", &[dims]),
        ("gpu", &["a100-sxm4-80gb"]),
        ("precision", &["fp32", "amp-bf16", "bf16"]),
        ("attn", &["eager", "sdpa"]),
        (
            "ckpt",
            &["none", "none", "layers", "keep-matmuls", "offload"],
        ),
        ("loss", &["library", "library", "liger-linear"]),
        ("mask", &["off", "on"]),
        ("seq", &["256", "512"]),
        ("mb", &["1", "2", "3"]),
        ("accum", &["1", "4"]),
        ("optim", &["adamw", "adamw-fused", "sgd"]),
        ("clip", &["off", "on"]),
        ("zero_none", &["on", "on", "off"]),
        ("keep_outputs", &["off", "on"]),
        ("use_cache", &["off", "off", "on"]),
        ("lora", &["off", "on"]),
        (
            "lora_targets",
            &["q_proj,v_proj,up_proj,down_proj,query,c_attn,c_fc,to_q"],
        ),
        ("lora_dropout", &["0", "0.1"]),
    ] {
        let word = dice.one_of(words);
        if name.starts_with("lora_") && scenario.training.lora.is_none() {
            continue;
        }
        settings::set(&mut scenario, name, word).unwrap();
    }
    scenario
}

#[test]
fn what_is_never_worse_is_never_worse_as_pruning_takes_for_granted() {
    let mut dice = Dice::new(77);
    let mut seen: Vec<&str> = Vec::new();
    for _ in 0..5 * count() {
        let scenario = varied(&mut dice);
        if !scenario.check().is_empty() {
            continue;
        }
        let Ok(before) = halves::unsplit(&scenario) else {
            continue;
        };
        for mv in MOVES.iter().filter(|mv| mv.never_worse) {
            let Some(changed) = (mv.apply)(&scenario) else {
                continue;
            };
            if !seen.contains(&mv.id) {
                seen.push(mv.id);
            }
            let after = halves::unsplit(&changed).unwrap();
            let (a, b) = (before.step.expected.get(), after.step.expected.get());
            // Which tensors meet at the peak may change by a thousandth of it.
            let peak = before.peak.scale(1.001);
            let id = mv.id;
            assert!(
                after.peak <= peak,
                "{id} {peak} {} {scenario:?}",
                after.peak
            );
            assert!(b <= a * (1.0 + 1e-9), "{id} {a} {b} {scenario:?}");
        }
    }
    assert!(seen.len() > 12, "{seen:?}");
}
