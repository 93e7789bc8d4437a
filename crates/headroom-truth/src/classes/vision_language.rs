//! Language models that see pictures.

use serde::Deserialize;

use super::Record;
use headroom_catalog::ModelEntry;
use headroom_scenario::Scenario;

#[derive(Deserialize)]
struct Sizes {
    batch: u64,
    /// Of a sample, with the placeholders of its pictures.
    tokens: u64,
    /// The height and width of each picture of a sample, in pixels.
    images: Vec<[u64; 2]>,
    /// "tiles" where these are the network's tiles and not the user's pictures.
    #[serde(default)]
    images_are: String,
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
    } = record.sizes()?;
    let data = &mut scenario.data;
    data.micro_batch = batch;
    data.sequence = tokens;
    if entry.size("v_hidden").is_none() {
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
    data.images = images.len() as u64;
    data.image_tiles = u64::from(images_are == "tiles");
    let written = images
        .iter()
        .map(|[height, width]| format!("{height}x{width}"));
    data.image_sizes = written.collect();
    Ok(())
}
