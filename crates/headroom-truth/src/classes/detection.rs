//! Objects in pictures.

use serde::Deserialize;

use super::Record;
use headroom_catalog::ModelEntry;
use headroom_scenario::Scenario;

#[derive(Deserialize)]
struct Sizes {
    batch: u64,
    images: Vec<[u64; 2]>,
    boxes: Option<u64>,
}

pub(super) fn set(
    record: &Record,
    entry: &ModelEntry,
    scenario: &mut Scenario,
) -> Result<(), String> {
    let Sizes {
        batch,
        images,
        boxes,
    } = record.sizes()?;
    let [[height, width]] = images.as_slice() else {
        return Err("a sample is one picture".into());
    };
    if height != width {
        return Err(format!("no setting says a picture of {height} × {width}"));
    }
    scenario.data.micro_batch = batch;
    let dims = &mut scenario.model.dims;
    dims.insert("img".into(), *height);
    let objects = boxes.filter(|_| entry.size("objects").is_some());
    dims.extend(objects.map(|objects| ("objects".into(), objects)));
    Ok(())
}
