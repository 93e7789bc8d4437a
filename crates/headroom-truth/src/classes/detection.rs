//! Objects in pictures.

use serde::Deserialize;

use super::Record;
use headroom_catalog::ModelEntry;
use headroom_scenario::Scenario;

#[derive(Deserialize)]
struct Sizes {
    batch: u64,
    images: Vec<[u64; 2]>,
}

pub(super) fn set(record: &Record, _: &ModelEntry, scenario: &mut Scenario) -> Result<(), String> {
    let Sizes { batch, images } = record.sizes()?;
    let [[height, width]] = images.as_slice() else {
        return Err("a sample is one picture".into());
    };
    if height != width {
        return Err(format!("no setting says a picture of {height} × {width}"));
    }
    scenario.data.micro_batch = batch;
    scenario.model.dims.insert("img".into(), *height);
    Ok(())
}
