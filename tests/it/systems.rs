//! Every proposal can be run: a research system's own program, or some program, has files that express the proposed scenario.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use headroom_advice::planner::{Accepts, Full};
use headroom_advice::{
    CARDS as CARDS_BY_SIZE, Goal, Locks, MOVES, OnCards, Plans, on_cards, plan, tiers,
};
use headroom_core::estimate::{Estimate, estimate};
use headroom_io::export;
use headroom_scenario::share;
use headroom_scenario::{Scenario, presets, settings};
use headroom_systems as systems;

const SYSTEMS: [&str; 5] = ["dreams", "gsa-512m", "rna-3e-ffi", "prs-med", "peptrm"];
/// Cards, in GiB.
const CARDS: [u64; 6] = [8, 16, 24, 40, 48, 80];

fn preset(id: &str) -> Scenario {
    systems::install();
    presets::find(id).unwrap().scenario()
}

fn on_card(id: &str, gib: u64) -> Scenario {
    let mut scenario = preset(id);
    settings::set(&mut scenario, "mem", &(gib * 1024).to_string()).unwrap();
    scenario
}

/// Some card sizes for each system, so that the five cover all; the recursive network with fewer of its 168 passes, to save
/// time.
fn samples(each: usize) -> impl Iterator<Item = (&'static str, Scenario)> {
    SYSTEMS.iter().enumerate().flat_map(move |(at, preset)| {
        (0..each).map(move |next| {
            let gib = CARDS[(at + next * 3 + 1) % CARDS.len()];
            let mut scenario = on_card(preset, gib);
            if *preset == "peptrm" {
                let fewer = "supervision_steps=2,latent_steps=2";
                settings::set(&mut scenario, "dims", fewer).unwrap();
            }
            (*preset, scenario)
        })
    })
}

/// Writes the files, and opens the link in their header, which is the scenario.
#[track_caller]
fn exported(preset: &str, proposed: &Scenario, by: &str) -> Scenario {
    let own = export::own(proposed).unwrap();
    let files = (own.write)(proposed, &Estimate::default());
    let files = files.unwrap_or_else(|problems| panic!("{preset}, {by}: {problems:?}"));
    let script = files.iter().find(|file| file.name == "launch.sh").unwrap();
    let lines = script.contents.lines();
    let mut links = lines.filter_map(|line| line.strip_prefix("# Scenario: "));
    let opened = share::read(links.next().unwrap()).scenario;
    assert_eq!(&opened, proposed, "{preset}, {by}");
    opened
}

/// The exported run needs the memory that the proposal predicted.
#[track_caller]
fn check(preset: &str, proposed: &Scenario, predicted: &Estimate, by: &str) {
    let found = estimate(&exported(preset, proposed, by)).unwrap();
    assert_eq!(found.device, predicted.device, "{preset}, {by}");
    assert_eq!(found.growth, predicted.growth, "{preset}, {by}");
}

/// Runs that some program can be started with.
fn locks() -> Locks {
    let written =
        |target: &export::Target, run: &Scenario| (target.write)(run, &Estimate::default()).is_ok();
    Locks {
        accepts: Some(Accepts::mostly(move |run| {
            export::targets().iter().any(|target| written(target, run))
        })),
        ..Locks::default()
    }
}

/// Every run that plans propose.
fn proposed(plans: &Plans) -> impl Iterator<Item = (&'static str, &Full)> {
    let unlocked = plans.unlock.iter().map(|unlock| &unlock.plan);
    let all = plans.plans.iter().chain(unlocked);
    all.map(|plan| (plan.id.id(), &*plan.full))
}

#[test]
fn moves_and_plans_propose_what_the_program_can_run() {
    for preset in SYSTEMS {
        let scenario = self::preset(preset);
        exported(preset, &scenario, "the preset");
        let mut offered = 0;
        for known in MOVES {
            if let Some(changed) = known.on(&scenario) {
                exported(preset, &changed, known.id);
                offered += 1;
            }
        }
        assert!(offered > 0, "{preset}");
        for gib in CARDS {
            let found = plan(&on_card(preset, gib), locks()).unwrap();
            for (by, full) in proposed(&found) {
                check(preset, &full.scenario, &full.estimate, by);
            }
        }
    }
}

