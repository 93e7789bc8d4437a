//! Plans for runs that people ask about, and what holds for each plan.

use super::{Locks, Plan, PlanId, Plans, Results, plan};
use headroom_core::estimate::{Fit, Prediction};
use headroom_scenario::{Scenario, settings};

fn scenario(run: &str) -> Scenario {
    let mut scenario = Scenario::default();
    for word in run.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap();
        settings::set(&mut scenario, name, value).unwrap();
    }
    scenario
}

/// What is promised of every plan.
#[track_caller]
fn holds(run: &Scenario, plans: &Plans, most: Results) {
    assert!(plans.plans.len() <= 3);
    for plan in &plans.plans {
        lawful(run, plans, plan, most);
    }
    let fastest = plans.find(PlanId::Fastest).map(|plan| plan.full.seconds);
    for plan in &plans.plans {
        assert!(fastest.is_some_and(|fastest| fastest <= plan.full.seconds * 1.01));
    }
}

#[track_caller]
fn lawful(run: &Scenario, plans: &Plans, plan: &Plan, most: Results) {
    let reached = &plan.full.scenario;
    assert!(plan.full.fits() && plan.results <= most, "{:?}", plan.id);
    assert_eq!(reached.effective_batch(), run.effective_batch());
    assert_eq!(reached.check(), vec![]);
    // Applying a plan gives exactly what it says.
    let applied = Prediction::new(reached.clone());
    assert_eq!(applied.estimate().unwrap(), &plan.full.estimate);
    assert_eq!(applied.step_time().ok(), plan.full.time);
    let mut before = plans.now.estimate.device.expected + plans.now.estimate.growth;
    let mut seconds = plans.now.seconds.unwrap();
    for change in &plan.changes {
        let (after, then) = (change.after.device(), change.after.seconds);
        assert!(
            after < before || then < seconds,
            "{:?} {}: {before} {seconds} to {after} {then}",
            plan.id,
            change.id
        );
        (before, seconds) = (after, then);
    }
    match plan.changes.last() {
        Some(last) => assert_eq!(&last.after.scenario, reached),
        None => assert_eq!(reached, run),
    }
}

/// The ids of a plan's changes.
#[track_caller]
fn check(run: &str, id: PlanId, expected: &[&str]) {
    let run = scenario(run);
    let plans = plan(&run, Locks::default()).unwrap();
    holds(&run, &plans, Results::SameBatch);
    let found = plans.find(id).unwrap();
    let ids: Vec<&str> = found
        .changes
        .iter()
        .map(|change| change.id.as_str())
        .collect();
    assert_eq!(ids, expected, "{:?}", found.full.device());
}

#[test]
fn one_gpu_gets_smaller_batches_checkpoints_and_kernels() {
    let small = "model=llama-3.2-1b dims=layers=4 seq=1024 gpu=rtx-4090";
    // It fits surely, and nothing is faster by more than what an exact answer is worth.
    let run = scenario(&format!(
        "{small} mb=1 mem=24000 optim=adamw-fused kernels=liger"
    ));
    let plans = plan(&run, Locks::default()).unwrap();
    assert_eq!(plans.now.estimate.fit(), Some(Fit::Fits));
    holds(&run, &plans, Results::SameBatch);
    check(
        &format!("{small} mb=16 mem=14500"),
        PlanId::Fewest,
        &["micro-batch"],
    );
}

#[test]
fn several_gpus_shard_before_they_do_anything_else() {
    let run = "model=qwen2.5-7b gpu=h100-sxm5-80gb gpus=8 mb=4 seq=4096";
    check(run, PlanId::Fewest, &["fsdp2", "micro-batch"]);
}

/// Weights that stay gathered seem to fit, and do not: the allocator holds more. Slower layouts are tried then.
#[test]
fn slower_layouts_are_tried_if_the_best_do_not_fit() {
    let run = "model=llama-2-7b gpu=rtx-4090-24gb gpus=4 mb=1 seq=2048 precision=bf16";
    let locks = Locks {
        kept: settings::find("parallel.tp").into_iter().collect(),
        ..Locks::default()
    };
    let plans = plan(&scenario(run), locks).unwrap();
    let fastest = plans.find(PlanId::Fastest).unwrap();
    assert!(fastest.full.scenario.parallel.reshard);
}

#[test]
fn what_is_kept_is_kept() {
    let run = scenario("model=llama-3.2-1b dims=layers=4 seq=1024 gpu=rtx-4090 mb=16 mem=12000");
    let kept: Vec<_> = ["training.optimizer", "training.checkpointing"]
        .into_iter()
        .filter_map(settings::find)
        .collect();
    for most in [Results::Identical, Results::Rounding, Results::SameBatch] {
        let locks = Locks {
            most,
            kept: kept.clone(),
            ..Locks::default()
        };
        let plans = plan(&run, locks).unwrap();
        for plan in &plans.plans {
            let reached = &plan.full.scenario;
            assert_eq!(reached.training.optimizer, run.training.optimizer);
            assert_eq!(reached.training.checkpointing, run.training.checkpointing);
            assert!(plan.results <= most.max(Results::SameBatch));
        }
    }
}

#[test]
fn what_must_be_unlocked_is_named_only_if_nothing_fits() {
    let run = scenario("model=llama-3.2-1b seq=512 gpu=rtx-4090 mb=1 mem=6000");
    let plans = plan(&run, Locks::default()).unwrap();
    assert!(plans.plans.is_empty());
    let ids: Vec<&str> = plans.unlock.iter().map(|row| row.id.as_str()).collect();
    assert!(ids.contains(&"lora"), "{ids:?}");
    for row in &plans.unlock {
        assert!(row.plan.full.fits() && row.plan.results == Results::Changes);
    }
    let free = Locks {
        most: Results::Changes,
        ..Locks::default()
    };
    let plans = plan(&run, free).unwrap();
    holds(&run, &plans, Results::Changes);
    assert!(plans.fits() && plans.unlock.is_empty());
}
