//! The command `ladder`.

use super::super::answer::{Answer, Refusal, band};
use super::super::args::Args;
use super::super::estimate::verdict;
use super::super::what;
use super::{goal, link, of_step, span};
use headroom_advice::{self as strategy, Rung};
use headroom_base::document::Document;
use headroom_scenario::share;

/// The fewest changes that make the run fit.
pub(crate) fn ladder(args: &Args) -> Result<Answer, Refusal> {
    let ladder = strategy::ladder(&what::scenario(args)?, goal(args)?)?;
    let mut text = format!("as it is: {}\n", verdict(&ladder.start));
    if let Some(time) = &ladder.start_time {
        text.push_str(&format!("     a step {}\n", of_step(time)));
    }
    for step in &ladder.steps {
        text.push_str(&format!(
            "then {}: {}\n",
            step.title,
            verdict(&step.estimate)
        ));
        if let Some(time) = &step.time {
            text.push_str(&format!("     a step {}\n", of_step(time)));
        }
        let cost = step.cost.id();
        text.push_str(&format!(
            "     costs {cost}: speed: {} results: {}\n",
            step.speed, step.quality
        ));
        if !step.caveat.is_empty() {
            text.push_str(&format!("     note: {}\n", step.caveat));
        }
    }
    match ladder.steps.last() {
        _ if !ladder.fits => {
            text.push_str("and no further change that Headroom knows makes it fit\n");
        }
        Some(last) => text.push_str(&format!("#{}\n", share::write(&last.scenario))),
        None => {}
    }
    for other in &ladder.alternatives {
        text.push_str(&format!(
            "or: {}, {} per step: #{}\n",
            other.ids.join(", "),
            other.time.expected,
            share::write(&other.scenario)
        ));
    }
    if !ladder.exhaustive {
        text.push_str("(not every set of changes was tried: fewer may be enough)\n");
    }
    let alternatives = ladder.alternatives.iter().map(|route| {
        let ids = route
            .ids
            .iter()
            .map(|id| (*id).to_string())
            .collect::<Vec<_>>();
        Document::new()
            .with("moves", ids)
            .with("allocated", route.peak)
            .with("seconds", span(route.time))
            .with("link", link(&route.scenario))
    });
    let document = Document::new()
        .with("device", band(ladder.start.device))
        .with(
            "seconds",
            ladder.start_time.as_ref().map(|time| span(time.step)),
        )
        .with(
            "steps",
            Document::List(ladder.steps.iter().map(rung).collect()),
        )
        .with("alternatives", Document::List(alternatives.collect()))
        .with("exhaustive", ladder.exhaustive)
        .with("fits", ladder.fits);
    let mut answer = Answer::new(text, &document);
    answer.fits = ladder.fits;
    Ok(answer)
}

fn rung(rung: &Rung) -> Document {
    Document::new()
        .with("id", rung.id)
        .with("title", rung.title.as_str())
        .with("cost", rung.cost.id())
        .with("speed", rung.speed)
        .with("quality", rung.quality)
        .with("source", rung.source)
        .with("caveat", rung.caveat)
        .with("device", band(rung.estimate.device))
        .with("seconds", rung.time.as_ref().map(|time| span(time.step)))
        .with("fits", rung.estimate.fits)
        .with("link", link(&rung.scenario))
}
