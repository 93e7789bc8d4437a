//! Records of runs over many steps of varying size: what came to be held, and at which step a card refused.

use serde_json::{Map, Value};

use super::score::Row;
use super::simulated::{self, Metric};
use crate::allocator::{Card, Settings};
use crate::estimate::{Besides, KeptEachStep, ManySteps, Plan, SHOWN, Walk};
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

/// The first step that is not like the others in a way that nothing here runs, and what happens then.
fn unlike(config: &Map<String, Value>) -> Option<(u64, &'static str)> {
    let set = |name: &str| {
        let absent = |it: &&Value| it.is_null() || **it == Value::Bool(false);
        config.get(name).filter(|it| !absent(it))
    };
    let kind = |it: &Value| it["kind"].as_str().map(str::to_owned).unwrap_or_default();
    // The sizes tell longer samples themselves.
    let schedule = set("sched").filter(|it| !["seq_mult", "bs"].contains(&kind(it).as_str()));
    // What is copied to the host leaves the card as it was.
    let save = set("save").filter(|it| it["mode"] != "cpu");
    let last_of = |it: &Value| {
        it["every"]
            .as_u64()
            .map_or(0, |every| every.saturating_sub(1))
    };
    let all = [
        schedule.map(|it| (it["step"].as_u64().unwrap_or(0), "sched")),
        set("eval").map(|it| (last_of(it), "eval")),
        save.map(|it| (last_of(it), "save")),
        set("leak")
            .filter(|it| kind(it) == "logits")
            .map(|_| (0, "leak")),
        set("side_stream").map(|_| (0, "side_stream")),
    ];
    all.into_iter().flatten().min()
}

/// What is kept of each step, and what another process takes.
fn besides(record: &Value) -> Besides {
    const ID: u64 = 8;
    let config = &record["config"];
    let (leak, batch) = (&config["leak"], config["mb"].as_u64().unwrap_or(1));
    let kept = |fixed, each, last| KeptEachStep {
        fixed: Bytes::new(fixed),
        each: Bytes::new(each),
        last,
    };
    Besides {
        taken: config["other"]["step"]
            .as_u64()
            .zip(record["other_took_bytes"].as_u64())
            .map(|(step, bytes)| (step as usize, Bytes::new(bytes))),
        kept: match leak["kind"].as_str() {
            Some("loss_detached") => Some(kept(4, 0, usize::MAX)),
            Some("logits_argmax") => Some(kept(0, ID * batch, usize::MAX)),
            Some("window") => Some(kept(
                leak["bytes"].as_u64().unwrap_or(0),
                0,
                leak["n"].as_u64().unwrap_or(0) as usize,
            )),
            _ => None,
        },
    }
}

/// Sizes of steps after which batches are larger are told from others by this bit.
const LARGER: u64 = 1 << 40;

/// The record's steps, on its card.
pub fn replayed(record: &Value) -> Result<ManySteps, String> {
    let config = record["config"].as_object().ok_or("no settings")?;
    if config.get("on_oom").and_then(Value::as_str) == Some("skip") {
        return Err("it goes on after a failure".into());
    }
    let mut sizes: Vec<u64> = record["sizes"]
        .as_array()
        .map(|all| all.iter().filter_map(Value::as_u64).collect())
        .unwrap_or_default();
    let schedule = &config.get("sched").cloned().unwrap_or_default();
    let multiple = match schedule["kind"].as_str() {
        Some("bs") => schedule["mult"].as_u64().unwrap_or(1),
        _ => 1,
    };
    if multiple > 1 {
        let from = schedule["step"].as_u64().unwrap_or(0) as usize;
        sizes.iter_mut().skip(from).for_each(|it| *it |= LARGER);
    }
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
        settings: &settings,
        card: match record["usable_bytes"].as_u64() {
            None => Card::UNLIMITED,
            Some(usable) => Card {
                total: Some(Bytes::new(usable) + context),
                context,
                ..Card::UNLIMITED
            },
        },
        empty_every: config
            .get("empty_every")
            .and_then(Value::as_u64)
            .unwrap_or(0) as usize,
        besides: besides(record),
    };
    let mut larger = config.clone();
    let batch = config.get("mb").and_then(Value::as_u64).unwrap_or(1);
    larger.insert("mb".into(), batch.saturating_mul(multiple).into());
    let walk = Walk::of(sizes, 1, &mut |size| {
        let knobs = if size & LARGER == 0 { config } else { &larger };
        run(knobs, &record["dims"], size & !LARGER)
    })?;
    let found = walk.through(&plan);
    match unlike(config) {
        // It had failed before.
        Some((step, _)) if found.failure.is_some_and(|it| (it.0 as u64) < step) => Ok(found),
        Some((_, event)) => Err(format!("something happens between its steps (`{event}`)")),
        None => Ok(found),
    }
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
