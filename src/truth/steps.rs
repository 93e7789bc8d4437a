//! Records of runs over many steps of varying size: what came to be held, and at which step a card refused.

use serde_json::{Map, Value};

use super::score::Row;
use super::simulated::{self, Metric};
use crate::allocator::{Card, Settings};
use crate::estimate::{ManySteps, Plan, SHOWN, many_steps};
use crate::step::{self, Course};
use crate::units::Bytes;

/// Whether it is one of these: its settings count steps, and it lists their sizes.
pub fn is_one(record: &Value) -> bool {
    record["config"]["steps"].is_number() && record["sizes"].is_array()
}

/// Compared are the peaks; of a run on a card, the step at which it failed, or how many it went through.
pub fn row(record: &Value, id: &str, metric: Metric) -> Row {
    let on_card = record["usable_bytes"].is_number();
    let group = match (on_card, record["summary"]["num_ooms"].as_u64()) {
        (false, _) => "no limit",
        (true, Some(0)) => "a card that suffices",
        (true, _) => "a card that refuses",
    };
    let found = match replayed(record) {
        Ok(found) => found,
        Err(reason) => return Row::unsupported(id, group, reason),
    };
    let summary = &record["summary"];
    if on_card {
        let truth = match record["oom"]["step"].as_u64() {
            Some(failed) => failed,
            None => summary["steps_done"].as_u64().unwrap_or(0),
        };
        return Row::scored(id, group, truth, found.steps.len() as u64);
    }
    let (name, predicted) = match metric {
        Metric::Allocated => ("peak_allocated", found.allocated()),
        Metric::Reserved | Metric::Expandable => ("peak_reserved", found.reserved()),
        Metric::Forward => {
            let reason = "the record lacks the metric".into();
            return Row::unsupported(id, group, reason);
        }
    };
    match summary[name].as_u64() {
        Some(truth) => Row::scored(id, group, truth, predicted.get()),
        None => Row::unsupported(id, group, "the record lacks the metric".into()),
    }
}

/// What happens in some runs beside their steps, which a scenario does not say.
const EVENTS: [&str; 6] = ["leak", "sched", "eval", "save", "other", "side_stream"];

/// The record's steps, on its card.
pub fn replayed(record: &Value) -> Result<ManySteps, String> {
    let config = record["config"].as_object().ok_or("no settings")?;
    for event in EVENTS {
        let absent = |it: &Value| it.is_null() || *it == Value::Bool(false);
        if !config.get(event).is_none_or(absent) {
            return Err(format!("something happens between its steps (`{event}`)"));
        }
    }
    if config.get("on_oom").and_then(Value::as_str) == Some("skip") {
        return Err("it goes on after a failure".into());
    }
    let sizes: Vec<u64> = record["sizes"]
        .as_array()
        .map(|all| all.iter().filter_map(Value::as_u64).collect())
        .unwrap_or_default();
    let (settings, _) = Settings::parse(
        config
            .get("alloc")
            .and_then(Value::as_str)
            .unwrap_or_default(),
    );
    let settings = Settings {
        memory_fraction: config.get("frac").and_then(Value::as_f64),
        ..settings
    };
    let context = config.get("ctx_mb").and_then(Value::as_u64).unwrap_or(0);
    let context = Bytes::mib(context);
    let plan = Plan {
        sizes: &sizes,
        settings: &settings,
        card: match record["usable_bytes"].as_u64() {
            None => Card::UNLIMITED,
            Some(usable) => Card {
                total: Some(Bytes::new(usable) + context),
                context,
                ..Card::UNLIMITED
            },
        },
        beginning: 1,
        empty_every: config
            .get("empty_every")
            .and_then(Value::as_u64)
            .unwrap_or(0) as usize,
    };
    many_steps(&plan, &mut |size| run(config, &record["dims"], size))
}

/// Some steps with batches of this size.
pub fn run(config: &Map<String, Value>, dims: &Value, size: u64) -> Result<step::Run, String> {
    let dims = dims.as_object().ok_or("the record names no sizes")?;
    let mut knobs = config.clone();
    knobs.insert("seq".into(), size.into());
    let (data, training) = simulated::settings(&knobs)?;
    simulated::run_with(
        &knobs,
        dims,
        &data,
        &training,
        Course::from_the_start(SHOWN),
    )
}
