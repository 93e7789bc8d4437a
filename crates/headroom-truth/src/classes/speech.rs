//! Speech: transcripts of windows of sound, or of sound of any length.

use serde::Deserialize;

use super::Record;
use headroom_catalog::ModelEntry;
use headroom_scenario::Scenario;

#[derive(Deserialize)]
struct Sizes {
    batch: u64,
    labels: u64,
    #[serde(default)]
    mel_frames: u64,
}

pub(super) fn set(record: &Record, _: &ModelEntry, scenario: &mut Scenario) -> Result<(), String> {
    let Sizes {
        batch,
        labels,
        mel_frames,
    } = record.sizes()?;
    match record.task.as_str() {
        "seq2seq" => {}
        "ctc" => scenario.data.audio_frames = mel_frames,
        other => return Err(format!("no setting says {other}")),
    }
    scenario.data.micro_batch = batch;
    scenario.data.sequence = labels;
    Ok(())
}
