//! Tiers and solvers against trying everything, on small scenarios made up at random.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use headroom_advice::{Goal, Locks, MOVES, Slope, SolveFor, solve, tiers};
use headroom_base::units::Bytes;
use headroom_core::estimate::halves;
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
fn tiers_and_solvers_find_what_trying_every_value_finds() {
    for scenario in scenarios(count()) {
        let mut full = Full::default();
        for tier in tiers(&scenario, &Locks::default()).unwrap() {
            let goal = tier.tier.goal();
            let start = match &tier.plan {
                Some(plan) => Some(plan.full.scenario.clone()),
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