/// Finds a target that writes the run, and opens the link in its files.
#[track_caller]
fn written(proposed: &Scenario, by: &str) -> Scenario {
    let mut refused = Vec::new();
    for target in export::targets() {
        match (target.write)(proposed, &Estimate::default()) {
            Ok(files) => {
                let lines = files.iter().flat_map(|file| file.contents.lines());
                let mut links = lines.filter_map(|line| Some(line.split_once("Scenario: ")?.1));
                let opened = share::read(links.next().unwrap().trim()).scenario;
                assert_eq!(&opened, proposed, "{by}, {}", target.id);
                return opened;
            }
            Err(problems) => refused.extend(problems),
        }
    }
    panic!("{by} of {}: {refused:#?}", proposed.model.id);
}

/// All other presets, each with a card of one of the sizes.
fn everyday() -> impl Iterator<Item = (usize, Scenario)> {
    systems::install();
    let all = presets::all().iter();
    let everyday = all.filter(|preset| !SYSTEMS.contains(&preset.id));
    everyday
        .enumerate()
        .map(|(at, preset)| (at, on_card(preset.id, CARDS[at % CARDS.len()])))
}

#[test]
fn some_target_writes_every_move_of_everyday_runs() {
    let mut proposed = 0;
    for (_, scenario) in everyday() {
        written(&scenario, "the preset");
        for known in MOVES {
            if let Some(changed) = known.on(&scenario) {
                written(&changed, known.id);
                proposed += 1;
            }
        }
    }
    assert!(proposed > 600, "{proposed}");
}

/// Post-training tasks, as changes to a run.
const TASKS: &[&str] = &[
    "task=sft task_head=logits",
    "task=dpo reference=auto",
    "task=dpo task_head=logits",
    "task=dpo task_head=log-softmax lora=on precision=amp-bf16-on-bf16",
    "task=kto",
    "task=kto task_head=log-softmax",
    "task=orpo",
    "task=cpo",
    "task=simpo lora=on precision=amp-bf16-on-bf16",
    "task=reward",
    "task=grpo generations=8 reference=copy",
    "task=grpo generations=8 task_head=logits",
    "task=grpo generations=4 sampler=vllm vllm_share=0.6",
    "task=rloo generations=4",
    "task=rloo generations=8",
    "task=distillation teacher=qwen2.5-1.5b",
];

#[test]
fn some_target_writes_every_move_of_post_training_and_none_needs_more() {
    let mut found: Vec<&str> = Vec::new();
    for task in TASKS {
        let mut scenario = Scenario::default();
        let run = "model=qwen2.5-0.5b gpu=a100-sxm4-80gb seq=512 mb=4 accum=2 precision=bf16 optim=adamw mask=on";
        for word in run.split(' ').chain(task.split(' ')) {
            let (name, value) = word.split_once('=').unwrap();
            settings::set(&mut scenario, name, value).unwrap();
        }
        written(&scenario, task);
        for known in MOVES {
            if let Some(changed) = known.on(&scenario) {
                let opened = written(&changed, known.id);
                if known.never_worse {
                    let needed = |run| estimate(run).unwrap().allocated.expected;
                    assert!(needed(&opened) <= needed(&scenario), "{} {task}", known.id);
                }
                found.push(known.id);
            }
        }
    }
    for id in [
        "fused-head",
        "precomputed-reference",
        "vllm-sleep",
        "smaller-vllm-share",
        "sample-less-at-once",
        "fewer-completions",
    ] {
        assert!(found.contains(&id), "{id} of {found:?}");
    }
}

