//! Language models that see pictures, and those that hear.

use serde::Deserialize;

use super::Record;
use super::sound::Sound;
use headroom_catalog::ModelEntry;
use headroom_scenario::Scenario;

#[derive(Deserialize)]
struct Sizes {
    batch: u64,
    /// Of a sample, with the placeholders of its pictures.
    tokens: u64,
    /// The height and width of each picture of a sample, in pixels.
    #[serde(default)]
    images: Vec<[u64; 2]>,
    /// "tiles" where these are the network's tiles and not the user's pictures.
    #[serde(default)]
    images_are: String,
    #[serde(default)]
    image_tokens: u64,
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
        tokens,
        images,
        images_are,
        image_tokens,
        sound,
    } = record.sizes()?;
    let data = &mut scenario.data;
    data.micro_batch = batch;
    data.sequence = tokens;
    let hears = entry.size("a_hidden").is_some();
    data.audio_frames = if hears { sound.frames() } else { 0 };
    if entry.size("v_hidden").is_none() && !hears {
        return Err(format!(
            "the pictures of `{}` are as they were recorded",
            entry.id
        ));
    }
    if record
        .hf_part
        .as_deref()
        .is_some_and(|part| part.contains("no audio"))
    {
        scenario.model.dims.insert("a_layers".into(), 0);
    }
    if entry.arch == "deepseek_ocr2" {
        whole_and_tiles(scenario, &images, image_tokens);
        return Ok(());
    }
    data.images = images.len() as u64;
    data.image_tiles = u64::from(images_are == "tiles");
    let written = images
        .iter()
        .map(|[height, width]| format!("{height}x{width}"));
    data.image_sizes = written.collect();
    Ok(())
}

/// Pictures of DeepSeek-OCR 2: a batch has each of them whole, and its tiles beside it, whose number their tokens tell.
fn whole_and_tiles(scenario: &mut Scenario, images: &[[u64; 2]], tokens: u64) {
    const TILE: u64 = 768;
    let is_whole = |sides: &&[u64; 2]| sides.iter().any(|side| *side > TILE);
    let whole = (images.iter().filter(is_whole).count() as u64).max(1);
    let tiles = tokens.saturating_sub(257 * whole) / 144 / whole;
    scenario.data.images = whole;
    scenario.data.image_tiles = tiles + 1;
}
