//! Tiers.

use super::super::args::Args;
use super::super::estimate::{band, verdict};
use super::super::{Answer, Refusal, what};
use super::{link, of_step, span};
use crate::document::Document;
use crate::share;
use crate::strategy;

/// Runs that fill the card to given parts.
pub(in crate::cli) fn tiers(args: &Args) -> Result<Answer, Refusal> {
    let mut text = String::new();
    let mut rows = Vec::new();
    let mut fits = false;
    for it in strategy::tiers(&what::scenario(args)?)? {
        let id = it.tier.id();
        let target = 100.0 * it.tier.target();
        text.push_str(&format!("{id:<11} up to {target:.0} %: "));
        let moves: Vec<String> = it
            .ladder
            .iter()
            .flat_map(|ladder| &ladder.steps)
            .map(|step| step.id.to_string())
            .collect();
        match &it.scenario {
            Some(run) => {
                fits = true;
                text.push_str(&format!(
                    "micro-batch {} × {} accumulated, {}",
                    run.data.micro_batch,
                    run.training.accumulation,
                    verdict(&it.estimate)
                ));
                if let Some(time) = &it.time {
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
                .with("target", it.tier.target())
                .with("about", it.tier.about())
                .with(
                    "micro_batch",
                    it.scenario.as_ref().map(|it| it.data.micro_batch),
                )
                .with(
                    "accumulation",
                    it.scenario.as_ref().map(|it| it.training.accumulation),
                )
                .with("moves", moves)
                .with("device", band(it.estimate.device))
                .with("seconds", it.time.as_ref().map(|it| span(it.step)))
                .with("link", it.scenario.as_ref().map(link)),
        );
    }
    let mut answer = Answer::new(text, &Document::new().with("tiers", Document::List(rows)));
    answer.fits = fits;
    Ok(answer)
}
