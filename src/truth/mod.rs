//! Scores predictions against recorded runs; a case's own inputs are all it looks at.

mod score;
mod simulated;

pub use score::{Report, Row, report};
pub use simulated::Metric;

use serde_json::Value;

/// Predicts every case of a truth file, one JSON object a line.
pub fn score(text: &str, metric: Metric) -> Report {
    let rows = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| row(line, metric))
        .collect();
    report(rows)
}

/// Runs a recorded case as its recording did, for a look at the events.
pub fn run_record(record: &Value) -> Result<crate::step::Run, String> {
    let (Some(knobs), Some(dims)) = (record["knobs"].as_object(), record["dims"].as_object())
    else {
        return Err("a record of a kind that is not modelled".into());
    };
    simulated::run(knobs, dims)
}

fn row(line: &str, metric: Metric) -> Row {
    let record: Value = match serde_json::from_str(line) {
        Ok(record) => record,
        Err(problem) => {
            return Row::unsupported("?", "unreadable", format!("not a JSON object: {problem}"));
        }
    };
    let id = record["id"].as_str().unwrap_or("?");
    let group = record["group"].as_str().unwrap_or("none");
    let (Some(knobs), Some(dims)) = (record["knobs"].as_object(), record["dims"].as_object())
    else {
        return Row::unsupported(id, group, "a record of a kind that is not modelled".into());
    };
    match simulated::predict(knobs, dims, metric) {
        Err(reason) => Row::unsupported(id, group, reason),
        Ok(predicted) => match metric.truth(&record) {
            Some(truth) => Row::scored(id, group, truth, predicted),
            None => Row::unsupported(id, group, "the record lacks the metric".into()),
        },
    }
}
