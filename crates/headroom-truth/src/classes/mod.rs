//! Steps of the classes that people fine-tune (transformers, diffusers), predicted as a user would ask for them: by the model's
//! id at the hub, the precision, adapters and checkpointing, and the sizes of a batch. A file for each group of models.

mod detection;
mod diffusion;
mod embedding;
mod sound;
mod speech;
mod text;
mod training;
mod vision_language;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::metric::{Figure, Metric, figure};
use super::record::{Numbers, read};
use super::score::Row;
use headroom_catalog::{self as catalog, ModelEntry};
use headroom_core::Prediction;
use headroom_core::estimate::UncertaintySources;
use headroom_core::network::Machine;
use headroom_core::training::{Run, RunPlan, run as run_steps};
use headroom_scenario::Scenario;

pub use training::training;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Record {
    /// What a user types; none where no model at the hub has these sizes.
    hf_id: Option<String>,
    hf_near: Option<String>,
    /// The part of the model that was trained, and alone on the card.
    hf_part: Option<String>,
    /// Sizes by the catalogue's names that differ from those of the model at the hub, such as fewer layers.
    changed: BTreeMap<String, u64>,
    group: String,
    task: String,
    precision: String,
    checkpointing: bool,
    /// The setting's value; none for AdamW.
    optim: String,
    /// What the loop does besides: `ema`, `channels_last`, `clip`.
    switches: Vec<String>,
    lora: Option<training::Adapters>,
    /// A dense mask reaches attention because of what the batch holds.
    masked: bool,
    mask: String,
    /// The sizes of a batch; each group reads its own.
    dims: Value,
    #[serde(flatten)]
    numbers: Numbers,
}

pub fn is_record(record: &Value) -> bool {
    record["hf_match"].is_string() && record["dims"]["batch"].is_number()
}

pub fn row(record: &Record, id: &str, metric: Metric) -> Row {
    let predicted = predict(record, metric);
    Row::compared(id, &record.group, predicted, record.numbers.get(metric))
}

fn predict(record: &Record, metric: Metric) -> Result<Figure, String> {
    let run = run(record)?;
    figure(&run, metric, UncertaintySources::of(&run))
}

/// Three steps, as the recording ran.
pub fn run(record: &Record) -> Result<Run, String> {
    let prediction = Prediction::new(scenario(record)?);
    let net = (prediction.network()).map_err(|reason| reason.to_string())?;
    let Scenario { data, training, .. } = prediction.scenario();
    let plan = RunPlan::first_steps(3);
    Ok(run_steps(&*net, data, training, Machine::default(), plan))
}

/// What a user would set.
fn scenario(record: &Record) -> Result<Scenario, String> {
    let entry = entry(record)?;
    let mut scenario = Scenario::of_model(entry);
    scenario.model.dims.clone_from(&record.changed);
    scenario.training = training(record)?;
    scenario.data.padding_mask = record.mask.starts_with("padding");
    let set = match record.group.as_str() {
        "vlm" => vision_language::set,
        "text" => text::set,
        "diffusion" => diffusion::set,
        "embedding" => embedding::set,
        "speech" => speech::set,
        "detection" => detection::set,
        other => return Err(format!("the group `{other}` is not known")),
    };
    set(record, entry, &mut scenario)?;
    Ok(scenario)
}

fn entry(record: &Record) -> Result<&'static ModelEntry, String> {
    let Some(id) = &record.hf_id else {
        let near = record.hf_near.as_deref().unwrap_or("none");
        return Err(format!(
            "no model at the hub has these sizes (near: {near})"
        ));
    };
    let entry = catalog::model_named(id);
    let entry = entry.ok_or_else(|| format!("the model `{id}` is not in the catalogue"))?;
    // The text tower of a model that sees and hears is an entry of its own.
    let part = record.hf_part.as_deref().unwrap_or_default();
    let tower = part.starts_with("text tower");
    let text = tower.then(|| catalog::model(&format!("{}-text", entry.id)));
    Ok(text.flatten().unwrap_or(entry))
}

impl Record {
    /// The sizes that a group reads.
    fn sizes<T: serde::de::DeserializeOwned>(&self) -> Result<T, String> {
        read(&self.dims)
    }
}
