//! Recorded failures with verified causes: how often the doctor's first cause is right from the message alone, with the scenario
//! and the number of the step, with the scenario's steps replayed on the failed card, and with a probe's log.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::steps;
use headroom_advice::doctor::{Cause, Diagnosis, Expectation, Findings, Replayed, diagnose};
use headroom_base::units::Bytes;
use headroom_core::allocator::Settings;
use headroom_core::estimate::Peaks;

/// One failure as the doctor saw it, three times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failed {
    pub id: String,
    /// Any of these classes is right: a batch too large may be called too large for the card.
    pub causes: Vec<&'static str>,
    /// The first cause's class, in the order of `GIVEN`; absent where the record has none of it.
    pub found: [Option<(&'static str, f64)>; GIVEN.len()],
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diagnoses {
    pub failures: Vec<Failed>,
}

/// What the doctor is given, in the order of `Failed::found`.
pub const GIVEN: [&str; 5] = [
    "message",
    "scenario and step",
    "steps replayed",
    "probe log",
    "message and step",
];

/// Whether the text's first record is a failure with its message.
pub fn are_failures(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty());
    let record = first.and_then(|line| serde_json::from_str::<Value>(line).ok());
    record.is_some_and(|record| record["message"].is_string() && !record["cause_class"].is_null())
}

/// Diagnoses every record; `runs` are records of whole runs, by whose ids logs are found.
pub fn diagnoses(text: &str, runs: &str) -> Diagnoses {
    let records = |text: &str| -> Vec<Value> {
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        lines.collect()
    };
    let of_id = |record: Value| Some((record["id"].as_str()?.to_string(), record));
    let runs: BTreeMap<String, Value> = records(runs).into_iter().filter_map(of_id).collect();
    let failures = records(text)
        .iter()
        .map(|record| failed(record, record["id"].as_str().and_then(|id| runs.get(id))))
        .collect();
    Diagnoses { failures }
}

fn failed(record: &Value, run: Option<&Value>) -> Failed {
    let message = record["message"].as_str().unwrap_or_default();
    let step = record["step"].as_u64().unwrap_or(0);
    let seen = |text: &str, expected| {
        let findings = Findings::parse(text)?;
        let Diagnosis {
            cause, confidence, ..
        } = diagnose(&findings, expected);
        Some((class(cause), confidence))
    };
    let expected = expectation(record, run);
    let with_step = format!("step {step}\n{message}");
    let replayed = run.zip(expected).and_then(|(run, expected)| {
        let failure = Findings::parse(message)?.failure?;
        let usable = failure.usable().filter(|usable| *usable >= expected.peak)?;
        Some(Expectation {
            replayed: Some(replayed(record, run, usable, step)?),
            ..expected
        })
    });
    Failed {
        id: record["id"].as_str().unwrap_or("?").into(),
        causes: causes(record),
        found: [
            seen(message, None),
            seen(&with_step, expected),
            seen(&with_step, replayed.or(expected)),
            log(record, run).and_then(|log| seen(&format!("{log}\n{message}"), None)),
            seen(&with_step, None),
        ],
    }
}

/// Causes that the records tell apart: an evaluation, a save and a changed loss are all events of a schedule there.
const fn class(cause: Cause) -> &'static str {
    match cause {
        Cause::Capacity | Cause::OptimizerStep => "capacity",
        Cause::Outlier | Cause::Attention => "outlier",
        Cause::Leak => "leak",
        Cause::Fragmentation => "fragmentation",
        Cause::Evaluation | Cause::Checkpoint | Cause::Schedule => "schedule",
        Cause::OtherProcess => "other-process",
        Cause::WrongDevice => "wrong-device",
        Cause::HostMemory
        | Cause::SharedMemory
        | Cause::LibraryBug
        | Cause::NotOutOfMemory
        | Cause::Unknown => "unknown",
    }
}

/// What the evidence says, and what was configured where it agrees with that.
fn causes(record: &Value) -> Vec<&'static str> {
    let word = record["cause_class"].as_str().unwrap_or_default();
    let mut causes = match word {
        "capacity, largest batch so far" => vec!["outlier", "capacity"],
        "capacity" if record["true_cause"].as_str() == Some("outlier batch") => {
            vec!["capacity", "outlier"]
        }
        "capacity" => vec!["capacity"],
        "fragmentation" => vec!["fragmentation"],
        "leak" => vec!["leak"],
        // An evaluation is an event of the schedule.
        "schedule" | "eval" | "save" => vec!["schedule"],
        "other process" => vec!["other-process"],
        _ => vec!["unknown"],
    };
    // Samples that a schedule makes longer are longer samples too.
    if record["cause"] == "batch_or_length_outlier" && !causes.contains(&"outlier") {
        causes.push("outlier");
    }
    causes
}