#[test]
fn some_target_writes_every_plan_and_tier_of_everyday_runs() {
    let mut proposed = 0;
    // Every second one, to save time.
    for (at, scenario) in everyday().step_by(2) {
        let found = plan(&scenario, locks()).unwrap();
        for (by, full) in self::proposed(&found) {
            let opened = written(&full.scenario, by);
            if at % 8 == 0 {
                let predicted = full.estimate.device;
                assert_eq!(estimate(&opened).unwrap().device, predicted, "{by}");
            }
            proposed += 1;
        }
        if at % 4 == 0 {
            for variant in tiers(&scenario, &locks()).unwrap() {
                if let Some(run) = &variant.scenario {
                    written(run, variant.tier.id());
                    proposed += 1;
                }
            }
        }
    }
    assert!(proposed > 60, "{proposed}");
}

#[test]
fn tiers_keep_the_batch_and_can_be_exported() {
    let mut proposed = 0;
    for (preset, scenario) in samples(2) {
        for variant in tiers(&scenario, &locks()).unwrap() {
            let Some(run) = variant.scenario else {
                continue;
            };
            proposed += 1;
            check(preset, &run, &variant.estimate, variant.tier.id());
            let samples = [&run, &scenario].map(Scenario::effective_batch);
            assert_eq!(samples[0], samples[1], "{preset}");
        }
    }
    assert!(proposed > 20, "{proposed}");
}

#[test]
fn each_card_size_gets_a_run_of_the_same_batch_for_every_supported_number_of_gpus() {
    #[track_caller]
    fn rows(preset: &str, size: &str, expected: &[(u32, u64, u64)]) {
        let scenario = self::preset(preset);
        let card = CARDS_BY_SIZE.iter().find(|card| card.size == size);
        let found = on_cards(&scenario, card.unwrap(), &locks()).unwrap();
        let split = |row: &OnCards| {
            let run = row.variant.scenario.as_ref().unwrap();
            check(preset, run, &row.variant.estimate, size);
            assert_eq!(run.effective_batch(), scenario.effective_batch());
            (row.gpus, run.data.micro_batch, run.training.accumulation)
        };
        assert_eq!(found.iter().map(split).collect::<Vec<_>>(), expected);
    }
    rows("dreams", "16", &[(1, 4, 1), (2, 2, 1), (4, 1, 1)]);
    // Its program trains on one card.
    rows("rna-3e-ffi", "48", &[(1, 1, 2)]);
}

#[test]
fn a_large_accumulation_is_predicted_from_few_micro_batches() {
    let scenario = on_card("peptrm", 24);
    let split = |micro_batch, accumulation| {
        let mut run = scenario.clone();
        run.data.micro_batch = micro_batch;
        run.training.accumulation = accumulation;
        estimate(&run).unwrap().allocated.expected
    };
    let [three, four, all] = [split(1, 3), split(1, 4), split(1, 96)];
    assert!(three <= four && four <= all, "{three} {four} {all}");
    // Only the waiting micro-batches' inputs add up.
    assert!(all.get() - three.get() < 1 << 20, "{three} {all}");
    let found = headroom_advice::accumulate(&scenario, 96, Goal::default()).unwrap();
    assert_eq!(found.scenario.map(|run| run.data.micro_batch), Some(48));
}

#[test]
fn documented_figures_are_computed_and_within_three_percent_of_the_audit() {
    let text = headroom_testing::text("docs/systems.md");
    let mut rows = 0;
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, audit, computed, command, _] = cells[..] else {
            continue;
        };
        let (Ok(audit), Ok(computed)) = (audit.parse::<f64>(), computed.parse::<f64>()) else {
            continue;
        };
        let mut words = command.trim_matches('`').split(' ');
        let mut scenario = preset(words.next().unwrap());
        for change in words.filter(|word| *word != "--set") {
            let (name, value) = change.split_once('=').unwrap();
            settings::set(&mut scenario, name, value).unwrap();
        }
        let found = estimate(&scenario).unwrap().allocated.expected.as_gib();
        assert!((found - computed).abs() < 0.006, "{line}: {found}");
        assert!((found / audit - 1.0).abs() <= 0.03, "{line}");
        rows += 1;
    }
    assert!(rows > 25, "{rows}");
}
