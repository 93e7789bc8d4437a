//! The command `moves`: moves and folklore.

use super::super::answer::{Answer, Refusal, band};
use super::super::args::Args;
use super::super::convert::find_target;
use super::super::estimate::verdict;
use super::super::what::Given;
use super::link;
use headroom_advice::{self as strategy, FOLKLORE, MOVES};
use headroom_base::document::Document;
use headroom_base::units::Bytes;
use headroom_core::estimate::{Estimate, Prediction};
use headroom_io::export::{self, Change};

/// The computed effect of every move on this run, and folklore.
pub(crate) fn moves(given: &Given, args: &Args) -> Result<Answer, Refusal> {
    let before = Prediction::new(given.scenario().clone());
    let scenario = before.scenario();
    let target = args.option("target").map(find_target).transpose()?;
    let mut text = format!("as it is: {}\n\n", verdict(before.estimate()?));
    let mut rows = Vec::new();
    for change in MOVES {
        let mut row = Document::new()
            .with("id", change.id)
            .with("title", change.title)
            .with("what", change.what)
            .with("needs", change.needs)
            .with("cost", change.cost.id())
            .with("speed", change.speed)
            .with("quality", change.quality)
            .with("source", change.source)
            .with("caveat", change.caveat)
            .with("code", change.code);
        let effect = strategy::effect(&before, change)?;
        match &effect {
            Some(effect) => {
                let saved = 100.0 * effect.saved;
                let faster = effect.slower.map_or(String::new(), |slower| {
                    format!(", {:+.0} % step time", 100.0 * slower)
                });
                let word = if effect.saved < 0.0 { "adds" } else { "saves" };
                let Estimate { device, growth, .. } = &effect.estimate;
                let by_the_end = if *growth > Bytes::ZERO {
                    " by the end"
                } else {
                    ""
                };
                text.push_str(&format!(
                    "{:<24} {word} {:>5.1} % -> {}{by_the_end}{faster}\n",
                    change.id,
                    saved.abs(),
                    device.expected + *growth
                ));
                let programs = export::expressing(scenario, &effect.scenario);
                let ids: Vec<String> = programs.iter().map(|program| program.id.into()).collect();
                if let Some(target) = target {
                    let lines = diff_lines(&target.change(scenario, &effect.scenario));
                    for line in &lines {
                        text.push_str(&format!("    {line}\n"));
                    }
                    row = row.with("export", lines);
                }
                row = row.with("programs", ids);
                row = row
                    .with("saved", effect.saved)
                    .with("slower", effect.slower)
                    .with("device", band(effect.estimate.device))
                    .with("fits", effect.estimate.fits)
                    .with("link", link(&effect.scenario));
            }
            None => row = row.with("saved", Document::Null),
        }
        rows.push(row);
    }
    text.push_str("\nfolklore that does not do what it claims:\n");
    let mut folklore = Vec::new();
    for tale in FOLKLORE {
        text.push_str(&format!("{}: {}\n", tale.title, tale.truth));
        folklore.push(
            Document::new()
                .with("id", tale.id)
                .with("title", tale.title)
                .with("claim", tale.claim)
                .with("truth", tale.truth)
                .with("source", tale.source),
        );
    }
    let document = Document::new()
        .with("moves", Document::List(rows))
        .with("folklore", Document::List(folklore));
    Ok(Answer::new(text, &document))
}

/// How a move changes a target's files, line by line.
fn diff_lines(change: &Change) -> Vec<String> {
    match change {
        Change::Lines { removed, added } => {
            let removed = removed.iter().map(|line| format!("- {line}"));
            removed
                .chain(added.iter().map(|line| format!("+ {line}")))
                .collect()
        }
        Change::Enabled => vec!["can run this only with the move".into()],
        Change::NotExpressed => vec!["has no setting for it".into()],
        Change::Refused(problems) => problems
            .iter()
            .map(|problem| format!("cannot: {problem}"))
            .collect(),
    }
}
