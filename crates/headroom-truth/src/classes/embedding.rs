//! Encoders and embeddings: heads for classes, and contrastive training.

use serde::Deserialize;

use super::Record;
use headroom_catalog::ModelEntry;
use headroom_scenario::{Objective, Scenario};

#[derive(Deserialize)]
#[serde(default)]
struct Sizes {
    batch: u64,
    tokens: u64,
    num_labels: u64,
    query_tokens: u64,
    negatives: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            batch: 1,
            tokens: 1,
            num_labels: 2,
            query_tokens: 0,
            negatives: 0,
        }
    }
}

pub(super) fn set(record: &Record, _: &ModelEntry, scenario: &mut Scenario) -> Result<(), String> {
    let sizes: Sizes = record.sizes()?;
    let task = &mut scenario.training.task;
    task.objective = match record.task.as_str() {
        "classification" => Objective::Classification,
        "token-classification" => Objective::TokenClassification,
        "contrastive" => Objective::Contrastive,
        "reranking" => Objective::Reranking,
        other => return Err(format!("no setting says {other}")),
    };
    task.classes = sizes.num_labels;
    task.negatives = sizes.negatives;
    task.query = sizes.query_tokens;
    scenario.data.micro_batch = sizes.batch;
    scenario.data.sequence = sizes.tokens;
    Ok(())
}
