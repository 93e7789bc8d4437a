//! Scores predictions against recorded runs; a case's own inputs are all it looks at.

mod auxiliary;
pub mod catalog;
mod diagnoses;
mod distributed;
mod extra;
mod measured;
mod page;
mod post;
mod posts;
mod recorded;
mod score;
mod simulated;
mod steps;
mod throughput;
mod world;

pub use diagnoses::{Diagnoses, are_failures, diagnoses};
pub use page::{coverage, markdown, plot};
pub use posts::{Posts, are_posts, posts};
pub use recorded::{run_recorded, score_recorded};
pub use score::{Report, Row, report};
pub use simulated::Metric;

use serde_json::Value;

/// Predicts every case of a truth file, one JSON object a line.
pub fn score(text: &str, metric: Metric) -> Report {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let mut report = report(lines().map(|line| row(line, metric)).collect());
    let records: Vec<Value> = lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(throughput::is_record)
        .collect();
    if records.len() == report.rows.len() {
        throughput::broken_down(&mut report, &records);
    }
    report
}

/// Runs a recorded case as its recording did, for a look at the events.
pub fn run_record(record: &Value) -> Result<headroom_core::step::Run, String> {
    if measured::is_record(record) {
        return measured::run(record);
    }
    match kind(record)? {
        RecordKind::Simulated(knobs, dims) => simulated::run(knobs, dims),
        RecordKind::Distributed(knobs, dims) => distributed::run(knobs, dims),
        RecordKind::Extra(knobs, dims) => extra::run(knobs, dims),
        RecordKind::Post(knobs, dims) => post::run(knobs, dims),
    }
}

fn row(line: &str, metric: Metric) -> Row {
    let record: Value = match serde_json::from_str(line) {
        Ok(record) => record,
        Err(problem) => {
            return Row::unsupported("?", "unreadable", format!("not a JSON object: {problem}"));
        }
    };
    let id = record["id"].as_str().unwrap_or("?");
    if measured::is_record(&record) {
        return measured::row(&record, id);
    }
    if steps::is_record(&record) {
        return steps::row(&record, id, metric);
    }
    if throughput::is_record(&record) {
        return throughput::row(&record, id);
    }
    let group = record["group"].as_str().unwrap_or("none");
    let predicted = kind(&record).and_then(|kind| match kind {
        RecordKind::Simulated(knobs, dims) => simulated::predict(knobs, dims, metric),
        RecordKind::Distributed(knobs, dims) => {
            let run = distributed::run(knobs, dims);
            run.and_then(|run| simulated::figure(&run, metric, simulated::doubts(knobs, dims)))
        }
        RecordKind::Extra(knobs, dims) => extra::predict(knobs, dims, metric),
        RecordKind::Post(knobs, dims) => {
            let run = post::run(knobs, dims);
            run.and_then(|run| simulated::figure(&run, metric, simulated::doubts(knobs, dims)))
        }
    });
    match predicted {
        Err(reason) => Row::unsupported(id, group, reason),
        Ok(predicted) => match metric.truth(&record) {
            Some(truth) => Row::scored(id, group, truth, predicted.bytes).within(predicted.band),
            None => Row::unsupported(id, group, "the record lacks the metric".into()),
        },
    }
}

type Object = serde_json::Map<String, Value>;

/// The kinds of records, by the fields that only they have.
enum RecordKind<'a> {
    Simulated(&'a Object, &'a Object),
    /// One rank of several.
    Distributed(&'a Object, &'a Object),
    Extra(&'a Object, &'a Object),
    Post(&'a Object, &'a Object),
}

fn kind(record: &Value) -> Result<RecordKind<'_>, String> {
    if record["config"]["steps"].is_number() {
        return Err("a run over many steps: `allocated` of one step is not what it records".into());
    }
    let (Some(knobs), Some(dims)) = (record["knobs"].as_object(), record["dims"].as_object())
    else {
        return Err("a record of a kind that is not modelled".into());
    };
    let several = knobs.contains_key("strategy");
    Ok(if post::is_record(knobs) {
        RecordKind::Post(knobs, dims)
    } else if several {
        RecordKind::Distributed(knobs, dims)
    } else if knobs.contains_key("feature") {
        RecordKind::Extra(knobs, dims)
    } else {
        RecordKind::Simulated(knobs, dims)
    })
}
