//! Layouts of several GPUs.

use super::super::answer::{Answer, Refusal, band};
use super::super::args::Args;
use super::super::estimate::verdict;
use super::super::what;
use super::{goal, link, number, span};
use headroom_advice::{self as strategy, Layout};
use headroom_base::document::Document;
use headroom_scenario::share;
use headroom_scenario::{Scenario, Schedule};

/// The fastest layout that fits, the front of memory against time, and the fewest GPUs.
pub(crate) fn layout(args: &Args) -> Result<Answer, Refusal> {
    let scenario = what::scenario(args)?;
    let own = u64::from(scenario.hardware.gpus);
    let gpus = u32::try_from(number(args, "gpus", own)?.min(100_000)).unwrap_or(u32::MAX);
    let found = strategy::layouts(&scenario, gpus, goal(args)?)?;
    let mut text = match &found.best {
        Some(best) => format!(
            "fastest that fits on {gpus} GPUs: {}; a step {} ({} to {}), {:.0} tokens/s; {}\n#{}\n",
            words(&best.scenario),
            best.time.expected,
            best.time.low,
            best.time.high,
            tokens(best),
            verdict(&best.estimate),
            share::write(&best.scenario)
        ),
        None => format!("nothing that Headroom knows makes it fit on {gpus} GPUs\n"),
    };
    text.push_str("\nless memory for more time:\n");
    for layout in &found.front {
        let fits = if layout.fits { "" } else { "  does not fit" };
        text.push_str(&format!(
            "{:>10}  {:>8}  {}{fits}\n",
            layout.estimate.device.expected.to_string(),
            layout.time.expected.to_string(),
            words(&layout.scenario)
        ));
    }
    text.push_str(&match &found.fewest {
        Some(fewest) => format!(
            "\nfewest GPUs, among powers of two: {} ({}), {}\n",
            fewest.scenario.hardware.gpus,
            words(&fewest.scenario),
            verdict(&fewest.estimate)
        ),
        None => String::from("\nno power of two up to this number of GPUs trains it\n"),
    });
    text.push_str(&format!(
        "{} layouts were run, {} of them need too much memory; {} were left out: the model or the batch rules them out, or they are not modelled\n",
        found.tried, found.too_large, found.left_out
    ));
    let document = Document::new()
        .with("best", found.best.as_ref().map(of_layout))
        .with(
            "front",
            Document::List(found.front.iter().map(of_layout).collect()),
        )
        .with("fewest", found.fewest.as_ref().map(of_layout))
        .with("tried", found.tried)
        .with("too_large", found.too_large)
        .with("left_out", found.left_out);
    let mut answer = Answer::new(text, &document);
    answer.fits = found.best.is_some();
    Ok(answer)
}

fn of_layout(layout: &Layout) -> Document {
    let scenario = &layout.scenario;
    let parallel = &scenario.parallel;
    Document::new()
        .with("gpus", scenario.hardware.gpus)
        .with("nodes", scenario.hardware.nodes)
        .with("strategy", parallel.strategy.id())
        .with("reshard", parallel.reshard)
        .with("copies", scenario.replicas())
        .with("tp", parallel.tp)
        .with("pp", parallel.pp)
        .with("cp", parallel.cp)
        .with("schedule", parallel.schedule.id())
        .with("micro_batch", scenario.data.micro_batch)
        .with("accumulation", scenario.training.accumulation)
        .with("checkpointing", scenario.training.checkpointing.id())
        .with("device", band(layout.estimate.device))
        .with("seconds", span(layout.time))
        .with("tokens_per_second", tokens(layout))
        .with("fits", layout.fits)
        .with("link", link(scenario))
}

/// Of all GPUs together.
fn tokens(layout: &Layout) -> f64 {
    let scenario = &layout.scenario;
    let all = scenario.effective_batch() as f64 * scenario.data.sequence as f64;
    all / layout.time.expected.get().max(f64::MIN_POSITIVE)
}

/// "fsdp2 × 8, tp 8, pp 4, micro-batch 1 × 16, checkpointing layers".
fn words(scenario: &Scenario) -> String {
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
