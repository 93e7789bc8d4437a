//! Diffusion: the denoising network on latents and embedded texts.

use serde::Deserialize;

use super::Record;
use headroom_catalog::ModelEntry;
use headroom_scenario::Scenario;

#[derive(Deserialize)]
struct Sizes {
    batch: u64,
    frames: u64,
    height: u64,
    width: u64,
}

pub(super) fn set(
    record: &Record,
    entry: &ModelEntry,
    scenario: &mut Scenario,
) -> Result<(), String> {
    let sizes: Sizes = record.sizes()?;
    let Sizes {
        frames,
        height,
        width,
        ..
    } = sizes;
    if frames != 1 || height != width || entry.size("img").is_none() {
        return Err(format!(
            "no setting says {frames} frames of {height} × {width}"
        ));
    }
    scenario.data.micro_batch = sizes.batch;
    scenario.model.dims.insert("img".into(), height);
    Ok(())
}
