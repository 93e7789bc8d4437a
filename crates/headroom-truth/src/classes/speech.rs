//! Speech: transcripts of windows of sound, or of sound of any length, and language models that hear.

use serde::Deserialize;

use super::Record;
use super::sound::Sound;
use headroom_catalog::ModelEntry;
use headroom_scenario::Scenario;

#[derive(Deserialize)]
struct Sizes {
    batch: u64,
    #[serde(default)]
    labels: u64,
    /// Of a sample, with the places of its sound.
    #[serde(default)]
    tokens: u64,
    #[serde(flatten)]
    sound: Sound,
}

pub(super) fn set(
    record: &Record,
    entry: &ModelEntry,
    scenario: &mut Scenario,
) -> Result<(), String> {
    let Sizes {
        batch,
        labels,
        tokens,
        sound,
    } = record.sizes()?;
    // A tower beside a language model, whose sequence has places for what is heard.
    let hears = entry.size("a_layers").is_some();
    match record.task.as_str() {
        _ if hears => {
            scenario.data.audio_frames = sound.frames();
            scenario.data.images = 0;
        }
        // Sound of any length; windows are of one.
        "seq2seq" if entry.arch == "moonshine" => scenario.data.audio_frames = sound.frames(),
        "seq2seq" => {}
        "ctc" => scenario.data.audio_frames = sound.mel_frames,
        // Tokens of text and of sound in one sequence.
        "text-to-speech" if tokens > 0 => {}
        other => return Err(format!("no setting says {other}")),
    }
    scenario.data.micro_batch = batch;
    scenario.data.sequence = match tokens {
        0 => labels,
        tokens => tokens,
    };
    Ok(())
}
