//! The command `batches`: what batches of varying samples need, and how often the large ones come.

use super::answer::{Answer, Refusal};
use super::args::Args;
use super::what;
use headroom_advice::{self as strategy, Load};
use headroom_base::document::Document;
use headroom_scenario::Problem;

pub(super) fn batches(args: &Args) -> Result<Answer, Refusal> {
    let scenario = what::scenario(args)?;
    let Some(found) = strategy::batches(&scenario)? else {
        let value = scenario.data.distribution.id();
        let expected = "varying, with data.mean and best data.p95 and data.max beside it";
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
        text.push_str(&in_words(name, load, found.unit));
        document = document.with(name, as_document(load));
    }
    if let Some(budget) = found.budget {
        text.push_str(&format!("\nbatches of up to {budget} {} fit\n", found.unit));
    }
    let percent = |chance: f64| format!("{:.2} %", 100.0 * chance);
    if let Some(chance) = found.chance {
        text.push_str(&format!(
            "a batch is larger with a chance of {}\n",
            percent(chance)
        ));
    }
    if let Some(chance) = found.per_epoch {
        text.push_str(&format!(
            "an epoch has a larger one with a chance of {}\n",
            percent(chance)
        ));
    }
    if let Some(chance) = found.largest_meet {
        let chance = percent(chance);
        text.push_str(&format!(
            "an epoch joins its two largest samples with a chance of {chance}\n"
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

fn in_words(name: &str, load: &Load, unit: &str) -> String {
    let verdict = match load.fits {
        Some(true) => ": fits",
        Some(false) => ": does not fit",
        None => "",
    };
    format!(
        "{name:<8} {:>9} {unit}  {} of tensors, {} on the card{verdict}\n",
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
