//! Diffusion: the denoising network on latents and embedded texts.

use serde::Deserialize;

use super::Record;
use headroom_catalog::{ModelCategory, ModelEntry};
use headroom_scenario::Scenario;

#[derive(Deserialize)]
struct Sizes {
    batch: u64,
    frames: u64,
    height: u64,
    width: u64,
    text_tokens: Option<u64>,
    /// Pictures beside the one that is made; several if they are listed.
    reference_images: Option<References>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum References {
    Count(u64),
    Listed(Vec<serde_json::Value>),
}

pub(super) fn set(
    record: &Record,
    entry: &ModelEntry,
    scenario: &mut Scenario,
) -> Result<(), String> {
    let sizes: Sizes = record.sizes()?;
    if entry.category != ModelCategory::Diffusion || !entry.graph.is_empty() {
        return Err(format!("`{}` has no sizes in pixels", entry.id));
    }
    if sizes.frames != 1 && entry.size("frames").is_none() {
        return Err(format!("`{}` has no frames", entry.id));
    }
    let data = &mut scenario.data;
    data.micro_batch = sizes.batch;
    data.height = sizes.height;
    data.width = sizes.width;
    if entry.size("frames").is_some() {
        data.frames = sizes.frames;
    }
    let dims = &mut scenario.model.dims;
    let mut option = |name: &str, value: Option<u64>| {
        if let Some(value) = value
            && entry.size(name).is_some_and(|own| own != value)
        {
            dims.insert(name.into(), value);
        }
    };
    option("ctx_len", sizes.text_tokens);
    let references = sizes.reference_images.map(|references| match references {
        References::Count(count) => count,
        References::Listed(all) => all.len() as u64,
    });
    option("references", references);
    option("masked", Some(u64::from(record.masked)));
    Ok(())
}
