//! The run on each size of card, and scripts that start it there.

use super::super::answer::{Answer, Refusal, band};
use super::super::args::Args;
use super::super::convert::write_all;
use super::super::what;
use super::{link, span};
use headroom_advice::{self as strategy, CARDS, Card, OnCards};
use headroom_base::document::Document;
use headroom_core::estimate::Estimate;
use headroom_io::export;
use headroom_scenario::{Problem, Scenario};

/// A table of cards; with `--out` a script for each size, and the program's files for each number of cards below it.
pub(super) fn cards(args: &Args, sizes: &str) -> Result<Answer, Refusal> {
    let scenario = what::scenario(args)?;
    let mut text = format!(
        "{samples} samples in each optimizer step\n\n\
         {:>6}  {:>4}  {:<15} {:<26} {:<21} {:<9} {}\n",
        "card",
        "GPUs",
        "micro × accum.",
        "needs",
        "status",
        "a step",
        "with",
        samples = scenario.effective_batch()
    );
    let mut rows = Vec::new();
    let mut written = String::new();
    let mut fits = false;
    for card in asked(sizes)? {
        let found = strategy::on_cards(&scenario, card)?;
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

fn asked(sizes: &str) -> Result<Vec<&'static Card>, Refusal> {
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

/// What the run takes of its card.
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
        .map_or("unknown", |fit| fit.words());
    match row.variant.scenario {
        Some(_) => words.into(),
        None => "does not fit".into(),
    }
}

fn split(run: &Scenario) -> String {
    format!("{} × {}", run.data.micro_batch, run.training.accumulation)
}

fn moves(row: &OnCards) -> Vec<String> {
    let ladder = row
        .variant
        .ladder
        .iter()
        .filter(|_| row.variant.scenario.is_some());
    let steps = ladder.flat_map(|ladder| &ladder.steps);
    let named = steps.filter(|step| step.id != strategy::MICRO_BATCH);
    named.map(|step| step.id.to_string()).collect()
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
        moves(row).join(", ")
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
        .with("moves", moves(row))
        .with("device", band(row.variant.estimate.device))
        .with("status", status(row))
        .with("seconds", time.map(|time| span(time.step)))
        .with("link", run.map(link))
}

/// The script of a size of card, and a folder of files for each number of cards that it takes.
fn write(args: &Args, card: &Card, rows: &[OnCards], text: &mut String) -> Result<(), Refusal> {
    let mut cases = Vec::new();
    for row in rows {
        let Some(run) = &row.variant.scenario else {
            continue;
        };
        let Some(target) = export::own(run) else {
            let expected = "one of the systems that have a program of their own, for --out";
            return Err(Problem::new("model.id", &run.model.id, expected).into());
        };
        let files = (target.write)(run, &row.variant.estimate)?;
        let folder = format!("{}gb-{}", card.size, row.gpus);
        write_all(args, &folder, &files, text)?;
        let step = row
            .variant
            .time
            .as_ref()
            .map(|time| format!(", a step {}", time.step.expected));
        let about = format!(
            "{}: needs {}, {}{}",
            split(run),
            needs(&row.variant.estimate),
            status(row),
            step.unwrap_or_default()
        );
        cases.push(export::Tier {
            gpus: row.gpus,
            folder,
            about,
        });
    }
    if let Some(script) = export::tier_script(card.size, &cases) {
        write_all(args, "", &[script], text)?;
    }
    Ok(())
}
