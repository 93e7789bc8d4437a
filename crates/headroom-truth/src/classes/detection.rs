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
    num_labels: Option<u64>,
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
        num_labels,
    } = record.sizes()?;
    let [[height, width]] = images.as_slice() else {
        return Err("a sample is one picture".into());
    };
    scenario.data.micro_batch = batch;
    let dims = &mut scenario.model.dims;
    dims.insert("img".into(), *height);
    if entry.size("img_w").is_some() {
        dims.insert("img_w".into(), *width);
    } else if height != width {
        return Err(format!("no setting says a picture of {height} × {width}"));
    }
    let objects = boxes.filter(|_| entry.size("objects").is_some());
    dims.extend(objects.map(|objects| ("objects".into(), objects)));
    let classes = num_labels.filter(|own| entry.size("classes").is_some_and(|usual| usual != *own));
    dims.extend(classes.map(|classes| ("classes".into(), classes)));
    Ok(())
}
