//! Recorded failures with verified causes: how often the doctor's first cause is right from the message alone, with the scenario
//! and the number of the step, with the scenario's steps replayed on the failed GPU, and with a probe's log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::record::{read, read_all};
use super::steps::{self, Config};
use headroom_advice::doctor::{
    Cause, Diagnosis, Failure, Findings, PredictedUsage, Recognized, Replayed, diagnose,
};
use headroom_base::units::Bytes;
use headroom_core::allocator::Settings;
use headroom_core::estimate::{Peaks, StepRequests};

/// A recorded failure.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Record {
    id: Option<String>,
    message: String,
    cause_class: String,
    true_cause: String,
    cause: String,
    config: Value,
    /// Before the first where it is negative.
    step: i64,
    size: Option<u64>,
    phase: String,
    requested: Option<u64>,
    allocated: Option<u64>,
    reserved: Option<u64>,
    device_free: Option<u64>,
    device_total: Option<u64>,
    ctx_bytes: u64,
    probe_log: Option<Vec<String>>,
}

/// One failure and what the doctor found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failed {
    pub id: String,
    /// Any of these classes is right: a batch that is too large also exceeds the capacity.
    pub causes: Vec<&'static str>,
    /// The first cause's class, in the order of `EVIDENCE`; absent where the record has none of it.
    pub found: [Option<(&'static str, f64)>; EVIDENCE.len()],
}

/// The recorded failures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diagnoses {
    pub failures: Vec<Failed>,
}

/// What the doctor reads, in the order of `Failed::found`.
pub const EVIDENCE: [&str; 5] = [
    "message",
    "scenario and step",
    "steps replayed",
    "probe log",
    "message and step",
];

/// Whether the text's first record is a failure with its message.
pub fn are_failures(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty());
    let failures = first.map_or_else(Vec::new, read_all::<Record>);
    let mut failures = failures.iter();
    failures.any(|record| !record.message.is_empty() && !record.cause_class.is_empty())
}

/// Diagnoses every record; `runs` are records of complete runs, by whose ids logs are found.
pub fn diagnoses(text: &str, runs: &str) -> Diagnoses {
    let of_id = |run: Value| Some((run["id"].as_str()?.to_string(), read(&run).ok()?));
    let runs: BTreeMap<String, steps::Record> =
        read_all(runs).into_iter().filter_map(of_id).collect();
    let run = |record: &Record| runs.get(record.id.as_deref()?);
    let failures = read_all::<Record>(text);
    Diagnoses {
        failures: (failures.iter())
            .map(|record| failed(record, run(record)))
            .collect(),
    }
}

fn failed(record: &Record, run: Option<&steps::Record>) -> Failed {
    let message = &record.message;
    let step = record.step.max(0) as u64;
    let diagnosed = |text: &str, expected| {
        let findings = Findings::parse(text)?;
        let Diagnosis {
            cause, confidence, ..
        } = diagnose(&findings, expected);
        Some((class(cause), confidence))
    };
    let config = read::<Config>(&record.config).ok();
    let failure = Failure::parse(message);
    let expected =
        (config.as_ref()).and_then(|config| expectation(config, run, failure.as_ref(), step));
    let with_step = format!("step {step}\n{message}");
    let replayed = run.zip(expected).and_then(|(run, expected)| {
        let failure = Findings::parse(message)?.failure?;
        let usable = failure.usable().filter(|usable| *usable >= expected.peak)?;
        Some(PredictedUsage {
            replayed: Some(replayed(config.as_ref()?, run, usable, step)?),
            ..expected
        })
    });
    Failed {
        id: record.id.clone().unwrap_or_else(|| "?".into()),
        causes: causes(record),
        found: [
            diagnosed(message, None),
            diagnosed(&with_step, expected),
            diagnosed(&with_step, replayed.or(expected)),
            log(record, run).and_then(|log| diagnosed(&format!("{log}\n{message}"), None)),
            diagnosed(&with_step, None),
        ],
    }
}

/// The class of a cause in the records, where an evaluation, a save and a changed loss are all events of a schedule.
const fn class(cause: Cause) -> &'static str {
    match cause {
        Cause::Capacity | Cause::OptimizerStep => "capacity",
        Cause::Outlier | Cause::Attention | Cause::Logits => "outlier",
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

/// The verified causes, and the configured one where they agree.
fn causes(record: &Record) -> Vec<&'static str> {
    let mut causes = match record.cause_class.as_str() {
        "capacity, largest batch so far" => vec!["outlier", "capacity"],
        "capacity" if record.true_cause == "outlier batch" => vec!["capacity", "outlier"],
        "capacity" => vec!["capacity"],
        "fragmentation" => vec!["fragmentation"],
        "leak" => vec!["leak"],
        // An evaluation is an event of the schedule.
        "schedule" | "eval" | "save" => vec!["schedule"],
        "other process" => vec!["other-process"],
        _ => vec!["unknown"],
    };
    // Samples that a schedule makes longer are longer samples too.
    if record.cause == "batch_or_length_outlier" && !causes.contains(&"outlier") {
        causes.push("outlier");
    }
    causes
}

