//! Tiers.

use super::super::answer::{Answer, Refusal, band};
use super::super::args::Args;
use super::super::estimate::verdict;
use super::super::what;
use super::cards::cards;
use super::{link, of_step, span};
use headroom_advice::{self as strategy, Allowed};
use headroom_base::document::Document;
use headroom_scenario::share;

/// Runs that fill the card to given parts.
pub(crate) fn tiers(args: &Args) -> Result<Answer, Refusal> {
    if let Some(sizes) = args.option("cards") {
        return cards(args, sizes);
    }
    if args.option("out").is_some() {
        return cards(args, "80,48,24,16");
    }
    let mut text = String::new();
    let mut rows = Vec::new();
    let mut fits = false;
    for variant in strategy::tiers(&what::scenario(args)?, Allowed::ALL)? {
        let id = variant.tier.id();
        let target = 100.0 * variant.tier.target();
        text.push_str(&format!("{id:<11} up to {target:.0} %: "));
        let moves: Vec<String> = variant
            .ladder
            .iter()
            .flat_map(|ladder| &ladder.steps)
            .map(|step| step.id.to_string())
            .collect();
        match &variant.scenario {
            Some(run) => {
                fits = true;
                text.push_str(&format!(
                    "micro-batch {} × {} accumulated, {}",
                    run.data.micro_batch,
                    run.training.accumulation,
                    verdict(&variant.estimate)
                ));
                if let Some(time) = &variant.time {
                    text.push_str(&format!(", a step {}", of_step(time)));
                }
                if !moves.is_empty() {
                    text.push_str(&format!("; with {}", moves.join(", ")));
                }
                text.push_str(&format!("\n            #{}\n", share::write(run)));
            }
            None => text.push_str("nothing that Headroom knows gets there\n"),
        }
        rows.push(
            Document::new()
                .with("tier", id)
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
                .with("moves", moves)
                .with("device", band(variant.estimate.device))
                .with("seconds", variant.time.as_ref().map(|time| span(time.step)))
                .with("link", variant.scenario.as_ref().map(link)),
        );
    }
    let mut answer = Answer::new(text, &Document::new().with("tiers", Document::List(rows)));
    answer.fits = fits;
    Ok(answer)
}
