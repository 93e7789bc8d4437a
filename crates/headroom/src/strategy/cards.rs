//! The run on each GPU size, and scripts that start it there.

use super::super::answer::{Answer, Refusal, band};
use super::super::args::Args;
use super::super::convert::write_all;
use super::super::what::Given;
use super::tiers::locks;
use super::{link, span};
use headroom_advice::{self as strategy, CARDS, Card, OnCards};
use headroom_base::document::Document;
use headroom_core::estimate::Estimate;
use headroom_io::export;
use headroom_scenario::{Problem, Scenario};
use headroom_systems::{Tier, tier_script};

/// A table of GPU sizes; with `--out` a script for each size, and the program's files for each number of GPUs.
pub(super) fn cards(given: &Given, args: &Args, sizes: &str) -> Result<Answer, Refusal> {
    let scenario = given.scenario();
    let mut text = format!(
        "{samples} samples in each optimizer step\n\n\
         {:>6}  {:>4}  {:<15} {:<26} {:<21} {:<9} {}\n",
        "card",
        "GPUs",
        "micro × accum.",
        "needs",
        "status",
        "step time",
        "with",
        samples = scenario.effective_batch()
    );
    let mut rows = Vec::new();
    let mut written = String::new();
    let mut fits = false;
    for card in sizes_named(sizes)? {
        let found = strategy::on_cards(scenario, card, &locks())?;
        for row in &found {
            fits |= row.variant.scenario.is_some();
            text.push_str(&line(row));
            rows.push(document(row));
        }
        if args.option("out").is_some() {
            write(args, card, &found, &mut written)?;
        }
    }
    if !written.is_empty() {
        text.push_str(&format!("\n{written}"));
    }
    let mut answer = Answer::new(text, &Document::new().with("cards", Document::List(rows)));
    answer.fits = fits;
    Ok(answer)
}

fn sizes_named(sizes: &str) -> Result<Vec<&'static Card>, Refusal> {
    if sizes == "all" {
        return Ok(CARDS.iter().collect());
    }
    let one = |size: &str| {
        let size = size.trim();
        let found = CARDS.iter().find(|card| card.size == size);
        found.ok_or_else(|| {
            let known: Vec<&str> = CARDS.iter().map(|card| card.size).collect();
            Problem::new(
                "--cards",
                size,
                format!("all, or some of {}", known.join(",")),
            )
            .into()
        })
    };
    sizes.split(',').map(one).collect()
}

/// The memory of the run, of the usable memory.
fn needs(estimate: &Estimate) -> String {
    let needed = estimate.device.expected + estimate.growth;
    match estimate.usable {
        Some(usable) => format!("{needed} of {usable}"),
        None => needed.to_string(),
    }
}

fn status(row: &OnCards) -> String {
    let words = row
        .variant
        .estimate
        .fit()
        .map_or("unknown", |fit| fit.label());
    match row.variant.scenario {
        Some(_) => words.into(),
        None => "does not fit".into(),
    }
}

fn split(run: &Scenario) -> String {
    format!("{} × {}", run.data.micro_batch, run.training.accumulation)
}

fn line(row: &OnCards) -> String {
    let run = row.variant.scenario.as_ref();
    let step = row
        .variant
        .time
        .as_ref()
        .map(|time| time.step.expected.to_string());
    let text = format!(
        "{:>3} GB  {:>4}  {:<15} {:<26} {:<21} {:<9} {}",
        row.card.size,
        row.gpus,
        run.map_or_else(|| "-".into(), split),
        needs(&row.variant.estimate),
        status(row),
        step.unwrap_or_else(|| "-".into()),
        row.variant.changes().join(", ")
    );
    format!("{}\n", text.trim_end())
}

fn document(row: &OnCards) -> Document {
    let run = row.variant.scenario.as_ref();
    let time = row.variant.time.as_ref();
    Document::new()
        .with("card", row.card.size)
        .with("gpu", row.card.gpu)
        .with("gpus", row.gpus)
        .with("micro_batch", run.map(|run| run.data.micro_batch))
        .with("accumulation", run.map(|run| run.training.accumulation))
        .with("moves", row.variant.changes())
        .with("device", band(row.variant.estimate.device))
        .with("status", status(row))
        .with("seconds", time.map(|time| span(time.step)))
        .with("link", run.map(link))
}

/// The script for a GPU size, and a folder of files for each number of GPUs.
fn write(args: &Args, card: &Card, rows: &[OnCards], text: &mut String) -> Result<(), Refusal> {
    let mut cases = Vec::new();
    for row in rows {
        let Some(run) = &row.variant.scenario else {
            continue;
        };
        let Some(target) = export::own(run) else {
            let expected = "for --out, one of the systems with their own program";
            return Err(Problem::new("model.id", &run.model.id, expected).into());
        };
        let files = (target.write)(run, &row.variant.estimate)?;
        let folder = format!("{}gb-{}", card.size, row.gpus);
        write_all(args, &folder, &files, text)?;
        let step = row
            .variant
            .time
            .as_ref()
            .map(|time| format!(", step time {}", time.step.expected));
        let about = format!(
            "{}: needs {}, {}{}",
            split(run),
            needs(&row.variant.estimate),
            status(row),
            step.unwrap_or_default()
        );
        cases.push(Tier {
            gpus: row.gpus,
            folder,
            about,
        });
    }
    if let Some(script) = tier_script(card.size, &cases) {
        write_all(args, "", &[script], text)?;
    }
    Ok(())
}
