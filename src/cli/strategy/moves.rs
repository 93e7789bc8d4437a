//! Moves and folklore.

use super::super::args::Args;
use super::super::convert::asked_target;
use super::super::estimate::{band, verdict};
use super::super::{Answer, Refusal, what};
use super::link;
use crate::document::Document;
use crate::estimate::estimate as predict;
use crate::export::{self, Change};
use crate::strategy::{self, FOLKLORE, MOVES};

/// Every move and what it would do to this run, computed; and folklore.
pub(in crate::cli) fn moves(args: &Args) -> Result<Answer, Refusal> {
    let scenario = what::scenario(args)?;
    let before = predict(&scenario)?;
    let target = args.option("target").map(asked_target).transpose()?;
    let mut text = format!("as it is: {}\n\n", verdict(&before));
    let mut rows = Vec::new();
    for it in MOVES {
        let mut row = Document::new()
            .with("id", it.id)
            .with("title", it.title)
            .with("what", it.what)
            .with("needs", it.needs)
            .with("cost", it.cost.id())
            .with("speed", it.speed)
            .with("quality", it.quality)
            .with("source", it.source)
            .with("caveat", it.caveat)
            .with("code", it.code);
        let effect = strategy::effect(&scenario, it)?;
        match &effect {
            Some(effect) => {
                let saved = 100.0 * effect.saved;
                let faster = effect.slower.map_or(String::new(), |slower| {
                    format!(", a step {:+.0} %", 100.0 * slower)
                });
                let word = if effect.saved < 0.0 { "adds" } else { "saves" };
                text.push_str(&format!(
                    "{:<24} {word} {:>5.1} % -> {}{faster}\n",
                    it.id,
                    saved.abs(),
                    effect.estimate.device.expected
                ));
                let programs = export::expressing(&scenario, &effect.scenario);
                let ids: Vec<String> = programs.iter().map(|program| program.id.into()).collect();
                if let Some(target) = target {
                    let lines = in_words(&target.change(&scenario, &effect.scenario));
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
    text.push_str("\nnot offered, because it does something else:\n");
    let mut folklore = Vec::new();
    for it in FOLKLORE {
        text.push_str(&format!("{}: {}\n", it.title, it.truth));
        folklore.push(
            Document::new()
                .with("id", it.id)
                .with("title", it.title)
                .with("claim", it.claim)
                .with("truth", it.truth)
                .with("source", it.source),
        );
    }
    let document = Document::new()
        .with("moves", Document::List(rows))
        .with("folklore", Document::List(folklore));
    Ok(Answer::new(text, &document))
}

/// How a target's files follow a move, line by line.
fn in_words(change: &Change) -> Vec<String> {
    match change {
        Change::Lines { removed, added } => {
            let removed = removed.iter().map(|line| format!("- {line}"));
            removed
                .chain(added.iter().map(|line| format!("+ {line}")))
                .collect()
        }
        Change::Enabled => vec!["can run this only with the move".into()],
        Change::Unsaid => vec!["has no setting for it".into()],
        Change::Refused(problems) => problems.iter().map(|it| format!("cannot: {it}")).collect(),
    }
}
