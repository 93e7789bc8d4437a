//! The ladder.

use super::super::args::Args;
use super::super::estimate::{band, verdict};
use super::super::{Answer, Refusal, what};
use super::{goal, link, of_step, span};
use crate::document::Document;
use crate::share;
use crate::strategy::{self, Step};

/// The ladder: what to change so that it fits.
pub(in crate::cli) fn ladder(args: &Args) -> Result<Answer, Refusal> {
    let ladder = strategy::ladder(&what::scenario(args)?, goal(args)?)?;
    let mut text = format!("as it is: {}\n", verdict(&ladder.start));
    if let Some(time) = &ladder.start_time {
        text.push_str(&format!("     a step {}\n", of_step(time)));
    }
    for it in &ladder.steps {
        text.push_str(&format!("then {}: {}\n", it.title, verdict(&it.estimate)));
        if let Some(time) = &it.time {
            text.push_str(&format!("     a step {}\n", of_step(time)));
        }
        let cost = it.cost.id();
        text.push_str(&format!(
            "     costs {cost}: speed: {} results: {}\n",
            it.speed, it.quality
        ));
        if !it.caveat.is_empty() {
            text.push_str(&format!("     note: {}\n", it.caveat));
        }
    }
    match ladder.steps.last() {
        _ if !ladder.fits => text.push_str("and nothing more that Headroom knows makes it fit\n"),
        Some(last) => text.push_str(&format!("#{}\n", share::write(&last.scenario))),
        None => {}
    }
    for other in &ladder.alternatives {
        text.push_str(&format!(
            "or: {}, a step {}: #{}\n",
            other.ids.join(", "),
            other.time.expected,
            share::write(&other.scenario)
        ));
    }
    if !ladder.exhaustive {
        text.push_str("(not every set of changes was tried: a shorter way may exist)\n");
    }
    let alternatives = ladder.alternatives.iter().map(|it| {
        let ids = it
            .ids
            .iter()
            .map(|id| (*id).to_string())
            .collect::<Vec<_>>();
        Document::new()
            .with("moves", ids)
            .with("allocated", it.peak)
            .with("seconds", span(it.time))
            .with("link", link(&it.scenario))
    });
    let document = Document::new()
        .with("device", band(ladder.start.device))
        .with(
            "seconds",
            ladder.start_time.as_ref().map(|it| span(it.step)),
        )
        .with(
            "steps",
            Document::List(ladder.steps.iter().map(step).collect()),
        )
        .with("alternatives", Document::List(alternatives.collect()))
        .with("exhaustive", ladder.exhaustive)
        .with("fits", ladder.fits);
    let mut answer = Answer::new(text, &document);
    answer.fits = ladder.fits;
    Ok(answer)
}

fn step(it: &Step) -> Document {
    Document::new()
        .with("id", it.id)
        .with("title", it.title.as_str())
        .with("cost", it.cost.id())
        .with("speed", it.speed)
        .with("quality", it.quality)
        .with("source", it.source)
        .with("caveat", it.caveat)
        .with("device", band(it.estimate.device))
        .with("seconds", it.time.as_ref().map(|it| span(it.step)))
        .with("fits", it.estimate.fits)
        .with("link", link(&it.scenario))
}