/// What the run's scenario needs with its largest batch; nothing where the network is not one of ours.
fn expectation(record: &Value, run: Option<&Value>) -> Option<Expectation> {
    let config = record["config"].as_object()?;
    let dims = match run {
        Some(run) => run["dims"].clone(),
        None => Value::Object(config.get("ov")?.as_object()?.clone()),
    };
    let mut dims = dims.as_object()?.clone();
    if !dims.contains_key("family") {
        dims.insert("family".into(), config.get("kind")?.clone());
    }
    let mut most = largest(config.get("dist")?)?;
    // What bounds a distribution says less than the data's longest sample, which is known of a data set.
    let sizes = run.and_then(|run| run["sizes"].as_array());
    if let Some(longest) = sizes.and_then(|all| all.iter().filter_map(Value::as_u64).max()) {
        most = most.min(longest);
    }
    let run = steps::run(config, &Value::Object(dims), most).ok()?;
    let peaks = Peaks::replayed(&run.trace, &Settings::expandable());
    let every = |name: &str| {
        config
            .get(name)
            .and_then(|setting| setting["every"].as_u64())
    };
    Some(Expectation {
        peak: Bytes::new(peaks.highest()?.bytes),
        between_steps: Bytes::new(peaks.phases.last()?.end),
        // A generation is an evaluation of its own kind.
        eval_every: every("eval").or_else(|| every("gen")).unwrap_or(0),
        save_every: every("save").unwrap_or(0),
        replayed: None,
        uneven: None,
    })
}

/// The scenario's own steps with so much memory. Of the sizes only those count that its data has, and backwards: a scenario knows
/// the distribution that a run drew from, and draws by itself.
fn replayed(record: &Value, run: &Value, usable: Bytes, failed: u64) -> Option<Replayed> {
    const FEWEST: usize = 10;
    let most = largest(&record["config"]["dist"])?;
    let sizes = run["sizes"].as_array()?.iter().filter_map(Value::as_u64);
    let count = (failed as usize + 1).max(FEWEST);
    let mut sizes: Vec<u64> = sizes.filter(|size| *size <= most).take(count).collect();
    sizes.reverse();
    let steps = sizes.len();
    let found = steps::undisturbed(record["config"].as_object()?, &run["dims"], sizes, usable);
    let found = found.ok()?;
    Some(Replayed {
        steps,
        retries: found.retries,
        failed: found.failure,
    })
}

/// The largest size of the data.
fn largest(dist: &Value) -> Option<u64> {
    let outliers = dist["outlier"].as_object();
    let outliers = outliers.into_iter().flat_map(Map::values);
    let listed = dist["list"].as_array().into_iter().flatten();
    let all = listed.chain(outliers).chain([&dist["n"], &dist["hi"]]);
    all.filter_map(Value::as_u64).max()
}

/// The run up to its failure: the probe's own log where the record has one, else what it would have written.
fn log(record: &Value, run: Option<&Value>) -> Option<String> {
    if let Some(lines) = record["probe_log"].as_array() {
        let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
        return Some(lines.join("\n"));
    }
    run.map(|run| made_up_log(record, run))
}

fn made_up_log(record: &Value, run: &Value) -> String {
    let failed = record["step"].as_i64().unwrap_or(0);
    let column = |name: &str| {
        let names = run["series_cols"].as_array()?;
        names.iter().position(|other| other == name)
    };
    let mut lines = Vec::new();
    let outside = record["ctx_bytes"].as_u64().unwrap_or(0);
    let between = run["alloc_after_model"].as_u64().unwrap_or(0);
    lines.push(json!({"step": -1, "peak_allocated": between, "allocated": between, "reserved": between, "outside": outside}));
    for row in run["series"].as_array().into_iter().flatten() {
        let number = |name: &str| column(name).and_then(|at| row[at].as_u64()).unwrap_or(0);
        if (number("step") as i64) < failed {
            lines.push(json!({
                "step": number("step"),
                "size": number("size"),
                "peak_allocated": number("peak_allocated"),
                "allocated": number("allocated_end"),
                "reserved": number("reserved_end"),
            }));
        }
    }
    let phase = if record["phase"] == "eval" {
        "eval"
    } else {
        "forward"
    };
    lines.push(json!({
        "oom": true,
        "step": failed,
        "size": record["size"],
        "phase": phase,
        "requested": record["requested"],
        "peak_allocated": record["allocated"],
        "allocated": record["allocated"],
        "reserved": record["reserved"],
        "free": record["device_free"],
        "total": record["device_total"],
    }));
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.join("\n")
}

impl Diagnoses {
    /// Right of how many, and how sure the surest that is wrong.
    fn score(&self, given: usize) -> (usize, usize, f64) {
        let (mut right, mut all, mut sure) = (0, 0, 0.0_f64);
        for failed in &self.failures {
            let Some((cause, confidence)) = failed.found[given] else {
                continue;
            };
            all += 1;
            if failed.causes.contains(&cause) {
                right += 1;
            } else {
                sure = sure.max(confidence);
            }
        }
        (right, all, sure)
    }
}

impl std::fmt::Display for Diagnoses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for failed in &self.failures {
            write!(f, "{:<28} {:<22}", failed.id, failed.causes.join(" or "))?;
            for found in failed.found {
                let words = found.map_or_else(String::new, |(cause, sure)| {
                    let wrong = if failed.causes.contains(&cause) {
                        ""
                    } else {
                        "!"
                    };
                    format!("{wrong}{cause} {sure:.2}")
                });
                write!(f, " {words:<22}")?;
            }
            writeln!(f)?;
        }
        for (given, name) in GIVEN.iter().enumerate() {
            let (right, all, sure) = self.score(given);
            let share = 100.0 * right as f64 / all.max(1) as f64;
            writeln!(
                f,
                "{name:<18} right {right} of {all} ({share:.0} %), at most {sure:.2} sure where wrong"
            )?;
        }
        Ok(())
    }
}
