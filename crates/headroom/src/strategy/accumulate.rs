//! The command `accumulate`: batches and learning rates.

use super::super::answer::{Answer, Refusal, band};
use super::super::args::Args;
use super::super::what::Given;
use super::{goal, link, number, span};
use headroom_advice::{self as strategy, Rule, Split};
use headroom_base::document::Document;
use headroom_base::units::Bytes;
use headroom_core::estimate::Fit;
use headroom_scenario::share;
use headroom_scenario::{Batch, Problem};

/// The micro-batch and accumulation for an effective batch, the differences from one large batch, and the learning rate.
pub(crate) fn accumulate(given: &Given, args: &Args) -> Result<Answer, Refusal> {
    let scenario = given.scenario();
    let present = scenario.effective_batch();
    let wanted = number(args, "batch", scenario.batch().wanted.unwrap_or(present))?;
    let found = strategy::accumulate(scenario, wanted, goal(args)?)?;
    let mut text = match &found.scenario {
        Some(run) => {
            let batch = Batch {
                wanted: Some(wanted),
                ..run.batch()
            };
            format!("{batch}\n#{}\n", share::write(run))
        }
        None => "not one sample fits\n".into(),
    };
    let mut whole = found.scenario.clone().unwrap_or_else(|| scenario.clone());
    if found.scenario.is_none() {
        whole.data.micro_batch = (wanted / scenario.replicas().max(1)).max(1);
        whole.training.accumulation = 1;
    }
    let splits = strategy::splits(&whole)?;
    text.push_str(&table(&splits));
    let mut checks = Vec::new();
    if let Some(run) = found
        .scenario
        .as_ref()
        .filter(|run| run.training.accumulation > 1)
    {
        text.push_str("\ncompared with one large batch:\n");
        for check in strategy::accumulation(run)? {
            text.push_str(&format!(
                "- {} {}: {}\n",
                check.id,
                check.equal.id(),
                check.description
            ));
            checks.push(
                Document::new()
                    .with("id", check.id)
                    .with("equal", check.equal.id())
                    .with("says", check.description)
                    .with("source", check.source),
            );
        }
    }
    let rule = match args.option("rule") {
        None => None,
        Some(id) => Some(
            Rule::from_id(id).ok_or_else(|| Problem::new("--rule", id, "linear, sqrt or none"))?,
        ),
    };
    let rate = match args.option("rate") {
        None => None,
        Some(text) => Some(
            text.parse::<f64>()
                .ok()
                .filter(|rate| rate.is_finite() && *rate > 0.0)
                .ok_or_else(|| Problem::new("--rate", text, "a learning rate, such as 3e-4"))?,
        ),
    };
    let samples = found.samples.max(1);
    let scaled = rate.map(|rate| {
        strategy::scaled(
            rate,
            [0.9, 0.999],
            (present, samples),
            scenario.training.optimizer,
            rule,
        )
    });
    if let Some(scaled) = &scaled {
        let (about, source) = scaled.rule.about();
        text.push_str(&format!(
            "\nlearning rate {:.3e} by the {} rule for {present} -> {samples} samples\n{about} ({source})\n",
            scaled.rate, scaled.rule.id()
        ));
        if !scaled.is_usual {
            text.push_str("This is not the rule for this optimizer.\n");
        }
        if scaled.far {
            text.push_str(
                "The batch changes by more than a factor of eight: tune the learning rate again.\n",
            );
        }
        for (program, does, source) in strategy::PROGRAMS {
            text.push_str(&format!("- {program}: {does} ({source})\n"));
        }
    }
    let document = Document::new()
        .with("wanted", wanted)
        .with("samples", found.samples)
        .with("exact", found.is_exact())
        .with(
            "micro_batch",
            found.scenario.as_ref().map(|run| run.data.micro_batch),
        )
        .with(
            "accumulation",
            found.scenario.as_ref().map(|run| run.training.accumulation),
        )
        .with("splits", Document::List(splits.iter().map(row).collect()))
        .with("checks", Document::List(checks))
        .with("rule", scaled.as_ref().map(|scaled| scaled.rule.id()))
        .with("rate", scaled.as_ref().map(|scaled| scaled.rate))
        .with("link", found.scenario.as_ref().map(link));
    let mut answer = Answer::new(text, &document);
    answer.fits = found.scenario.is_some();
    Ok(answer)
}

/// Every split of the batch with its status.
fn table(splits: &[Split]) -> String {
    let mut text = format!(
        "\n{:<15} {:>10}  {:>12}  {:<24} {}\n",
        "micro × accum.", "forward", "on the GPU", "status", "step time"
    );
    for split in splits {
        let run = &split.scenario;
        let mark = match split.estimate.fit() {
            Some(Fit::Fits) => "✓",
            Some(Fit::Probably | Fit::ProbablyNot) => "!",
            Some(Fit::No) | None => "✗",
        };
        let step = split
            .time
            .as_ref()
            .map(|time| time.step.expected.to_string());
        text.push_str(&format!(
            "{:<15} {:>10}  {:>12}  {mark} {:<22} {}\n",
            format!("{} × {}", run.data.micro_batch, run.training.accumulation),
            split.forward().to_string(),
            needed(split).to_string(),
            label(split),
            step.unwrap_or_else(|| "-".into())
        ));
    }
    text
}

fn row(split: &Split) -> Document {
    Document::new()
        .with("micro_batch", split.scenario.data.micro_batch)
        .with("accumulation", split.scenario.training.accumulation)
        .with("forward", split.forward())
        .with("device", band(split.estimate.device))
        .with("status", label(split))
        .with("seconds", split.time.as_ref().map(|time| span(time.step)))
}

fn label(split: &Split) -> &'static str {
    split.estimate.fit().map_or("unknown", Fit::label)
}

fn needed(split: &Split) -> Bytes {
    split.estimate.device.expected + split.estimate.growth
}
