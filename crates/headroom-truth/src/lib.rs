//! Scores predictions against recorded runs, using only each case's own inputs.

mod adapters;
mod auxiliary;
pub mod catalog;
mod classes;
mod diagnoses;
mod distributed;
mod extra;
mod knobs;
mod logged;
mod measured;
mod metric;
mod page;
mod post;
mod posts;
mod record;
mod recorded;
mod score;
mod simulated;
mod steps;
mod throughput;
mod world;

pub use diagnoses::{Diagnoses, are_failures, diagnoses};
pub use metric::Metric;
pub use page::{coverage, markdown, plot};
pub use posts::{Posts, are_posts, posts};
pub use recorded::{run_recorded, score_recorded};
pub use score::{Report, Row, report};

use serde_json::Value;

use self::record::{parse, read};

/// Predicts every case of a truth file, one JSON object a line.
pub fn score(text: &str, metric: Metric) -> Report {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let records: Vec<Result<Value, String>> = lines.map(parse).collect();
    let rows = records.iter().map(|record| row(record, metric));
    let mut report = report(rows.collect());
    let speeds = records.iter().map(|record| {
        let record = record.as_ref().ok()?;
        read(record).ok().filter(|_| is_speed(record))
    });
    if let Some(speeds) = speeds.collect::<Option<Vec<throughput::Record>>>() {
        throughput::broken_down(&mut report, &speeds);
    }
    report
}

/// Runs a recorded case as its recording did, for a look at the events.
pub fn run_record(record: &Value) -> Result<headroom_core::training::Run, String> {
    if is_measured(record) {
        return measured::run(&read(record)?);
    }
    if classes::is_record(record) {
        return classes::run(&read(record)?);
    }
    let simulated::Record { knobs, dims, .. } = simulated_record(record)?;
    simulated::run(&knobs, &dims)
}

fn is_measured(record: &Value) -> bool {
    record["measured_gib"].is_number() && record["metric"].is_string()
}

/// Of many steps: the settings count them, and their sizes are listed.
fn is_steps(record: &Value) -> bool {
    record["config"]["steps"].is_number() && record["sizes"].is_array()
}

fn is_speed(record: &Value) -> bool {
    record["metric"].is_string() && record["value"].is_number() && record["settings"].is_object()
}

fn simulated_record(record: &Value) -> Result<simulated::Record, String> {
    if record["config"]["steps"].is_number() {
        return Err("a run over many steps: `allocated` of one step is not what it records".into());
    }
    if !record["knobs"].is_object() || !record["dims"].is_object() {
        return Err("a record of a kind that is not modelled".into());
    }
    read(record)
}

fn row(record: &Result<Value, String>, metric: Metric) -> Row {
    let record = match record {
        Ok(record) => record,
        Err(reason) => return Row::unsupported("?", "unreadable", reason.clone()),
    };
    let id = record["id"].as_str().unwrap_or("?");
    let group = record["group"].as_str().unwrap_or("none");
    let row = if is_measured(record) {
        read(record).map(|record| measured::row(&record, id))
    } else if classes::is_record(record) {
        read(record).map(|record| classes::row(&record, id, metric))
    } else if is_steps(record) {
        read(record).map(|record| steps::row(&record, id, metric))
    } else if is_speed(record) {
        read(record).map(|record| throughput::row(&record))
    } else if record["link"].is_string() {
        read(record).map(|record| logged::row(&record, id, group, metric))
    } else {
        simulated_record(record).map(|record| simulated::row(&record, id, group, metric))
    };
    row.unwrap_or_else(|reason| Row::unsupported(id, group, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Peaks of PyTorch 2.15 with TRL 1.16, PEFT 0.21 and others on a simulated GPU, and published ones: a mechanism each, with
    /// the percentage that the prediction may be off.
    #[test]
    fn each_mechanism_needs_what_was_recorded() {
        let metrics = [
            ("peak_allocated", Metric::Allocated),
            ("measured_gib", Metric::Allocated),
            ("fwd_end", Metric::Forward),
            ("peak_reserved", Metric::Reserved),
            ("peak_reserved_expandable", Metric::Expandable),
        ];
        let mut compared = 0;
        for line in include_str!("cases.jsonl").lines() {
            let record = parse(line);
            let case = record.clone().unwrap();
            for (name, metric) in metrics {
                if case[name].is_number() {
                    let row = row(&record, metric);
                    let error = row.error.map(f64::abs);
                    assert!(
                        error <= case["within"].as_f64() && error.is_some(),
                        "{row:?}"
                    );
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 191);
    }
}
