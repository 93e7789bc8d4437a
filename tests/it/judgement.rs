//! Law 4 of advice: whatever is asked about a run, it fits or does not in one and the same way. And law 6: how much work a plan
//! may be, counted in recorded tensors, since a clock says as much of the machine.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use headroom_advice::planner::{Reach, cards, reach};
use headroom_advice::{
    CARDS, Goal, GpuVerdict, Locks, Tier, gpus, largest_batch, on, on_cards, plan, splits, tiers,
};
use headroom_catalog as catalog;
use headroom_core::estimate::{Fit, estimate};
use headroom_scenario::{Scenario, presets, settings};

fn run(words: &str) -> Scenario {
    headroom_systems::install();
    let mut scenario = Scenario::default();
    for word in words.split_whitespace() {
        match word.split_once('=').unwrap() {
            ("preset", id) => scenario = presets::find(id).unwrap().scenario(),
            (name, value) => settings::set(&mut scenario, name, value).unwrap(),
        }
    }
    scenario
}

const RUNS: [&str; 8] = [
    "preset=dreams",
    "preset=gsa-512m",
    "preset=rna-3e-ffi gpu=rtx-4090-24gb",
    "preset=prs-med gpu=rtx-4090-24gb",
    "model=gpt2 gpu=rtx-3070-8gb mb=8",
    "model=qwen3-0.6b gpu=rtx-4080-16gb mb=4 seq=2048",
    "model=llama-3.1-8b gpu=rtx-4090-24gb mb=1 seq=4096 lora=on precision=amp-bf16-on-bf16",
    "model=vit-b16 gpu=rtx-3070-8gb mb=64",
];

#[test]
fn every_question_about_a_run_gets_the_same_judgement() {
    for words in RUNS {
        let run = run(words);
        let estimate = estimate(&run).unwrap();
        let fit = estimate.fit();
        let fits = matches!(fit, Some(Fit::Fits | Fit::Probably));
        let plans = plan(&run, Locks::default()).unwrap();
        assert_eq!(plans.now.estimate, estimate, "{words}: plan");
        assert_eq!(Goal::default().met(&estimate), fits, "{words}: solve");
        // Unchanged is a plan only if it fits.
        let unchanged = plans.plans.iter().any(|plan| plan.changes.is_empty());
        assert!(fits || !unchanged, "{words}");
        let gpu = catalog::gpu(&run.hardware.gpu).unwrap();
        let rows = gpus(&run);
        let row = rows.iter().find(|row| row.gpu.id == gpu.id).unwrap();
        assert_eq!(row.verdict, GpuVerdict::of(&estimate), "{words}: gpus");
        let split = splits(&run).unwrap();
        let same = split.iter().find(|split| split.scenario == run);
        assert!(
            same.is_none_or(|same| same.estimate.fit() == fit),
            "{words}: accumulate"
        );
        let largest = largest_batch(&run).unwrap().scenario;
        let largest = largest.map_or(0, |run| run.data.micro_batch);
        assert_eq!(
            largest >= run.data.micro_batch,
            fits,
            "{words}: fit {largest}"
        );
    }
}

#[test]
fn tiers_on_a_card_are_tiers_of_the_run_on_that_card() {
    let mut compared = 0;
    for words in RUNS {
        let run = run(words);
        for card in CARDS.iter().step_by(3) {
            let moved = on(&run, catalog::gpu(card.gpu).unwrap());
            let rows = on_cards(&run, card, &Locks::default()).unwrap();
            let Some(row) = rows.iter().find(|row| row.gpus == run.hardware.gpus) else {
                continue;
            };
            let tiers = tiers(&moved, &Locks::default()).unwrap();
            let full = tiers
                .iter()
                .find(|tier| tier.tier == Tier::Maximum)
                .unwrap();
            assert_eq!(
                row.variant.estimate.device, full.estimate.device,
                "{words}: {}",
                card.size
            );
            assert_eq!(
                row.variant.scenario, full.scenario,
                "{words}: {}",
                card.size
            );
            compared += 1;
        }
    }
    assert!(compared >= 24, "{compared}");
}

/// The farthest a run reaches, over which some plan fits; a little farther none does.
#[test]
fn a_goal_is_reached_and_no_farther() {
    let check = |words: &str, what: Reach| {
        let run = run(words);
        let reached = reach(&run, what, &Locks::default()).unwrap().unwrap();
        let fits = |run: &Scenario| plan(run, Locks::default()).unwrap().fits();
        let at = |value: u64| {
            let mut changed = run.clone();
            match what {
                Reach::Batch => {
                    changed.data.micro_batch = value;
                    changed.training.accumulation = 1;
                }
                Reach::Length => changed.data.sequence = value,
            }
            changed
        };
        for plan in &reached.plans.plans {
            assert!(plan.full.fits(), "{words} {what:?}");
        }
        assert!(reached.plans.fits(), "{words} {what:?}");
        // A batch is always accumulated from smaller ones, so that only a longer sample can be too long.
        if what == Reach::Length {
            let beyond = (reached.value + reached.value / 20).next_multiple_of(128);
            assert!(!fits(&at(beyond)), "{words} {what:?} {beyond}");
        }
        reached.value
    };
    let lora = "model=qwen3-0.6b gpu=rtx-3070-8gb mb=1 seq=2048 lora=on precision=amp-bf16-on-bf16";
    let [batch, length] = [Reach::Batch, Reach::Length].map(|what| check(lora, what));
    assert!(batch > 1 && length > 2048, "{batch} {length}");
    assert!(check("model=gpt2 gpu=rtx-4090-24gb mb=8", Reach::Batch) > 8);
}

#[test]
fn the_smallest_cards_are_the_smallest() {
    let run = run("model=qwen2.5-7b gpu=rtx-4090-24gb mb=4 seq=2048 precision=amp-bf16");
    let rows = cards(&run, &Locks::default());
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row.plan.full.fits(), "{} × {}", row.gpus, row.gpu);
        let place = CARDS.iter().position(|card| card.gpu == row.gpu).unwrap();
        let Some(smaller) = CARDS.get(place + 1) else {
            continue;
        };
        let mut less = on(&run, catalog::gpu(smaller.gpu).unwrap());
        less.hardware.gpus = row.gpus;
        less.data.micro_batch = run.data.micro_batch.div_ceil(u64::from(row.gpus));
        let found = plan(&less, Locks::default()).unwrap();
        assert!(!found.fits(), "{} × {} would do", row.gpus, smaller.gpu);
    }
}

#[test]
fn a_plan_is_bounded_work() {
    let over: Vec<String> = [
        ("model=gpt2 gpu=rtx-3070-8gb mb=32", 110_000),
        (
            "model=llama-3.1-8b gpu=rtx-4090-24gb mb=8 seq=4096 lora=on precision=amp-bf16-on-bf16",
            400_000,
        ),
        (
            "model=llama-3.1-405b gpu=h100-sxm5-80gb gpus=512 nodes=64 mb=1 seq=8192 precision=amp-bf16",
            1_000_000,
        ),
        (
            "model=deepseek-v3 gpu=h100-sxm5-80gb gpus=512 nodes=64 mb=2 seq=4096 precision=amp-bf16",
            5_000_000,
        ),
    ]
    .into_iter()
    .filter_map(|(words, most)| {
        let plans = plan(&run(words), Locks::default()).unwrap();
        assert!(plans.plans.iter().all(|plan| plan.full.fits()), "{words}");
        (plans.work > most).then(|| format!("{words}: {} recorded tensors", plans.work))
    })
    .collect();
    assert!(over.is_empty(), "{}", over.join("\n"));
}
