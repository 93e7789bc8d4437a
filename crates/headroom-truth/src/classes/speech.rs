//! Speech: transcripts of windows of sound.

use serde::Deserialize;

use super::Record;
use headroom_catalog::ModelEntry;
use headroom_scenario::Scenario;

#[derive(Deserialize)]
struct Sizes {
    batch: u64,
    labels: u64,
}

pub(super) fn set(record: &Record, _: &ModelEntry, scenario: &mut Scenario) -> Result<(), String> {
    if record.task != "seq2seq" {
        return Err(format!("no setting says {}", record.task));
    }
    let Sizes { batch, labels } = record.sizes()?;
    scenario.data.micro_batch = batch;
    scenario.data.sequence = labels;
    Ok(())
}
