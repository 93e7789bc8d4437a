//! Encoders and embeddings: classification and contrastive training.

use super::Record;
use headroom_catalog::ModelEntry;
use headroom_scenario::Scenario;

pub(super) fn set(record: &Record, _: &ModelEntry, _: &mut Scenario) -> Result<(), String> {
    Err(format!("no setting says {}", record.task))
}
