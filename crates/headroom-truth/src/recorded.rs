//! Runs of models that were recorded: a batch, a length and a precision of each.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::Value;

use super::classes;
use super::knobs::{Dims, Knobs};
use super::metric::{Figure, Metric, figure};
use super::record::{Numbers, parse, read};
use super::simulated;
use super::{Report, Row, report};
use headroom_core::estimate::UncertaintySources;
use headroom_core::graph::{self, Graph};
use headroom_core::network::Machine;
use headroom_core::training as step;

/// Predicts every case of a truth file from its model's recording; `open` gives the text of a model's file.
pub fn score_recorded(
    text: &str,
    metric: Metric,
    open: impl Fn(&str) -> Result<String, String>,
) -> Report {
    let mut models: BTreeMap<String, Result<Rc<Graph>, String>> = BTreeMap::new();
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let Ok(record) = parse(line) else {
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
    let [id, group] = ["id", "precision"].map(|name| record[name].as_str());
    let truth = read::<Numbers>(record).ok();
    let truth = truth.and_then(|numbers| numbers.get(metric));
    let predicted = model.and_then(|model| predict(record, metric, &model));
    Row::compared(id.unwrap_or("?"), group.unwrap_or("none"), predicted, truth)
}

fn predict(record: &Value, metric: Metric, model: &Rc<Graph>) -> Result<Figure, String> {
    let run = run_recorded(record, model.clone())?;
    let sources = UncertaintySources {
        kernels_without_model: !model.unruled().is_empty(),
        ..UncertaintySources::of(&run)
    };
    figure(&run, metric, sources)
}

#[derive(Deserialize)]
struct Settings {
    b: u64,
    /// A length, or a list of the sizes that the model's file gives its batch.
    s: Value,
    precision: String,
    optim: String,
}

/// Runs three steps, as the recording of the truth did.
pub fn run_recorded(record: &Value, model: Rc<Graph>) -> Result<step::Run, String> {
    let run: Settings = read(record)?;
    let knobs = Knobs {
        mb: Some(run.b),
        seq: Some(length(&run.s)?),
        precision: run.precision,
        optim: run.optim,
        ..Knobs::default()
    };
    let (data, mut training) = simulated::settings(&knobs, &Dims::default())?;
    if classes::is_record(record) {
        training = classes::training(&read(record)?)?;
    }
    let net = graph::net(model);
    net.supports(&data, &training)
        .map_err(|error| error.to_string())?;
    let plan = step::RunPlan::first_steps(3);
    Ok(step::run(&*net, &data, &training, Machine::default(), plan))
}

/// A recording knows a batch and a length.
fn length(size: &Value) -> Result<u64, String> {
    let unknown = || format!("recordings have no dimensions for the sizes {size} of a batch");
    match size.as_array().map(Vec::as_slice) {
        Some([only]) => only.as_u64(),
        _ => size.as_u64(),
    }
    .ok_or_else(unknown)
}
