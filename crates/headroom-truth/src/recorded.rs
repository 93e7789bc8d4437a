//! Runs of models that were recorded: a batch, a length and a precision of each.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use super::simulated::{self, Metric};
use super::{Report, Row, report};
use headroom_core::estimate::Doubts;
use headroom_core::nets::graph::{self, Graph};
use headroom_core::step;
use headroom_core::tape::Machine;
use headroom_scenario::{Data, Optimizer, Precision, Training};

/// Predicts every case of a truth file from its model's recording; `open` gives the text of a model's file.
pub fn score_recorded(
    text: &str,
    metric: Metric,
    open: impl Fn(&str) -> Result<String, String>,
) -> Report {
    let mut models: BTreeMap<String, Result<Rc<Graph>, String>> = BTreeMap::new();
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let Ok(record) = serde_json::from_str::<Value>(line) else {
            let reason = "not a JSON object".to_string();
            rows.push(Row::unsupported("?", "unreadable", reason));
            continue;
        };
        let name = record["model"].as_str().unwrap_or("?");
        let model = models
            .entry(name.to_string())
            .or_insert_with(|| open(name).and_then(|text| graph::read(&text).map(Rc::new)));
        rows.push(row(&record, metric, model.clone()));
    }
    report(rows)
}

fn row(record: &Value, metric: Metric, model: Result<Rc<Graph>, String>) -> Row {
    let id = record["id"].as_str().unwrap_or("?");
    let group = record["precision"].as_str().unwrap_or("none");
    let predicted = model
        .and_then(|model| Ok((run_recorded(record, model.clone())?, doubts(&model))))
        .and_then(|(run, doubts)| simulated::figure(&run, metric, doubts));
    match (predicted, truth(record, metric)) {
        (Err(reason), _) => Row::unsupported(id, group, reason),
        (Ok(_), None) => Row::unsupported(id, group, "the record lacks the metric".into()),
        (Ok(predicted), Some(truth)) => {
            Row::scored(id, group, truth, predicted.bytes).within(predicted.band)
        }
    }
}

/// What is in doubt of a recorded model, as of a scenario's.
fn doubts(model: &Graph) -> Doubts {
    Doubts {
        unruled: !model.unruled().is_empty(),
        convolutions: model.convolves(),
        ..Doubts::default()
    }
}

fn truth(record: &Value, metric: Metric) -> Option<u64> {
    match metric {
        Metric::Expandable => record["peak_reserved_expandable"].as_u64(),
        other => other.truth(record),
    }
}

/// Runs three steps, as the recording of the truth did.
pub fn run_recorded(record: &Value, model: Rc<Graph>) -> Result<step::Run, String> {
    let number = |name: &str| {
        record[name]
            .as_u64()
            .ok_or(format!("the record lacks `{name}`"))
    };
    let data = Data {
        micro_batch: number("b")?,
        sequence: number("s")?,
        ..Data::default()
    };
    let training = Training {
        precision: match record["precision"].as_str().unwrap_or_default() {
            "fp32" => Precision::Fp32,
            "amp_bf16" => Precision::AmpBf16,
            "bf16" => Precision::Bf16,
            other => return Err(format!("precision `{other}` is not known")),
        },
        optimizer: match record["optim"].as_str().unwrap_or_default() {
            "adamw" => Optimizer::AdamW,
            other => return Err(format!("optimizer `{other}` is not known")),
        },
        ..Training::default()
    };
    let net = graph::net(model);
    net.supports(&data, &training)
        .map_err(|error| error.to_string())?;
    let plan = step::RunPlan::first_steps(3);
    Ok(step::run(&*net, &data, &training, Machine::default(), plan))
}