/// What the run's scenario needs with its largest batch; nothing where the network has no forward function here.
fn expectation(
    config: &Config,
    run: Option<&steps::Record>,
    failure: Option<&Failure>,
    step: u64,
) -> Option<PredictedUsage> {
    let mut dims = run.map_or(&config.ov, |run| &run.dims).clone();
    if !dims.contains_key("family") {
        dims.insert("family".into(), config.knobs.kind.clone()?.into());
    }
    // The longest sample of the data is below the distribution's bound.
    let longest = run.and_then(|run| run.sizes.iter().copied().max());
    let bound = config.dist.as_ref()?.largest()?;
    let most = bound.min(longest.unwrap_or(bound));
    let of_largest = steps::run(&config.knobs, &dims, most).ok()?;
    let peaks = Peaks::replayed(&of_largest.trace, &Settings::expandable());
    let every = |event: &Option<steps::Event>| event.as_ref().and_then(|event| event.every);
    Some(PredictedUsage {
        peak: Bytes::new(peaks.highest()?.bytes),
        between_steps: Bytes::new(peaks.phases.last()?.end),
        // A generation is an evaluation of its own kind.
        eval_every: (config.eval.as_ref())
            .and_then(|eval| eval.every)
            .or(every(&config.generation))
            .unwrap_or(0),
        save_every: every(&config.save).unwrap_or(0),
        replayed: None,
        uneven: None,
        recognized: failure.and_then(|failure| {
            Recognized::find(failure, Some(step), most, &mut |size| {
                let trace = steps::run(&config.knobs, &dims, size).ok()?.trace;
                Some(match step {
                    0 => StepRequests::of_first(&trace),
                    _ => StepRequests::of(&trace),
                })
            })
        }),
        typical: None,
        varies: config.dist.as_ref()?.varies(),
        growth: None,
    })
}

/// The scenario's own steps in limited memory, with sizes within its distribution and in reverse: a scenario knows the
/// distribution that a run drew from, and draws by itself.
fn replayed(
    config: &Config,
    run: &steps::Record,
    usable: Bytes,
    failed_step: u64,
) -> Option<Replayed> {
    const FEWEST: usize = 10;
    let most = config.dist.as_ref()?.largest()?;
    let sizes = run.sizes.iter().copied().filter(|size| *size <= most);
    let mut sizes: Vec<u64> = sizes.take((failed_step as usize + 1).max(FEWEST)).collect();
    sizes.reverse();
    let steps = sizes.len();
    let found = steps::undisturbed(config, &run.dims, sizes, usable).ok()?;
    Some(Replayed {
        steps,
        retries: found.retries,
        failed: found.failure,
    })
}

/// The probe's log of the run up to its failure, reconstructed where the record has none.
fn log(record: &Record, run: Option<&steps::Record>) -> Option<String> {
    match &record.probe_log {
        Some(lines) => Some(lines.join("\n")),
        None => run.map(|run| reconstructed_log(record, run)),
    }
}

fn reconstructed_log(record: &Record, run: &steps::Record) -> String {
    let between = run.alloc_after_model;
    let mut lines = vec![json!({
        "step": -1, "peak_allocated": between, "allocated": between, "reserved": between, "outside": record.ctx_bytes,
    })];
    for row in &run.series {
        let number = |name: &str| {
            let column = run.series_cols.iter().position(|other| other == name);
            let value = column.and_then(|column| row.get(column));
            value.and_then(Value::as_u64).unwrap_or(0)
        };
        if (number("step") as i64) < record.step {
            lines.push(json!({
                "step": number("step"),
                "size": number("size"),
                "peak_allocated": number("peak_allocated"),
                "allocated": number("allocated_end"),
                "reserved": number("reserved_end"),
            }));
        }
    }
    lines.push(json!({
        "oom": true,
        "step": record.step,
        "size": record.size,
        "phase": if record.phase == "eval" { "eval" } else { "forward" },
        "requested": record.requested,
        "peak_allocated": record.allocated,
        "allocated": record.allocated,
        "reserved": record.reserved,
        "free": record.device_free,
        "total": record.device_total,
    }));
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.join("\n")
}

impl Diagnoses {
    /// Right of how many, and how sure the surest that is wrong.
    fn score(&self, evidence: usize) -> (usize, usize, f64) {
        let (mut right, mut all, mut sure) = (0, 0, 0.0_f64);
        for failed in &self.failures {
            let Some((cause, confidence)) = failed.found[evidence] else {
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
                let cell = found.map_or_else(String::new, |(cause, sure)| {
                    let wrong = if failed.causes.contains(&cause) {
                        ""
                    } else {
                        "!"
                    };
                    format!("{wrong}{cause} {sure:.2}")
                });
                write!(f, " {cell:<22}")?;
            }
            writeln!(f)?;
        }
        for (evidence, name) in EVIDENCE.iter().enumerate() {
            let (right, all, sure) = self.score(evidence);
            let share = 100.0 * right as f64 / all.max(1) as f64;
            writeln!(
                f,
                "{name:<18} right {right} of {all} ({share:.0} %), at most {sure:.2} sure where wrong"
            )?;
        }
        Ok(())
    }
}
