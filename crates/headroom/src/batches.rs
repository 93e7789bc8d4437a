//! The command `batches`: the memory of varying batches, and how often large ones occur.

use super::answer::{Answer, Refusal};
use super::args::Args;
use super::what::Given;
use headroom_advice::{self as strategy, Load};
use headroom_base::document::Document;
use headroom_scenario::Problem;

pub(super) fn batches(given: &Given, _: &Args) -> Result<Answer, Refusal> {
    let scenario = given.scenario();
    let Some(found) = strategy::batches(scenario)? else {
        let value = scenario.data.distribution.id();
        let expected =
            "a varying distribution: also set data.mean, and preferably data.p95 and data.max";
        return Err(Problem::new("data.distribution", value, expected).into());
    };
    let mut text = String::new();
    let mut document = Document::new().with("unit", found.unit);
    let worst = found.worst.as_ref();
    let loads = [
        ("typical", Some(&found.typical)),
        ("p95", Some(&found.p95)),
        ("worst", worst),
    ];
    for (name, load) in loads {
        let Some(load) = load else { continue };
        text.push_str(&line(name, load, found.unit));
        document = document.with(name, as_document(load));
    }
    if let Some(budget) = found.budget {
        text.push_str(&format!("\nbatches of up to {budget} {} fit\n", found.unit));
    }
    let percent = |chance: f64| format!("{:.2} %", 100.0 * chance);
    if let Some(chance) = found.chance {
        text.push_str(&format!(
            "probability that a batch is larger: {}\n",
            percent(chance)
        ));
    }
    if let Some(chance) = found.per_epoch {
        text.push_str(&format!(
            "probability that an epoch has a larger one: {}\n",
            percent(chance)
        ));
    }
    if let Some(chance) = found.largest_meet {
        let chance = percent(chance);
        text.push_str(&format!(
            "probability that the two largest samples of an epoch share a batch: {chance}\n"
        ));
    }
    let document = document
        .with("budget", found.budget)
        .with("chance", found.chance)
        .with("per_epoch", found.per_epoch)
        .with("largest_meet", found.largest_meet);
    let mut answer = Answer::new(text, &document);
    answer.fits = worst.unwrap_or(&found.p95).fits != Some(false);
    Ok(answer)
}

fn line(name: &str, load: &Load, unit: &str) -> String {
    let verdict = match load.fits {
        Some(true) => ": fits",
        Some(false) => ": does not fit",
        None => "",
    };
    format!(
        "{name:<8} {:>9} {unit}  {} of tensors, {} on the GPU{verdict}\n",
        load.size, load.allocated, load.device
    )
}

fn as_document(load: &Load) -> Document {
    Document::new()
        .with("size", load.size)
        .with("allocated", load.allocated.get())
        .with("device", load.device.get())
        .with("fits", load.fits)
}
