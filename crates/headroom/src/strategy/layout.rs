//! The command `layout`: the planner's runs on several GPUs, spoken of as layouts.

use super::super::answer::{Answer, Refusal, band};
use super::super::args::Args;
use super::super::estimate::verdict;
use super::super::what::Given;
use super::plan::{runnable, seconds};
use super::{goal, link, number};
use headroom_advice::planner::{self, Plan};
use headroom_advice::{Locks, PlanId};
use headroom_base::document::Document;
use headroom_base::units::Seconds;
use headroom_scenario::{Problem, Scenario, Schedule};

/// The plans on a number of GPUs, and the fewest GPUs on which some plan fits.
pub(crate) fn layout(given: &Given, args: &Args) -> Result<Answer, Refusal> {
    let scenario = given.scenario();
    let own = u64::from(scenario.hardware.gpus);
    let gpus = u32::try_from(number(args, "gpus", own)?.min(100_000)).unwrap_or(u32::MAX);
    let locks = Locks {
        goal: goal(args)?,
        accepts: Some(runnable()),
        ..Locks::default()
    };
    let run = planner::on_gpus(scenario, gpus).ok_or_else(|| {
        let expected = format!(
            "a number that divides the {} samples of an update",
            scenario.effective_batch()
        );
        Problem::new("--gpus", gpus.to_string(), expected)
    })?;
    let plans = planner::plan(&run, locks.clone())?;
    let best = plans.find(PlanId::Fastest);
    let mut text = String::new();
    if best.is_none() {
        text.push_str(&format!(
            "no layout that Headroom knows fits on {gpus} GPUs\n"
        ));
    }
    for plan in &plans.plans {
        text.push_str(&format!(
            "{} on {gpus} GPUs: {}\n{}\n",
            plan.id.label(),
            label(&plan.full.scenario),
            line(plan)
        ));
    }
    let fewest = planner::fewest_gpus(&run, gpus, &locks);
    text.push_str(&match &fewest {
        Some(fewest) => format!(
            "fewest GPUs, among powers of two: {}: {}\n{}",
            fewest.full.scenario.hardware.gpus,
            label(&fewest.full.scenario),
            line(fewest)
        ),
        None => String::from("no power of two up to this number of GPUs can train it\n"),
    });
    let all = plans.plans.iter().map(of_plan).collect();
    let document = Document::new()
        .with("best", best.map(of_plan))
        .with("plans", Document::List(all))
        .with("fewest", fewest.as_ref().map(of_plan));
    let mut answer = Answer::new(text, &document);
    answer.fits = best.is_some();
    Ok(answer)
}

/// What it needs, how fast it is, and its link.
fn line(plan: &Plan) -> String {
    let speed = seconds(&plan.full).map(|seconds| {
        let tokens = tokens(plan).unwrap_or_default();
        format!("; {} per step, {tokens:.0} tokens/s", Seconds::new(seconds))
    });
    format!(
        "  {}{}\n  {}\n",
        verdict(&plan.full.estimate),
        speed.unwrap_or_default(),
        link(&plan.full.scenario)
    )
}

fn of_plan(plan: &Plan) -> Document {
    let scenario = &plan.full.scenario;
    let parallel = &scenario.parallel;
    Document::new()
        .with("id", plan.id.id())
        .with("gpus", scenario.hardware.gpus)
        .with("nodes", scenario.hardware.nodes)
        .with("strategy", parallel.strategy.id())
        .with("reshard", parallel.reshard)
        .with("copies", scenario.replicas())
        .with("tp", parallel.tp)
        .with("pp", parallel.pp)
        .with("cp", parallel.cp)
        .with("ep", parallel.ep)
        .with("schedule", parallel.schedule.id())
        .with("micro_batch", scenario.data.micro_batch)
        .with("accumulation", scenario.training.accumulation)
        .with("checkpointing", scenario.training.checkpointing.id())
        .with("device", band(plan.full.estimate.device))
        .with("step_seconds", seconds(&plan.full))
        .with("tokens_per_second", tokens(plan))
        .with("fits", plan.full.fits())
        .with("link", link(scenario))
}

/// Of all GPUs together.
fn tokens(plan: &Plan) -> Option<f64> {
    let scenario = &plan.full.scenario;
    let all = scenario.effective_batch() as f64 * scenario.row_length() as f64;
    Some(all / seconds(&plan.full)?.max(f64::MIN_POSITIVE))
}

/// "fsdp2 × 8, tp 8, pp 4, micro-batch 1 × 16, checkpointing layers".
fn label(scenario: &Scenario) -> String {
    let parallel = &scenario.parallel;
    let mut parts = Vec::new();
    let copies = scenario.replicas();
    if copies > 1 || parallel.cp > 1 {
        let keeps = if parallel.reshard {
            ""
        } else {
            " without resharding"
        };
        parts.push(format!("{} × {copies}{keeps}", parallel.strategy.id()));
    }
    for (name, degree) in [
        ("tp", parallel.tp),
        ("cp", parallel.cp),
        ("pp", parallel.pp),
        ("ep", parallel.ep),
    ] {
        if degree > 1 {
            parts.push(format!("{name} {degree}"));
        }
    }
    if parallel.pp > 1 && parallel.schedule != Schedule::OneForwardOneBackward {
        parts.push(parallel.schedule.id().into());
    }
    parts.push(format!(
        "micro-batch {} × {}",
        scenario.data.micro_batch, scenario.training.accumulation
    ));
    parts.push(format!(
        "checkpointing {}",
        scenario.training.checkpointing.id()
    ));
    parts.join(", ")
}
