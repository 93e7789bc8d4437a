//! The command `tiers`.

use super::super::answer::{Answer, Refusal, band};
use super::super::args::Args;
use super::super::estimate::verdict;
use super::super::what::Given;
use super::cards::cards;
use super::plan::runnable;
use super::{link, of_step, span};
use headroom_advice::{self as strategy, Locks, Variant};
use headroom_base::document::Document;
use headroom_scenario::share;

/// Runs that fill the GPU to given shares.
pub(crate) fn tiers(given: &Given, args: &Args) -> Result<Answer, Refusal> {
    if let Some(sizes) = args.option("cards") {
        return cards(given, args, sizes);
    }
    if args.option("out").is_some() {
        return cards(given, args, "80,48,24,16");
    }
    let found = strategy::tiers(given.scenario(), &locks())?;
    let mut text = String::new();
    // Shares that lead to one run are one row.
    for same in found.chunk_by(|a, b| a.scenario == b.scenario) {
        text.push_str(&line(same));
    }
    let mut rows = Vec::new();
    let mut fits = false;
    for variant in &found {
        fits |= variant.scenario.is_some();
        rows.push(
            Document::new()
                .with("tier", variant.tier.id())
                .with("target", variant.tier.target())
                .with("about", variant.tier.about())
                .with(
                    "micro_batch",
                    variant.scenario.as_ref().map(|run| run.data.micro_batch),
                )
                .with(
                    "accumulation",
                    variant
                        .scenario
                        .as_ref()
                        .map(|run| run.training.accumulation),
                )
                .with("moves", variant.changes())
                .with("device", band(variant.estimate.device))
                .with("seconds", variant.time.as_ref().map(|time| span(time.step)))
                .with("link", variant.scenario.as_ref().map(link)),
        );
    }
    let mut answer = Answer::new(text, &Document::new().with("tiers", Document::List(rows)));
    answer.fits = fits;
    Ok(answer)
}

/// What every tier may propose.
pub(super) fn locks() -> Locks {
    Locks {
        accepts: Some(runnable()),
        ..Locks::default()
    }
}

/// Tiers with one run: "safe to medium, up to 80 %: micro-batch 4 × 16 accumulated, needs …".
fn line(tiers: &[Variant]) -> String {
    let (Some(first), Some(last)) = (tiers.first(), tiers.last()) else {
        return String::new();
    };
    let target = 100.0 * last.tier.target();
    let name = match tiers {
        [one] => one.tier.id().to_string(),
        _ => format!("{} to {}", first.tier.id(), last.tier.id()),
    };
    let mut text = format!("{name}, up to {target:.0} %: ");
    let Some(run) = &first.scenario else {
        text.push_str("no change that Headroom knows reaches this\n");
        return text;
    };
    text.push_str(&format!(
        "micro-batch {} × {} accumulated, {}",
        run.data.micro_batch,
        run.training.accumulation,
        verdict(&first.estimate)
    ));
    if let Some(time) = &first.time {
        text.push_str(&format!(", a step {}", of_step(time)));
    }
    let changes = first.changes();
    if !changes.is_empty() {
        text.push_str(&format!("; with {}", changes.join(", ")));
    }
    text.push_str(&format!("\n  #{}\n", share::write(run)));
    text
}
