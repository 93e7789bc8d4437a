//! Commands that advise what to change: `plan`, `layout`, `moves`, `tiers`, `solve`, `gpus`, `time`, `accumulate`.

mod accumulate;
mod cards;
mod layout;
mod moves;
mod plan;
mod solve;
mod tiers;
mod time;

pub(super) use accumulate::accumulate;
pub(super) use layout::layout;
pub(super) use moves::moves;
pub(super) use plan::plan;
pub(super) use solve::solve;
pub(super) use tiers::tiers;
pub(super) use time::{gpus, time};

use super::answer::Refusal;
use super::args::Args;
use headroom_advice::Goal;
use headroom_base::document::Document;
use headroom_core::estimate::time::{Span, StepTime};
use headroom_scenario::share;
use headroom_scenario::{Problem, Scenario};

/// The memory to keep free: `--margin 10` is ten percent of the usable memory.
fn goal(args: &Args) -> Result<Goal, Refusal> {
    let Some(text) = args.option("margin") else {
        return Ok(Goal::default());
    };
    let percent = text.trim_end_matches('%').trim().parse::<f64>().ok();
    match percent.filter(|percent| (0.0..=95.0).contains(percent)) {
        Some(percent) => Ok(Goal::with_margin(percent / 100.0)),
        None => Err(Problem::new("--margin", text, "percent from 0 to 95").into()),
    }
}

fn number(args: &Args, name: &str, default: u64) -> Result<u64, Refusal> {
    let Some(text) = args.option(name) else {
        return Ok(default);
    };
    let value = text
        .parse::<u64>()
        .ok()
        .filter(|value| (1..=1_000_000_000).contains(value));
    value.ok_or_else(|| {
        Problem::new(
            format!("--{name}"),
            text,
            "a whole number from 1 to 1000000000",
        )
        .into()
    })
}

fn link(scenario: &Scenario) -> String {
    format!("#{}", share::write(scenario))
}

fn span(span: Span) -> Document {
    Document::new()
        .with("low", span.low.get())
        .with("expected", span.expected.get())
        .with("high", span.high.get())
}

/// "takes 1.20 s (0.90 s to 2.00 s), 13.7 samples/s".
fn of_step(time: &StepTime) -> String {
    let Span {
        low,
        expected,
        high,
    } = time.step;
    format!(
        "takes {expected} ({low} to {high}), {:.1} samples/s",
        time.samples_per_second.expected
    )
}
